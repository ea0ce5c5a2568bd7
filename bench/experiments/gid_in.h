#pragma once

#include <string>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"

namespace fjord {

/// Returns the id of document `number` of an experiment: it lies in `bucket`, with uniformly distributed other bits.
inline GlobalId gid_in(BucketId bucket, std::uint64_t number) {
  const std::uint64_t hash = mix64(number, 1);
  std::string bytes;
  put_fixed(bytes, static_cast<std::uint32_t>((hash >> 32) << bucket.used_bits() | bucket.bits()));
  put_fixed(bytes, hash);
  return GlobalId::from_bytes(bytes);
}

}  // namespace fjord
