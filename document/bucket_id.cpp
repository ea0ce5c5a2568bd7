#include "fjord/document/bucket_id.h"

#include <fmt/format.h>

namespace fjord {
namespace {

std::uint64_t reverse_bits(std::uint64_t v) {
  v = ((v >> 1) & 0x5555555555555555U) | ((v & 0x5555555555555555U) << 1);
  v = ((v >> 2) & 0x3333333333333333U) | ((v & 0x3333333333333333U) << 2);
  v = ((v >> 4) & 0x0f0f0f0f0f0f0f0fU) | ((v & 0x0f0f0f0f0f0f0f0fU) << 4);
  return __builtin_bswap64(v);
}

}  // namespace

std::uint64_t BucketId::sort_key() const {
  // Reversing all bits also reverses the count in the low six bits, so the count is written there again.
  return (reverse_bits(raw_) & ~std::uint64_t{0x3f}) | used_bits();
}

std::string BucketId::to_string() const { return fmt::format("bucket 0x{:016x}", raw_); }

}  // namespace fjord
