#include "unreported_buckets.h"

#include <fmt/format.h>

namespace fjord::distributor {

std::vector<BucketId> owned_buckets(const Context& context) {
  const unsigned bits = context.snapshot->distribution_bits();
  std::vector<BucketId> owned;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
    const BucketId bucket(bits, i);
    if (context.snapshot->distributor_of(bucket) == context.options.index) owned.push_back(bucket);
  }
  return owned;
}

std::vector<BucketId> unreported_buckets(const Context& context, std::size_t more_absent) {
  if (!context.unreported_buckets_may_exist(more_absent)) return {};
  std::vector<BucketId> missing = owned_buckets(context);
  std::erase_if(missing, [&](BucketId bucket) { return !context.buckets.has_gap(bucket); });
  return missing;
}

Status unreported(const Context& context) {
  return {StatusCode::Unavailable,
          "the bucket may be on one of the storage nodes that are not up: " + context.absent_text()};
}

Status too_few_for_new(const Context& context) {
  return {StatusCode::Unavailable, fmt::format("a new bucket needs {} storage nodes that are up; away: {}",
                                               context.replicas_at_birth(), context.absent_text())};
}

}  // namespace fjord::distributor
