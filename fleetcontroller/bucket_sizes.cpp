#include "bucket_sizes.h"

#include <algorithm>
#include <map>

namespace fjord::fleetcontroller {

void BucketSizes::add(const std::vector<rpc::BucketReport>& reports) {
  std::map<std::uint64_t, std::uint64_t> here;
  for (const rpc::BucketReport& report : reports) {
    here[report.bucket.with_used_bits(bits_).bits()] += report.info.bytes;
  }
  for (const auto& [bucket, bytes] : here) bytes_[bucket] = std::max(bytes_[bucket], bytes);
}

}  // namespace fjord::fleetcontroller
