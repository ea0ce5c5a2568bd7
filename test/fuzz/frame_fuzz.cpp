#include <cstdint>
#include <string_view>

#include "fjord/rpc/codec.h"

/// Frames of both directions.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view frame(reinterpret_cast<const char*>(data), size);
  static_cast<void>(fjord::rpc::decode_request(frame).has_value());
  static_cast<void>(fjord::rpc::decode_reply(frame).has_value());
  return 0;
}
