#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/rpc/messages.h"

/// Encodes messages to bytes and back, compatible with stock Thrift clients. Each frame is one Thrift message (name,
/// type, sequence id, one struct) in the compact or the binary protocol, without the 4-byte length that precedes it on
/// a socket. The field numbers are those of api/fjord.thrift.
///
/// No function here throws, whatever the bytes. Decoding takes at most 1 MiB plus 40 times the frame's size: an answer
/// of an operation takes 5 bytes in a frame and 192 in memory. Threading: any thread; there is no shared state.
namespace fjord::rpc {

enum class WireProtocol { Compact, Binary };

/// The part of a call that its answer repeats: name, sequence id and protocol.
struct CallHeader {
  std::string method;
  std::int32_t seqid = 0;
  WireProtocol protocol = WireProtocol::Compact;
};

struct DecodedRequest {
  CallHeader header;
  std::optional<Request> request;  ///< Empty if the method is unknown; the receiver then answers NotImplemented.
  std::size_t bytes = 0;           ///< Memory that the request takes, about.
};

struct DecodedReply {
  std::string method;
  std::int32_t seqid = 0;
  /// NotImplemented: the receiver does not know the call. IoError: the receiver sent another Thrift exception.
  Result<Reply> reply;
};

std::string encode_request(const Request& request, std::int32_t seqid, WireProtocol protocol = WireProtocol::Compact);
/// Errors: Corruption if the frame is not a call in one of the two protocols.
Result<DecodedRequest> decode_request(std::string_view frame);

/// Returns the frame that answers `call`. An error in place of a reply becomes a Thrift exception: NotImplemented is
/// UNKNOWN_METHOD, any other error INTERNAL_ERROR.
std::string encode_reply(const CallHeader& call, const Result<Reply>& reply);
/// Errors: Corruption if the frame is not an answer in one of the two protocols.
Result<DecodedReply> decode_reply(std::string_view frame);

}  // namespace fjord::rpc
