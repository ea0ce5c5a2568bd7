#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/rpc/messages.h"

/// Messages to bytes and back, exactly as stock Thrift clients speak: each frame is one Thrift message (name, type,
/// sequence id, one struct) in the compact or the binary protocol. A frame here is without the 4-byte length that goes
/// before it on a socket. api/fjord.thrift has the numbers.
///
/// No function here throws, whatever the bytes; memory taken while decoding is bounded by a small multiple of the frame
/// plus 64 MiB. Threading: every thread; nothing is shared.
namespace fjord::rpc {

enum class WireProtocol { Compact, Binary };

/// Name, sequence id and protocol of a call: what its answer needs.
struct CallHeader {
  std::string method;
  std::int32_t seqid = 0;
  WireProtocol protocol = WireProtocol::Compact;
};

struct DecodedRequest {
  CallHeader header;
  std::optional<Request> request;  ///< Empty: there is no such method; answer with NotImplemented.
};

struct DecodedReply {
  std::string method;
  std::int32_t seqid = 0;
  /// NotImplemented: the other side does not know the call. IoError: another Thrift exception.
  Result<Reply> reply;
};

std::string encode_request(const Request& request, std::int32_t seqid, WireProtocol protocol = WireProtocol::Compact);
/// Errors: Corruption, which says that the sender does not speak our protocol.
Result<DecodedRequest> decode_request(std::string_view frame);

/// The answer to `call`. An error instead of a reply travels as a Thrift exception: NotImplemented as UNKNOWN_METHOD,
/// any other as INTERNAL_ERROR.
std::string encode_reply(const CallHeader& call, const Result<Reply>& reply);
/// Errors: Corruption.
Result<DecodedReply> decode_reply(std::string_view frame);

}  // namespace fjord::rpc
