#include "maintenance/unhealthy_buckets.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>

namespace fjord::distributor {
namespace {

constexpr std::size_t kBucketsMax = 1000;  ///< Maximum number of buckets in one answer.

std::string too_few_text(const BucketEntry& entry, unsigned redundancy) {
  const std::size_t current = entry.intact().size();
  std::string text = fmt::format("{} of {} replicas {} current", current, redundancy, current == 1 ? "is" : "are");
  if (current == 1) text += ": if it is lost, its documents are lost";
  return text + (entry.catching_up.empty() ? "; no node is there to take another one" : "; a replica is being filled");
}

}  // namespace

bool has_too_few_replicas(const BucketEntry& entry, unsigned redundancy) {
  return entry.has_set_in_force() && entry.intact().size() < redundancy;
}

std::optional<rpc::UnhealthyBucket> problem_of(const BucketEntry& entry, unsigned redundancy) {
  rpc::UnhealthyBucket unhealthy;
  unhealthy.bucket = entry.bucket;
  unhealthy.members = entry.set.nodes;
  unhealthy.damaged = entry.damaged;
  unhealthy.catching_up = entry.catching_up;
  using Kind = rpc::BucketProblem;
  if (const std::string* why = entry.unavailable_because()) {
    unhealthy.kind = Kind::Unavailable;
    unhealthy.reason = *why;
  } else if (!entry.damaged.empty()) {
    unhealthy.kind = entry.repairable() ? Kind::Damaged : Kind::Lost;
    unhealthy.reason = entry.repairable()      ? "a replica is being repaired from an intact one"
                       : entry.unsafe_recovery ? "all replicas have lost something, which is being given up"
                                               : "all replicas have lost something";
  } else if (has_too_few_replicas(entry, redundancy)) {
    unhealthy.kind = Kind::OutOfSync;
    unhealthy.reason = too_few_text(entry, redundancy);
  } else if (!entry.catching_up.empty()) {
    unhealthy.kind = Kind::OutOfSync;
    unhealthy.reason = "a replica is being filled";
  } else if (entry.may_differ()) {
    unhealthy.kind = Kind::OutOfSync;
    unhealthy.reason = "its replicas are being made equal";
  } else if (entry.misplaced || !entry.obsolete.empty()) {
    unhealthy.kind = Kind::OutOfSync;
    unhealthy.reason = "a replica is being moved or removed";
  } else {
    return std::nullopt;
  }
  return unhealthy;
}

rpc::ListUnhealthyBucketsReply list_unhealthy(BucketDatabase& buckets, std::vector<BucketId> unreported,
                                              const std::string& why_unreported, unsigned redundancy,
                                              const rpc::ListUnhealthyBuckets& request) {
  rpc::ListUnhealthyBucketsReply reply;
  const std::size_t most = request.max == 0 ? kBucketsMax : request.max;
  const auto key_of = [](BucketId bucket) { return bucket.sort_key(); };
  std::ranges::sort(unreported, {}, key_of);
  auto gap = std::ranges::lower_bound(unreported, request.from_key, {}, key_of);
  const BucketEntry* entry = buckets.find_from(request.from_key);
  while (entry != nullptr || gap != unreported.end()) {
    const bool is_gap = entry == nullptr || (gap != unreported.end() && key_of(*gap) < key_of(entry->bucket));
    std::optional<rpc::UnhealthyBucket> unhealthy;
    std::uint64_t key = 0;
    if (is_gap) {
      key = key_of(*gap);
      unhealthy = rpc::UnhealthyBucket();
      unhealthy->bucket = *gap++;
      unhealthy->kind = rpc::BucketProblem::Unavailable;
      unhealthy->reason = why_unreported;
    } else {
      key = key_of(entry->bucket);
      unhealthy = problem_of(*entry, redundancy);
      entry = buckets.find_from(key + 1);
    }
    if (!unhealthy || unhealthy->kind < request.at_least) continue;
    if (reply.buckets.size() == most) {
      reply.next_key = key;
      break;
    }
    reply.buckets.push_back(std::move(*unhealthy));
  }
  return reply;
}

}  // namespace fjord::distributor
