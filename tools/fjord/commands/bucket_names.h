#pragma once

#include <charconv>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"

/// Names of buckets on the command line.
namespace fjord::cli {

inline std::string bucket_name(BucketId bucket) { return fmt::format("{:#x}", bucket.raw()); }

/// Parses a name with or without "0x". Errors: InvalidArgument.
inline Result<BucketId> bucket_named(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  std::uint64_t raw = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), raw, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || !BucketId(raw).is_valid()) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("\"{}\" is no bucket; one looks like 0x4000000000000012", text));
  }
  return BucketId(raw);
}

}  // namespace fjord::cli
