#include "maintenance/replica_repair.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "fjord/common/log.h"
#include "maintenance/need.h"

namespace fjord::distributor {
namespace {

// Pause before a bucket without an intact member is merged again. It is long, because only another cluster state can
// help.
constexpr Duration kDamagedRetryDelay = seconds(5);

}  // namespace

ReplicaRepair::ReplicaRepair(Context& context, MergeScheduler& merges, ReplicaSetInstaller& installer)
    : context_(context),
      merges_(merges),
      installer_(installer),
      damaged_(
          context.metrics.counter("fjord_distributor_damaged_replicas_total", "Replicas found to have lost something")),
      repaired_(context.metrics.counter("fjord_distributor_repaired_replicas_total",
                                        "Damaged replicas that were made equal to an intact one")),
      unsafely_recovered_(context.metrics.counter("fjord_distributor_accepted_losses_total",
                                                  "Damaged replicas of which an operator accepted what they lost")) {}

void ReplicaRepair::note_damaged(BucketEntry& entry, std::uint16_t node) {
  if (entry.is_damaged(node)) return;
  entry.damaged.push_back(node);
  damaged_.add();
  log::warning("distributor", "the replica of {} on storage.{} has lost something{}", entry.bucket.to_string(), node,
               entry.repairable() ? "" : ", and no member is intact");
  entry.disturb_merge();  // The merge in progress may use the damaged replica as a source and so get too little.
  if (entry.wants_merge()) merges_.enqueue_and_start(entry);
}

Status ReplicaRepair::recover_unsafely(BucketId bucket) {
  if (!context_.ready) return {StatusCode::NotReady, "this distributor does not know its buckets yet"};
  BucketEntry* entry = context_.buckets.find(bucket);
  if (entry == nullptr) return {StatusCode::NotFound, bucket.to_string() + " is not one of this distributor's buckets"};
  if (entry->damaged.empty() || !entry->intact().empty()) {
    return {StatusCode::InvalidArgument, bucket.to_string() + " has an intact replica: nothing is lost"};
  }
  if (std::exchange(entry->unsafe_recovery, true)) return Status::ok();
  log::warning("distributor", "{}: what all its replicas have lost is given up, as an operator says",
               bucket.to_string());
  merges_.enqueue_and_start(*entry);
  return Status::ok();
}

void ReplicaRepair::finish_merge(BucketEntry& entry) {
  if (entry.damaged.empty()) {
    extend(entry);
  } else {
    compare(entry);
  }
}

/// Compares the replicas while no write is in flight: replicas that lack nothing report equal content.
void ReplicaRepair::compare(BucketEntry& entry) {
  entry.apply(event::CompareStarted{});
  NodeIndexes nodes = entry.set.nodes;
  const NodeIndexes& filled = entry.merge()->filled;
  nodes.insert(nodes.end(), filled.begin(), filled.end());
  struct Answers {
    std::size_t left;
    Reports reports;
  };
  const auto answers = std::make_shared<Answers>(Answers{nodes.size(), {}});
  for (std::uint16_t node : nodes) {
    rpc::GetBucketInfo request;
    request.state_version = context_.snapshot->state_version();
    request.distributor = context_.options.index;
    request.buckets = {entry.bucket};
    rpc::call(
        context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
        context_.executor,
        [this, ticket = entry.ticket(), node, answers, asked = nodes.size()](Result<rpc::GetBucketInfoReply> reply) {
          BucketEntry* known = context_.buckets.find(ticket);
          if (known == nullptr) return;
          if (reply && reply->status && reply->reports.size() == 1) answers->reports[node] = reply->reports[0];
          if (--answers->left == 0) on_compared(*known, answers->reports, asked);
        });
  }
}

void ReplicaRepair::on_compared(BucketEntry& entry, const Reports& reports, std::size_t asked) {
  if (reports.size() != asked || entry.merge()->disturbed) {
    merges_.merge_again(entry);
    return;
  }
  entry.damaged.clear();
  for (const auto& [node, report] : reports) {
    if (report.damaged) entry.damaged.push_back(node);
  }
  const bool is_lost = entry.intact().empty();
  if (is_lost && !entry.unsafe_recovery) {
    keep_set(entry);
    return;
  }
  Installation work{.joining = {},
                    .removed = {},
                    .surplus = {},
                    .repaired = entry.damaged,
                    .intact = reports.at(entry.primary()).info,
                    .forget = {},
                    .missing = {},
                    .content = {}};
  const bool equal = std::all_of(reports.begin(), reports.end(),
                                 [&](const auto& report) { return report.second.info.same_content(work.intact); });
  if (!equal) {
    merges_.count_failure();
    merges_.merge_later(entry, MergeScheduler::kRetryDelay);
    return;
  }
  (is_lost ? unsafely_recovered_ : repaired_).add(work.repaired.size());
  entry.unsafe_recovery = false;
  entry.damaged.clear();  // If a replica has lost data again meanwhile, its node reports it again.
  extend(entry, std::move(work));
}

/// Keeps the set while no member is intact. No replica becomes a member: after a merge from damaged replicas, it would
/// claim that lost documents never existed. No replica is deleted, since it may hold what others have lost.
void ReplicaRepair::keep_set(BucketEntry& entry) {
  if (entry.catching_up.empty() && entry.obsolete.empty() &&
      same_nodes(entry.set.nodes, wanted_members(entry, *context_.snapshot))) {
    extend(entry);
    return;
  }
  entry.dirty = false;  // Each member now has everything that was left on any of them.
  entry.unsettled = false;
  merges_.merge_later(entry, kDamagedRetryDelay);
}

void ReplicaRepair::extend(BucketEntry& entry, Installation work) {
  merges_.completed(entry);
  installer_.extend(entry, std::move(work));
}

}  // namespace fjord::distributor
