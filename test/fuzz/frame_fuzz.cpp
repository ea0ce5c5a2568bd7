#include <cstdint>
#include <string_view>

#include "fjord/common/check.h"
#include "fjord/rpc/codec.h"

/// Frames of both directions: a decoded message is encoded, and the result has to decode.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fjord;
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  const auto call = rpc::decode_request(frame);
  if (call && call->request) {
    const auto again =
        rpc::decode_request(rpc::encode_request(*call->request, call->header.seqid, call->header.protocol));
    FJORD_CHECK(again.has_value() && again->request && again->header.method == call->header.method);
  }
  const auto answer = rpc::decode_reply(frame);
  if (answer && answer->reply) {
    const auto again = rpc::decode_reply(rpc::encode_reply({answer->method, answer->seqid}, answer->reply));
    FJORD_CHECK(again.has_value() && again->reply && again->method == answer->method);
  }
  return 0;
}
