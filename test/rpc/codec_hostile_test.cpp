#include <catch2/catch.hpp>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

#include "fjord/rpc/codec.h"
#include "random_message.h"

namespace fjord::rpc {
namespace {

using apache::thrift::transport::TMemoryBuffer;
using CompactProtocol = apache::thrift::protocol::TCompactProtocolT<TMemoryBuffer>;
namespace tp = apache::thrift::protocol;
using test::dump;
using test::for_each_call;
using test::random_alternative;

/// Returns a call of `method`; `write` writes the fields of its argument struct.
template <typename F>
std::string call_frame(const std::string& method, F write, tp::TMessageType type = tp::T_CALL, bool end = true) {
  auto buffer = std::make_shared<TMemoryBuffer>();
  CompactProtocol protocol(buffer);
  protocol.writeMessageBegin(method, type, 42);
  protocol.writeStructBegin("");
  write(protocol);
  if (end) protocol.writeFieldStop();
  return buffer->getBufferAsString();
}

TEST_CASE("codec: a call of an unknown method keeps what its answer needs", "[rpc]") {
  const auto decoded = decode_request(call_frame("dance", [](CompactProtocol&) {}));
  REQUIRE(decoded);
  CHECK_FALSE(decoded->request);
  CHECK(decoded->header.method == "dance");
  CHECK(decoded->header.seqid == 42);
}

TEST_CASE("codec: unknown fields and fields of another type are skipped", "[rpc]") {
  const auto decoded = decode_request(call_frame("cancelJob", [](CompactProtocol& p) {
    p.writeFieldBegin("request", tp::T_STRUCT, 1);
    p.writeStructBegin("");
    p.writeFieldBegin("new", tp::T_MAP, 9);
    p.writeMapBegin(tp::T_STRING, tp::T_I32, 1);
    p.writeString(std::string("key"));
    p.writeI32(4);
    p.writeMapEnd();
    p.writeFieldEnd();
    p.writeFieldBegin("job_id", tp::T_STRING, 1);
    p.writeString(std::string("job"));
    p.writeFieldEnd();
    p.writeFieldBegin("job_id", tp::T_I64, 1);
    p.writeI64(12);
    p.writeFieldEnd();
    p.writeFieldStop();
    p.writeStructEnd();
    p.writeFieldEnd();
    p.writeFieldBegin("trace", tp::T_BOOL, 2);
    p.writeBool(true);
    p.writeFieldEnd();
  }));
  REQUIRE(decoded);
  CHECK(std::get<CancelJob>(*decoded->request).job_id == "job");
}

TEST_CASE("codec: a status that does not arrive never reads as success", "[rpc]") {
  const std::string frame = call_frame(
      "execute",
      [](CompactProtocol& p) {
        p.writeFieldBegin("success", tp::T_STRUCT, 0);
        p.writeStructBegin("");
        p.writeFieldBegin("results", tp::T_LIST, 2);
        p.writeListBegin(tp::T_STRUCT, 1);
        p.writeStructBegin("");
        p.writeFieldStop();
        p.writeStructEnd();
        p.writeListEnd();
        p.writeFieldEnd();
        p.writeFieldStop();
        p.writeStructEnd();
        p.writeFieldEnd();
      },
      tp::T_REPLY);
  const auto decoded = decode_reply(frame);
  REQUIRE(decoded);
  REQUIRE(decoded->reply);
  const auto& reply = std::get<ExecuteReply>(*decoded->reply);
  CHECK(reply.status.code() == StatusCode::Unknown);
  REQUIRE(reply.results.size() == 1);
  CHECK(reply.results[0].status.code() == StatusCode::Unknown);
}

TEST_CASE("codec: a reply without a result is an error of the call", "[rpc]") {
  const auto decoded = decode_reply(call_frame(
      "execute", [](CompactProtocol&) {}, tp::T_REPLY));
  REQUIRE(decoded);
  REQUIRE_FALSE(decoded->reply);
  CHECK(decoded->reply.error().code() == StatusCode::Corruption);
}

TEST_CASE("codec: lengths that the frame cannot hold are refused before memory is taken", "[rpc]") {
  const auto frame_with = [](auto write) {
    return call_frame(
        "execute",
        [&](CompactProtocol& p) {
          p.writeFieldBegin("request", tp::T_STRUCT, 1);
          p.writeStructBegin("");
          write(p);
        },
        tp::T_CALL, false);
  };
  const auto refused = [](const std::string& frame) {
    const auto decoded = decode_request(frame);
    return !decoded && decoded.error().code() == StatusCode::Corruption;
  };
  CHECK(refused(frame_with([](CompactProtocol& p) {
    p.writeFieldBegin("operations", tp::T_LIST, 5);
    p.writeListBegin(tp::T_STRUCT, 2'000'000'000);
  })));
  CHECK(refused(frame_with([](CompactProtocol& p) {
    p.writeFieldBegin("operations", tp::T_LIST, 6);
    p.writeListBegin(tp::T_I64, 2'000'000'000);
  })));
  CHECK(refused(frame_with([](CompactProtocol& p) {
    p.writeFieldBegin("unknown", tp::T_STRING, 77);
    p.writeI32(-2'000'000'000);  // Zigzag: the varint of 3999999999.
  })));
  CHECK(refused(frame_with([](CompactProtocol& p) {
    p.writeFieldBegin("unknown", tp::T_STRING, 77);
    p.writeI32(1'000'000'000);  // Zigzag: the varint of 2000000000.
  })));
  // A list of empty operations takes more than 300 times its bytes in memory.
  for (const std::uint32_t count : {10'000U, 250'000U, 2'000'000U}) {
    CHECK(refused(frame_with([count](CompactProtocol& p) {
      p.writeFieldBegin("operations", tp::T_LIST, 5);
      p.writeListBegin(tp::T_STRUCT, count);
      for (std::uint32_t i = 0; i < count; ++i) p.writeFieldStop();
    })));
  }
}

TEST_CASE("codec: an answer with a status of each of many operations is read", "[rpc]") {
  ExecuteReply reply;
  reply.results.resize(500'000);
  const std::string frame = encode_reply({.method = "execute", .seqid = 1}, Result<Reply>(Reply(reply)));
  CHECK(frame.size() < 3'000'000);
  const auto decoded = decode_reply(frame);
  REQUIRE(decoded);
  CHECK(std::get<ExecuteReply>(*decoded->reply).results.size() == 500'000);
}

TEST_CASE("codec: structs nested without end are refused", "[rpc]") {
  const std::string frame = call_frame(
      "execute",
      [](CompactProtocol& p) {
        for (int i = 0; i < 100'000; ++i) {
          p.writeFieldBegin("deeper", tp::T_STRUCT, 9);
          p.writeStructBegin("");
        }
      },
      tp::T_CALL, false);
  const auto decoded = decode_request(frame);
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().code() == StatusCode::Corruption);
}

TEST_CASE("codec: values that no sender of ours makes are refused", "[rpc]") {
  const auto list_entries = [](auto write) {
    return decode_request(call_frame("listEntries", [&](CompactProtocol& p) {
      p.writeFieldBegin("request", tp::T_STRUCT, 1);
      p.writeStructBegin("");
      write(p);
      p.writeFieldStop();
      p.writeStructEnd();
    }));
  };
  const auto bucket = [](std::int64_t value) {
    return [value](CompactProtocol& p) {
      p.writeFieldBegin("bucket", tp::T_I64, 1);
      p.writeI64(value);
    };
  };
  const auto max_entries = [](std::int64_t value) {
    return [value](CompactProtocol& p) {
      p.writeFieldBegin("max_entries", tp::T_I64, 4);
      p.writeI64(value);
    };
  };
  const auto after = [](std::string value) {
    return [value](CompactProtocol& p) {
      p.writeFieldBegin("after", tp::T_STRING, 2);
      p.writeBinary(value);
    };
  };
  CHECK(list_entries(bucket(0x4000000000000012)));
  CHECK_FALSE(list_entries(bucket(-1)));
  CHECK(list_entries(max_entries(0xffffffff)));
  CHECK_FALSE(list_entries(max_entries(0x100000000)));
  CHECK_FALSE(list_entries(max_entries(-1)));
  CHECK(list_entries(after("")));
  CHECK(list_entries(after("123456789012")));
  CHECK_FALSE(list_entries(after("1234")));
}

TEST_CASE("codec: frames that are something else are refused", "[rpc]") {
  CHECK_FALSE(decode_request(""));
  CHECK_FALSE(decode_request("GET / HTTP/1.1\r\n\r\n"));
  CHECK_FALSE(decode_request("\x82"));
  CHECK_FALSE(decode_request(std::string_view("\x80\x01\x00", 3)));
  CHECK_FALSE(decode_request(encode_reply({"execute", 1, WireProtocol::Compact}, Reply(ExecuteReply{}))));
  CHECK_FALSE(decode_reply(encode_request(Execute{}, 1)));
  CHECK_FALSE(decode_reply(""));
}

TEST_CASE("codec: no truncation of a frame decodes to the same message", "[rpc]") {
  Random random(3);
  for (const WireProtocol protocol : {WireProtocol::Compact, WireProtocol::Binary}) {
    for_each_call([&]<std::size_t I>() {
      const std::string request = encode_request(random_alternative<Request, I>(random), 1, protocol);
      const CallHeader call{std::variant_alternative_t<I, Request>::kName, 1, protocol};
      const std::string reply = encode_reply(call, random_alternative<Reply, I>(random));
      for (int i = 0; i < 200; ++i) {
        CHECK_FALSE(decode_request(std::string_view(request).substr(0, random.below(request.size()))));
        CHECK_FALSE(decode_reply(std::string_view(reply).substr(0, random.below(reply.size()))));
      }
    });
  }
}

TEST_CASE("codec: flipped bytes give another message or Corruption, never more", "[rpc]") {
  Random random(4);
  int refused = 0;
  int decoded = 0;
  const auto count = [&](const auto& result) {
    result ? ++decoded : ++refused;
    if (!result) CHECK(result.error().code() == StatusCode::Corruption);
  };
  for (const WireProtocol protocol : {WireProtocol::Compact, WireProtocol::Binary}) {
    for_each_call([&]<std::size_t I>() {
      const std::string request = encode_request(random_alternative<Request, I>(random), 1, protocol);
      const CallHeader call{std::variant_alternative_t<I, Request>::kName, 1, protocol};
      const std::string reply = encode_reply(call, random_alternative<Reply, I>(random));
      for (int i = 0; i < 500; ++i) {
        std::string bad_request = request;
        std::string bad_reply = reply;
        for (std::uint64_t flips = 1 + random.below(3); flips > 0; --flips) {
          bad_request[random.below(std::min<std::size_t>(request.size(), 200))] = static_cast<char>(random.next());
          bad_reply[random.below(std::min<std::size_t>(reply.size(), 200))] = static_cast<char>(random.next());
        }
        count(decode_request(bad_request));
        count(decode_reply(bad_reply));
      }
    });
  }
  CHECK(refused > 1000);
  CHECK(decoded > 1000);
}

}  // namespace
}  // namespace fjord::rpc
