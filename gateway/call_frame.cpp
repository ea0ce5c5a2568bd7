#include "call_frame.h"

#include <limits>
#include <memory>
#include <thrift/TApplicationException.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/transport/TBufferTransports.h>

namespace fjord::gateway {
namespace {

namespace protocol = apache::thrift::protocol;
using apache::thrift::TApplicationException;
using apache::thrift::transport::TMemoryBuffer;

constexpr std::int32_t kElementsMax = 1000;
constexpr char kCompact = '\x82';
constexpr char kBinary = '\x80';

std::shared_ptr<protocol::TProtocol> make_protocol(bool is_compact, std::shared_ptr<TMemoryBuffer> buffer,
                                                   std::int32_t bytes_max) {
  if (is_compact) return std::make_shared<protocol::TCompactProtocol>(std::move(buffer), bytes_max, kElementsMax);
  return std::make_shared<protocol::TBinaryProtocol>(std::move(buffer), bytes_max, kElementsMax, true, true);
}

/// Reads the frame's header, then the rest with `rest(protocol)`. Throws TException.
template <typename F>
CallHeader read_call(std::string_view frame, F rest) {
  const auto size = static_cast<std::uint32_t>(frame.size());
  auto* bytes = reinterpret_cast<std::uint8_t*>(const_cast<char*>(frame.data()));  // OBSERVE does not write to them.
  const auto in =
      make_protocol(frame.starts_with(kCompact), std::make_shared<TMemoryBuffer>(bytes, size, TMemoryBuffer::OBSERVE),
                    static_cast<std::int32_t>(size));
  CallHeader call;
  call.is_compact = frame.starts_with(kCompact);
  protocol::TMessageType type = protocol::T_CALL;
  in->readMessageBegin(call.method, type, call.seqid);
  if (type != protocol::T_CALL) throw protocol::TProtocolException(protocol::TProtocolException::INVALID_DATA);
  rest(*in);
  return call;
}

std::string write_message(const CallHeader& call, protocol::TMessageType type,
                          const std::function<void(protocol::TProtocol&)>& body) {
  const auto buffer = std::make_shared<TMemoryBuffer>();
  const auto out = make_protocol(call.is_compact, buffer, std::numeric_limits<std::int32_t>::max());
  out->writeMessageBegin(call.method, type, call.seqid);
  body(*out);
  out->writeMessageEnd();
  return buffer->getBufferAsString();
}

}  // namespace

Result<CallHeader> read_header(std::string_view frame) {
  if (frame.size() > std::numeric_limits<std::int32_t>::max() ||
      !(frame.starts_with(kCompact) || frame.starts_with(kBinary))) {
    return Status(StatusCode::Corruption, "the frame is not a Thrift message");
  }
  try {
    return read_call(frame, [](protocol::TProtocol&) {});
  } catch (const apache::thrift::TException& e) {
    return Status(StatusCode::Corruption, std::string("malformed frame: ") + e.what());
  }
}

Status read_argument(std::string_view frame, apache::thrift::TBase& argument) {
  try {
    read_call(frame, [&](protocol::TProtocol& in) {
      std::string name;
      protocol::TType type = protocol::T_STOP;
      std::int16_t number = 0;
      in.readStructBegin(name);
      for (in.readFieldBegin(name, type, number); type != protocol::T_STOP; in.readFieldBegin(name, type, number)) {
        if (number == 1 && type == protocol::T_STRUCT) {
          argument.read(&in);
        } else {
          in.skip(type);
        }
        in.readFieldEnd();
      }
    });
  } catch (const apache::thrift::TException& e) {
    return {StatusCode::InvalidArgument, std::string("malformed request: ") + e.what()};
  }
  return Status::ok();
}

std::string write_reply(const CallHeader& call, const apache::thrift::TBase& reply) {
  return write_message(call, protocol::T_REPLY, [&](protocol::TProtocol& out) {
    out.writeStructBegin("");
    out.writeFieldBegin("", protocol::T_STRUCT, 0);
    reply.write(&out);
    out.writeFieldEnd();
    out.writeFieldStop();
    out.writeStructEnd();
  });
}

std::string write_failure(const CallHeader& call, const std::string& message) {
  return write_message(call, protocol::T_EXCEPTION, [&](protocol::TProtocol& out) {
    TApplicationException(TApplicationException::INTERNAL_ERROR, message).write(&out);
  });
}

}  // namespace fjord::gateway
