#include "fjord/rpc/codec.h"

#include <catch2/catch.hpp>

#include "random_message.h"

namespace fjord::rpc {
namespace {

using test::dump;
using test::for_each_call;
using test::random_alternative;

/// Converts to any type: the number of accepted initialisers is the number of members of an aggregate.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT
};
template <typename T, typename... Initialisers>
constexpr int member_count() {
  if constexpr (requires { T{Initialisers{}..., Anything{}}; }) {
    return member_count<T, Initialisers..., Anything>();
  } else {
    return sizeof...(Initialisers);
  }
}

struct CountFields {
  int count = 0;
  int last = 0;
  template <typename T>
  void operator()(int number, const T& value) {
    ++count;
    CHECK(number > last);
    last = number;
    check_nested(value);
  }
  template <typename T>
  void always(int number, const T& value) {
    (*this)(number, value);
  }
  template <typename T>
  static void check_nested(const T&) {
    if constexpr (kIsVector<T>) {
      check_nested(typename T::value_type{});
    } else if constexpr (kIsMessage<T>) {
      CountFields nested;
      const T message{};
      fields(nested, message);
      INFO("a message with " << member_count<T>() << " members");
      CHECK(nested.count == member_count<T>());
    }
  }
};

TEST_CASE("codec: every member of every message has a number", "[rpc]") {
  for_each_call([]<std::size_t I>() {
    const std::string name = std::variant_alternative_t<I, Request>::kName;
    INFO(name);
    CountFields::check_nested(std::variant_alternative_t<I, Request>{});
    CountFields::check_nested(std::variant_alternative_t<I, Reply>{});
  });
}

TEST_CASE("codec: requests come back as they were, in both protocols", "[rpc]") {
  Random random(1);
  for (const WireProtocol protocol : {WireProtocol::Compact, WireProtocol::Binary}) {
    for (int round = 0; round < 100; ++round) {
      for_each_call([&]<std::size_t I>() {
        const Request request = random_alternative<Request, I>(random);
        const auto seqid = static_cast<std::int32_t>(random.next());
        const auto decoded = decode_request(encode_request(request, seqid, protocol));
        REQUIRE(decoded);
        CHECK(decoded->header.seqid == seqid);
        CHECK(decoded->header.protocol == protocol);
        CHECK(decoded->header.method == name_of(request));
        REQUIRE(decoded->request);
        CHECK(dump(*decoded->request) == dump(request));
      });
    }
  }
}

TEST_CASE("codec: replies come back as they were, in both protocols", "[rpc]") {
  Random random(2);
  for (const WireProtocol protocol : {WireProtocol::Compact, WireProtocol::Binary}) {
    for (int round = 0; round < 100; ++round) {
      for_each_call([&]<std::size_t I>() {
        const Reply reply = random_alternative<Reply, I>(random);
        const CallHeader call{std::variant_alternative_t<I, Request>::kName, static_cast<std::int32_t>(random.next()),
                              protocol};
        const auto decoded = decode_reply(encode_reply(call, reply));
        REQUIRE(decoded);
        CHECK(decoded->seqid == call.seqid);
        CHECK(decoded->method == call.method);
        REQUIRE(decoded->reply);
        CHECK(dump(*decoded->reply) == dump(reply));
      });
    }
  }
}

TEST_CASE("codec: messages with nothing in them come back as they were", "[rpc]") {
  for_each_call([]<std::size_t I>() {
    const Request request = std::variant_alternative_t<I, Request>{};
    const auto decoded = decode_request(encode_request(request, 1));
    REQUIRE(decoded);
    CHECK(dump(*decoded->request) == dump(request));
    const Reply reply = std::variant_alternative_t<I, Reply>{};
    const auto answer = decode_reply(encode_reply({name_of(request), 1, WireProtocol::Compact}, reply));
    REQUIRE(answer);
    CHECK(dump(*answer->reply) == dump(reply));
  });
}

TEST_CASE("codec: an error instead of a reply arrives as that kind of error", "[rpc]") {
  for (const WireProtocol protocol : {WireProtocol::Compact, WireProtocol::Binary}) {
    const CallHeader call{"dance", 7, protocol};
    const auto unknown = decode_reply(encode_reply(call, Status(StatusCode::NotImplemented, "there is no call dance")));
    REQUIRE(unknown);
    CHECK(unknown->seqid == 7);
    REQUIRE_FALSE(unknown->reply);
    CHECK(unknown->reply.error().code() == StatusCode::NotImplemented);
    CHECK(unknown->reply.error().message() == "dance: there is no call dance");
    const auto failed = decode_reply(encode_reply(call, Status(StatusCode::IoError, "broken")));
    REQUIRE(failed);
    CHECK(failed->reply.error().code() == StatusCode::IoError);
  }
}

}  // namespace
}  // namespace fjord::rpc
