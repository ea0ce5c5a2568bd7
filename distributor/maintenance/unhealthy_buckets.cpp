#include "maintenance/unhealthy_buckets.h"

namespace fjord::distributor {
namespace {

constexpr std::size_t kBucketsMax = 1000;  ///< Maximum number of buckets in one answer.

}  // namespace

std::optional<rpc::BucketTrouble> problem_of(const BucketEntry& entry) {
  rpc::BucketTrouble trouble;
  trouble.bucket = entry.bucket;
  trouble.members = entry.set.nodes;
  trouble.damaged = entry.damaged;
  trouble.filling = entry.catching_up;
  using Kind = rpc::BucketTroubleKind;
  if (const std::string* why = entry.unavailable_because()) {
    trouble.kind = Kind::Unavailable;
    trouble.reason = *why;
  } else if (!entry.damaged.empty()) {
    trouble.kind = entry.repairable() ? Kind::Damaged : Kind::Lost;
    trouble.reason = entry.repairable()      ? "a replica is being repaired from an intact one"
                     : entry.unsafe_recovery ? "all replicas have lost something, which is being given up"
                                             : "all replicas have lost something";
  } else if (!entry.catching_up.empty()) {
    trouble.kind = Kind::OutOfSync;
    trouble.reason = "a replica is being filled";
  } else if (entry.may_differ()) {
    trouble.kind = Kind::OutOfSync;
    trouble.reason = "its replicas are being made equal";
  } else if (entry.misplaced || !entry.obsolete.empty()) {
    trouble.kind = Kind::OutOfSync;
    trouble.reason = "a replica is being moved or removed";
  } else {
    return std::nullopt;
  }
  return trouble;
}

rpc::ListTroublesReply list_unhealthy(BucketDatabase& buckets, const rpc::ListTroubles& request) {
  rpc::ListTroublesReply reply;
  const std::size_t most = request.max == 0 ? kBucketsMax : request.max;
  for (const BucketEntry* entry = buckets.find_from(request.from_key); entry != nullptr;
       entry = buckets.find_from(entry->bucket.sort_key() + 1)) {
    std::optional<rpc::BucketTrouble> trouble = problem_of(*entry);
    if (!trouble || trouble->kind < request.at_least) continue;
    if (reply.troubles.size() == most) {
      reply.next_key = entry->bucket.sort_key();
      break;
    }
    reply.troubles.push_back(std::move(*trouble));
  }
  return reply;
}

}  // namespace fjord::distributor
