#include "maintenance/bucket_merger.h"

#include <algorithm>
#include <utility>

#include "maintenance/need.h"

namespace fjord::distributor {

NodeIndexes fillable(const BucketEntry& entry, const Context& context, bool moves_paused) {
  // Does not use need_of(), which returns only the most urgent need: whether to fill a replica does not depend on that.
  // After a change of the cluster state, need_of() is Sync for each bucket with a waiting move; that must not move it.
  const std::size_t wanted = wanted_members(entry, *context.snapshot).size();
  const std::size_t missing = wanted - std::min(wanted, entry.intact().size());
  NodeIndexes nodes = entry.catching_up;
  std::erase_if(nodes, [&](auto node) {
    return !context.space.may_fill(node, missing > 0 ? Need::Restore : Need::Move, entry.lack_of(node));
  });
  if (moves_paused) nodes.resize(std::min(nodes.size(), missing));
  return nodes;
}

/// Returns the member from which the other replicas are merged: if there is one, an intact member with space for what
/// it lacks.
std::uint16_t BucketMerger::source_of(const BucketEntry& entry) const {
  for (std::uint16_t node : entry.intact()) {
    if (context_.space.takes_merges(node)) return node;
  }
  return entry.primary();
}

void BucketMerger::merge(BucketEntry& entry) {
  const std::uint16_t primary = entry.merge()->primary = source_of(entry);
  NodeIndexes non_members = entry.non_members();
  NodeIndexes sources = entry.set.nodes;
  std::erase(sources, primary);
  sources.insert(sources.end(), non_members.begin(), non_members.end());
  if (sources.empty()) return merge_members(entry);
  send(entry, primary, std::move(sources), std::move(non_members), [this](BucketEntry& merged, bool ok) {
    if (ok) {
      merge_members(merged);
    } else {
      hooks_.done(merged, false);
    }
  });
}

/// Merges the members first: once they have what non-member replicas held, conditional operations may continue.
void BucketMerger::merge_members(BucketEntry& entry) {
  NodeIndexes targets = entry.set.nodes;
  std::erase(targets, entry.merge()->primary);
  // A complete member that will leave the set is only a source of the merge: the other replicas have what it lacks.
  const NodeIndexes wanted = wanted_members(entry, *context_.snapshot);
  const std::size_t skipped = std::erase_if(
      targets, [&](std::uint16_t node) { return !context_.space.takes_merges(node) && !contains(wanted, node); });
  merge_from_primary(entry, targets, [this, skipped](BucketEntry& merged, bool ok) {
    if (!ok) return hooks_.done(merged, false);
    if (skipped == 0 && !merged.merge()->disturbed && std::exchange(merged.unsettled, false) && !merged.dirty) {
      hooks_.members_equal(merged);
    }
    merge_catching_up(merged);
  });
}

void BucketMerger::merge_catching_up(BucketEntry& entry) {
  Merge& merge = *entry.merge();
  merge.filled = fillable(entry, context_, hooks_.moves_paused());
  // Operations wait until a new set confirms that the members are equal. Replicas that catch up are filled later.
  if (entry.awaited && entry.dirty) merge.filled.clear();
  merge.fill_deferred = merge.filled.size() < entry.catching_up.size();
  merge_from_primary(entry, merge.filled, [this](BucketEntry& merged, bool ok) { hooks_.done(merged, ok); });
}

void BucketMerger::merge_from_primary(BucketEntry& entry, const NodeIndexes& targets, Then then) {
  if (targets.empty()) return then(entry, true);
  struct Count {
    std::size_t left;
    Then then;
    bool ok = true;
  };
  const auto count = std::make_shared<Count>(Count{targets.size(), std::move(then)});
  for (std::uint16_t target : targets) {
    send(entry, target, {entry.merge()->primary}, {}, [count](BucketEntry& merged, bool ok) {
      count->ok = count->ok && ok;
      if (--count->left == 0) count->then(merged, count->ok);
    });
  }
}

void BucketMerger::send(const BucketEntry& entry, std::uint16_t target, NodeIndexes sources, NodeIndexes non_members,
                        Then then) {
  rpc::MergeBucket request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.bucket = entry.bucket;
  request.epoch = entry.set.epoch;
  request.sources = std::move(sources);
  request.non_members = std::move(non_members);
  request.decides = target == entry.merge()->primary;
  // The time limit lets the node answer before this distributor gives up and asks again.
  request.time_limit_ms =
      static_cast<std::uint32_t>(std::chrono::duration_cast<milliseconds>(context_.options.merge_timeout / 2).count());
  request.only_moves = need_of(entry, *context_.snapshot) == Need::Move;
  rpc::call(context_.transport, context_.storage_address(target), std::move(request), context_.options.merge_timeout,
            context_.executor,
            [this, ticket = entry.ticket(), run = entry.merge()->run, target,
             then = std::move(then)](Result<rpc::MergeBucketReply> reply) {
              BucketEntry* known = context_.buckets.find(ticket);
              if (known == nullptr) return;
              if (reply) {
                for (std::uint16_t node : reply->damaged_sources) hooks_.damaged(*known, node);
              }
              const Merge* merge = known->merge();
              if (merge == nullptr || merge->run != run) return;
              const Status status = reply ? reply->status : reply.error();
              on_answer(*known, target, status);
              then(*known, status.is_ok());
            });
}

void BucketMerger::on_answer(BucketEntry& entry, std::uint16_t target, const Status& status) {
  if (!status) {
    entry.merge_problem = NodeId::storage(target).to_string() + ": " + status.to_string();
    failures_.note(entry.bucket, entry.merge_problem);
  }
  // Busy is no failure: a large bucket takes several commands, and each makes progress.
  if (status.code() == StatusCode::Busy) failures_.forget(entry.bucket);
}

}  // namespace fjord::distributor
