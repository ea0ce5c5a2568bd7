#include "bucket_health_counter.h"

#include <algorithm>
#include <utility>

#include "maintenance/need.h"
#include "unreported_buckets.h"

namespace fjord::distributor {

BucketHealthCounter::BucketHealthCounter(Context& context)
    : context_(context),
      buckets_(context.metrics.gauge("fjord_distributor_buckets", "Buckets owned")),
      out_of_sync_(context.metrics.gauge("fjord_distributor_buckets_out_of_sync", "Buckets that wait for a merge")),
      collecting_(context.metrics.gauge("fjord_distributor_buckets_collecting",
                                        "Buckets of which storage nodes are asked since less than 2 s")),
      unavailable_(context.metrics.gauge("fjord_distributor_buckets_unavailable", "Buckets that cannot be served")),
      damaged_(context.metrics.gauge("fjord_distributor_buckets_damaged",
                                     "Buckets of which a replica has lost something and is not repaired")),
      failing_(context.metrics.gauge("fjord_distributor_buckets_failing",
                                     "Buckets whose merges have failed several times in a row")),
      unplaced_(context.metrics.gauge("fjord_distributor_buckets_unplaced",
                                      "Buckets for which the cluster state names no storage node")),
      unreported_(context.metrics.gauge("fjord_distributor_buckets_unreported",
                                        "Buckets that may exist only on storage nodes that are not up")),
      under_replicated_(
          context.metrics.gauge("fjord_distributor_buckets_under_replicated",
                                "Buckets that are served with fewer current replicas than they should have")) {}

void BucketHealthCounter::count(rpc::PollReply& reply, MergeFailures::Summary failing) {
  reply.buckets = context_.buckets.size();
  count_known(reply);
  count_unknown(reply);
  reply.buckets_unplaced = unplaced_buckets();
  const std::size_t unreported = context_.ready && reply.buckets_unplaced == 0 ? unreported_buckets() : 0;
  if (context_.ready) {  // Before the database is complete, count_unknown() counts the buckets that it lacks.
    reply.buckets += reply.buckets_unplaced + unreported;
    reply.buckets_unavailable += reply.buckets_unplaced + unreported;
  }
  reply.buckets_failing = failing.buckets;
  reply.failing = std::move(failing.newest);
  buckets_.set(static_cast<double>(reply.buckets));
  out_of_sync_.set(static_cast<double>(reply.buckets_out_of_sync));
  collecting_.set(static_cast<double>(reply.buckets_collecting));
  unavailable_.set(static_cast<double>(reply.buckets_unavailable));
  damaged_.set(static_cast<double>(reply.buckets_damaged));
  failing_.set(static_cast<double>(reply.buckets_failing));
  unplaced_.set(static_cast<double>(reply.buckets_unplaced));
  unreported_.set(static_cast<double>(unreported));
  under_replicated_.set(static_cast<double>(reply.buckets_under_replicated));
}

void BucketHealthCounter::count_known(rpc::PollReply& reply) const {
  const std::size_t wanted = context_.snapshot == nullptr ? 0 : wanted_replicas(*context_.snapshot);
  const bool is_short_wait = is_asked_since_shortly();
  for (const auto& [key, entry] : context_.buckets) {
    const bool is_collected = entry.is<activity::Collecting>();
    const bool is_collecting = is_collected && is_short_wait && !entry.unreachable;
    const bool is_unavailable = (is_collected && !is_collecting) || entry.is<activity::Unavailable>();
    reply.buckets_out_of_sync += is_collecting || (!is_unavailable && entry.wants_merge()) ? 1 : 0;
    reply.buckets_collecting += is_collecting ? 1 : 0;
    reply.buckets_unavailable += is_unavailable ? 1 : 0;
    reply.buckets_damaged += entry.damaged.empty() ? 0 : 1;
    reply.buckets_under_replicated += !is_collected && !is_unavailable && entry.intact().size() < wanted ? 1 : 0;
  }
}

/// Counts buckets that are not in the database as unknown until the storage nodes have reported. Otherwise "no buckets"
/// would look like a healthy empty cluster.
void BucketHealthCounter::count_unknown(rpc::PollReply& reply) {
  if (context_.ready || context_.snapshot == nullptr) return;
  const std::uint64_t owned = owned_buckets().size();
  if (owned <= reply.buckets) return;
  const std::uint64_t unknown = owned - reply.buckets;
  reply.buckets = owned;
  if (is_asked_since_shortly() && !context_.unreported_buckets_may_exist()) {
    reply.buckets_collecting += unknown;
    reply.buckets_out_of_sync += unknown;
  } else {
    reply.buckets_unavailable += unknown;
  }
}

/// Returns all buckets of this distributor, empty or not.
const std::vector<BucketId>& BucketHealthCounter::owned_buckets() {
  if (!owned_) owned_ = fjord::distributor::owned_buckets(context_);
  return *owned_;
}

/// Returns the number of buckets that no storage node has reported, whole or in part, while enough nodes are away that
/// these may hold them. Operations on these buckets get Unavailable, because it is unknown whether the buckets exist.
std::size_t BucketHealthCounter::unreported_buckets() {
  if (context_.snapshot == nullptr || !context_.unreported_buckets_may_exist()) return 0;
  const std::vector<BucketId>& owned = owned_buckets();
  return static_cast<std::size_t>(
      std::count_if(owned.begin(), owned.end(), [&](BucketId bucket) { return context_.buckets.has_gap(bucket); }));
}

/// Returns the number of buckets of this distributor for which the cluster state names no storage node and of which no
/// node has a replica. They can neither be read nor written.
std::size_t BucketHealthCounter::unplaced_buckets() const {
  if (context_.snapshot == nullptr || context_.snapshot->state_version() == 0 || !none_is_placed_) return 0;
  const unsigned bits = context_.snapshot->distribution_bits();
  std::size_t unplaced = 0;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
    const BucketId bucket(bits, i);
    if (context_.snapshot->distributor_of(bucket) != context_.options.index) continue;
    unplaced += context_.snapshot->ideal_nodes(bucket).empty() && context_.buckets.overlapping(bucket).empty() ? 1 : 0;
  }
  return unplaced;
}

void BucketHealthCounter::state_changed() {
  owned_.reset();
  none_is_placed_ = is_nothing_placed();
}

/// Returns true if the cluster state places no bucket at all, because no node is up and has a capacity. It is enough to
/// look at one bucket: placement finds nodes for all buckets or for none.
bool BucketHealthCounter::is_nothing_placed() const {
  const unsigned bits = context_.snapshot->distribution_bits();
  return context_.snapshot->ideal_nodes(BucketId(bits, 0)).empty();
}

}  // namespace fjord::distributor
