#include "fjord/rpc/codec.h"

#include <array>
#include <thrift/TApplicationException.h>
#include <utility>

#include "wire.h"

namespace fjord::rpc {
namespace {

using apache::thrift::TApplicationException;
using thrift_protocol::TMessageType;

constexpr std::size_t kCalls = std::variant_size_v<Request>;
constexpr std::size_t kListBytesMin = 1u << 20;
constexpr std::size_t kListBytesPerFrameByte = 40;

template <std::size_t... I>
constexpr std::array<std::string_view, kCalls> names(std::index_sequence<I...>) {
  return {std::variant_alternative_t<I, Request>::kName...};
}
constexpr auto kNames = names(std::make_index_sequence<kCalls>());

/// Returns the index of the named call in Request; kCalls if there is no such call.
std::size_t index_of(std::string_view name) {
  std::size_t i = 0;
  while (i < kCalls && kNames[i] != name) ++i;
  return i;
}

/// Calls `f` with a default-constructed value of alternative `index` of the variant V.
template <typename V, typename F, std::size_t I = 0>
void with_alternative(std::size_t index, F f) {
  if constexpr (I < std::variant_size_v<V>) {
    if (index == I) {
      f(std::variant_alternative_t<I, V>());
    } else {
      with_alternative<V, F, I + 1>(index, std::move(f));
    }
  }
}

template <typename Message>
std::size_t estimate(const Message& message, std::string_view name) {
  SizeEstimate size;
  size(1, message);
  return size.total() + name.size();
}

/// Returns the frame of one Thrift message: an envelope and a struct whose only field is `body`.
template <typename Output, typename Message>
std::string write_message(const std::string& name, TMessageType type, std::int32_t seqid, int field,
                          const Message& body) {
  auto sink = std::make_shared<FrameSink>(estimate(body, name));
  Output protocol(sink);
  protocol.writeMessageBegin(name, type, seqid);
  protocol.writeStructBegin("");
  Writer<Output> writer(protocol);
  writer.always(field, body);
  protocol.writeFieldStop();
  protocol.writeStructEnd();
  protocol.writeMessageEnd();
  return sink->take();
}

template <typename Output>
std::string write_exception(const CallHeader& call, const Status& status) {
  auto sink = std::make_shared<FrameSink>(128 + call.method.size() + status.message().size());
  Output protocol(sink);
  protocol.writeMessageBegin(call.method, thrift_protocol::T_EXCEPTION, call.seqid);
  const bool unknown = status.code() == StatusCode::NotImplemented;
  TApplicationException(unknown ? TApplicationException::UNKNOWN_METHOD : TApplicationException::INTERNAL_ERROR,
                        status.message())
      .write(&protocol);
  protocol.writeMessageEnd();
  return sink->take();
}

struct Envelope {
  std::string name;
  TMessageType type = thrift_protocol::T_CALL;
  std::int32_t seqid = 0;
};

/// Reads the envelope and calls `body(protocol, reader, envelope)` for the rest. Throws TException if malformed.
template <typename Input, typename F>
void read_message(std::string_view frame, F body) {
  auto source = std::make_shared<FrameSource>(frame);
  const auto limit =
      static_cast<std::int32_t>(std::min<std::size_t>(frame.size(), std::numeric_limits<std::int32_t>::max()));
  Input protocol(source, limit);
  Envelope envelope;
  protocol.readMessageBegin(envelope.name, envelope.type, envelope.seqid);
  Reader<Input> reader(protocol, *source, kListBytesMin + kListBytesPerFrameByte * frame.size());
  body(protocol, reader, envelope);
}

/// Reads a frame with read_message() in the protocol that its first byte names. Errors: Corruption if the frame is
/// malformed or in neither protocol.
template <typename F>
Status read_frame(std::string_view frame, F body) {
  constexpr char kCompact = '\x82';
  constexpr char kBinary = '\x80';
  try {
    if (frame.starts_with(kCompact)) {
      read_message<CompactInput>(frame, [&](auto&... arguments) { body(WireProtocol::Compact, arguments...); });
    } else if (frame.starts_with(kBinary)) {
      read_message<BinaryInput>(frame, [&](auto&... arguments) { body(WireProtocol::Binary, arguments...); });
    } else {
      return Status(StatusCode::Corruption, "the frame is not a Thrift message");
    }
  } catch (const apache::thrift::TException& e) {
    return Status(StatusCode::Corruption, std::string("malformed frame: ") + e.what());
  }
  return Status::ok();
}

Status status_of_exception(const TApplicationException& e, const std::string& method) {
  switch (e.getType()) {
    case TApplicationException::UNKNOWN_METHOD:
      return Status(StatusCode::NotImplemented, method + ": " + e.what());
    default:
      return Status(StatusCode::IoError, method + ": the other side failed: " + e.what());
  }
}

}  // namespace

std::string encode_request(const Request& request, std::int32_t seqid, WireProtocol protocol) {
  return std::visit(
      [&](const auto& message) {
        const std::string name = std::decay_t<decltype(message)>::kName;
        return protocol == WireProtocol::Compact
                   ? write_message<CompactOutput>(name, thrift_protocol::T_CALL, seqid, 1, message)
                   : write_message<BinaryOutput>(name, thrift_protocol::T_CALL, seqid, 1, message);
      },
      request);
}

Result<DecodedRequest> decode_request(std::string_view frame) {
  DecodedRequest decoded;
  FJORD_TRY(read_frame(frame, [&](WireProtocol kind, auto&, auto& reader, Envelope& envelope) {
    if (envelope.type != thrift_protocol::T_CALL) throw_malformed("the message is not a call");
    const std::size_t index = index_of(envelope.name);
    decoded.header = {std::move(envelope.name), envelope.seqid, kind};
    with_alternative<Request>(index, [&](auto message) {
      reader.read_struct([&] { reader(1, message); });
      decoded.request.emplace(std::move(message));
    });
    decoded.bytes = frame.size() + reader.list_bytes();
  }));
  return decoded;
}

std::string encode_reply(const CallHeader& call, const Result<Reply>& reply) {
  const bool compact = call.protocol == WireProtocol::Compact;
  if (!reply) {
    return compact ? write_exception<CompactOutput>(call, reply.error())
                   : write_exception<BinaryOutput>(call, reply.error());
  }
  return std::visit(
      [&](const auto& message) {
        return compact ? write_message<CompactOutput>(call.method, thrift_protocol::T_REPLY, call.seqid, 0, message)
                       : write_message<BinaryOutput>(call.method, thrift_protocol::T_REPLY, call.seqid, 0, message);
      },
      *reply);
}

Result<DecodedReply> decode_reply(std::string_view frame) {
  DecodedReply decoded{{}, 0, Status(StatusCode::Corruption, "an answer without a result")};
  FJORD_TRY(read_frame(frame, [&](WireProtocol, auto& protocol, auto& reader, Envelope& envelope) {
    decoded.method = std::move(envelope.name);
    decoded.seqid = envelope.seqid;
    if (envelope.type == thrift_protocol::T_EXCEPTION) {
      TApplicationException exception;
      exception.read(&protocol);
      decoded.reply = status_of_exception(exception, decoded.method);
      return;
    }
    if (envelope.type != thrift_protocol::T_REPLY) throw_malformed("the message is not a reply");
    const std::size_t index = index_of(decoded.method);
    if (index == kCalls) throw_malformed("a reply to an unknown call");
    with_alternative<Reply>(index, [&](auto message) {
      bool there = false;
      reader.read_struct([&] { reader.with_presence(0, message, there); });
      if (there) decoded.reply = Result<Reply>(Reply(std::move(message)));
    });
  }));
  return decoded;
}

}  // namespace fjord::rpc
