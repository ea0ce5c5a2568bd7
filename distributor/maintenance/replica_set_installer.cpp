#include "maintenance/replica_set_installer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fjord/common/log.h"
#include "maintenance/need.h"

namespace fjord::distributor {
namespace {

// Pause before another attempt to delete a surplus replica.
constexpr Duration kDeleteRetryDelay = milliseconds(100);
// Number of replica sets in one message. A storage node that has stored these answers, and their buckets are served.
constexpr std::size_t kBucketsInOneMessage = 512;

/// Lets damaged members receive the set late. If only a damaged member had the set, a recovery would rely on it, with
/// no member to repair it from.
void join_damaged_late(const BucketEntry& entry, Installation& work) {
  const NodeIndexes& damaged = work.repaired.empty() ? entry.damaged : work.repaired;
  NodeIndexes late = work.joining;
  for (std::uint16_t node : entry.set.nodes) {
    if (contains(damaged, node) && !contains(late, node)) late.push_back(node);
  }
  if (late.size() < entry.set.nodes.size()) work.joining = std::move(late);
}

}  // namespace

void ReplicaSetInstaller::install(BucketEntry& entry, Installation work) {
  begin(entry, std::move(work));
  send({entry.bucket});
}

void ReplicaSetInstaller::begin(BucketEntry& entry, Installation work) {
  join_damaged_late(entry, work);
  work.missing = {entry.set.nodes.begin(), entry.set.nodes.end()};
  for (std::uint16_t node : work.joining) work.missing.erase(node);
  entry.apply(event::Install{std::make_unique<Installation>(std::move(work))});
}

void ReplicaSetInstaller::send(const std::vector<BucketId>& buckets) {
  std::map<std::uint16_t, std::vector<BucketId>> by_node;
  for (BucketId bucket : buckets) {
    const BucketEntry& entry = *context_.buckets.find(bucket);
    for (std::uint16_t node : entry.installation()->missing) by_node[node].push_back(bucket);
    for (std::uint16_t node : entry.catching_up) by_node[node].push_back(bucket);
  }
  for (const auto& [node, list] : by_node) {
    for (std::size_t i = 0; i < list.size(); i += kBucketsInOneMessage) {
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(i);
      send_to(node, {begin, begin + static_cast<std::ptrdiff_t>(std::min(list.size() - i, kBucketsInOneMessage))});
    }
  }
}

void ReplicaSetInstaller::extend(BucketEntry& entry, Installation work) {
  const Merge& merge = *entry.merge();
  const NodeIndexes before = entry.set.nodes;
  // While replicas wait to be filled, the members that they will replace stay.
  NodeIndexes wanted = wanted_members(entry, *context_.snapshot);
  if (merge.fill_deferred) {
    wanted = before;
    wanted.insert(wanted.end(), merge.filled.begin(), merge.filled.end());
  }
  work.surplus = std::exchange(entry.obsolete, {});
  for (std::uint16_t node : before) {
    if (!contains(wanted, node)) work.surplus.push_back(node);
  }
  work.removed = work.surplus;
  entry.set = {context_.next_epoch(entry.set.epoch), std::move(wanted)};
  for (std::uint16_t node : entry.set.nodes) {
    if (!contains(before, node)) work.joining.push_back(node);
  }
  // All members are new ones, so there is no older member that could receive the set first.
  if (work.joining.size() == entry.set.nodes.size()) work.joining.clear();
  std::erase_if(entry.catching_up, [&](auto node) { return !merge.fill_deferred || entry.set.contains(node); });
  entry.misplaced = merge.fill_deferred && is_misplaced(entry, *context_.snapshot);
  entry.dirty = false;
  entry.unsettled = false;
  install(entry, std::move(work));
}

void ReplicaSetInstaller::send_to(std::uint16_t node, const std::vector<BucketId>& buckets) {
  rpc::SetReplicaSets request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  std::vector<SentSet> sent;
  for (BucketId bucket : buckets) {
    const BucketEntry& entry = *context_.buckets.find(bucket);
    rpc::BucketReplicaSet& set = request.buckets.emplace_back();
    set.bucket = bucket;
    const Installation* work = entry.installation();
    // A node that is catching up keeps the set that it has. If that set names it as a member, it has to be told that it
    // no longer is one.
    const bool has_to_learn = work != nullptr && work->missing.contains(node);
    if (!entry.is_catching_up(node) || has_to_learn) set.replica_set = entry.set;
    sent.push_back({entry.ticket(), set.replica_set.epoch});
    if (work == nullptr) continue;
    if (work->forget) {
      set.forget_removes_before_us = work->forget->removes_us;
      set.forget_tokens_before_us = work->forget->tokens_us;
    }
    if (contains(work->repaired, node)) {
      set.repaired = true;
      set.intact = work->intact;
    }
  }
  rpc::call(context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
            context_.executor, [this, node, sent = std::move(sent)](Result<rpc::SetReplicaSetsReply> reply) {
              on_answer(node, sent, std::move(reply));
            });
}

/// Counts an answer only for the set that was sent. The answer to an earlier set, or to a message that the node is
/// catching up, may arrive while the node is asked to confirm the present set.
void ReplicaSetInstaller::on_answer(std::uint16_t node, const std::vector<SentSet>& sent,
                                    Result<rpc::SetReplicaSetsReply> reply) {
  const bool answered = reply && reply->status && reply->statuses.size() == sent.size();
  const bool has_contents = answered && reply->contents.size() == sent.size();
  std::vector<BucketTicket> again;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    BucketEntry* entry = context_.buckets.find(sent[i].ticket);
    if (entry == nullptr) continue;
    Installation* work = entry->installation();
    const bool is_awaited = work != nullptr && work->missing.contains(node) && sent[i].epoch == entry->set.epoch;
    const bool is_catching_up = sent[i].epoch == 0 && entry->is_catching_up(node);
    if (!answered || !reply->statuses[i]) {
      if (is_awaited || is_catching_up) again.push_back(sent[i].ticket);
    } else if (is_awaited) {
      if (has_contents) compare_content(*entry, node, reply->contents[i]);
      work->missing.erase(node);
      if (work->missing.empty()) confirmed_by_all(*entry);
    }
  }
  if (!born_.empty()) send(std::exchange(born_, {}));
  if (again.empty()) return;
  context_.executor.post_after(context_.options.retry_delay, [this, node, again = std::move(again)] {
    std::vector<BucketId> buckets;
    for (const BucketTicket& ticket : again) {
      if (context_.buckets.find(ticket) != nullptr) buckets.push_back(ticket.bucket);
    }
    if (!buckets.empty()) send_to(node, buckets);
  });
}

/// Compares the contents of members. An abandoned write may arrive after a merge has read a member and before the
/// member has the new set. Under the new set, no abandoned write is accepted and none is in flight.
void ReplicaSetInstaller::compare_content(BucketEntry& entry, std::uint16_t node, const BucketInfo& content) {
  if (!entry.set.contains(node) || entry.is_damaged(node)) return;
  std::optional<BucketInfo>& first = entry.installation()->content;
  if (!first) {
    first = content;
  } else if (!first->same_content(content) && !entry.dirty) {
    log::info("distributor", "{}: a write that was given up has reached some members only", entry.bucket.to_string());
    entry.dirty = true;
  }
}

/// Continues when all nodes that were asked have the set: sends it to the nodes that joined, then to those outside of
/// it, and then puts it in force. Older members get it first: if only new members had it, a recovery could rely on them
/// without an older member, whose older set would be believed when it came back. Nodes outside of the set get it last:
/// until then, they believe that they are members.
void ReplicaSetInstaller::confirmed_by_all(BucketEntry& entry) {
  Installation& work = *entry.installation();
  NodeIndexes next = std::exchange(work.joining, {});
  if (next.empty()) next = std::exchange(work.removed, {});
  if (!next.empty()) {
    work.missing.insert(next.begin(), next.end());
    for (std::uint16_t node : next) send_to(node, {entry.bucket});
    return;
  }
  if (is_birth(entry.set)) return confirm_birth(entry);
  const Installation done = std::move(work);
  entry.apply(event::Installed{});
  entry.deletes_under_way += static_cast<std::uint32_t>(done.surplus.size());
  for (std::uint16_t node : done.surplus) delete_surplus(entry, node);
  in_force_(entry, done);
}

void ReplicaSetInstaller::confirm_birth(BucketEntry& entry) {
  entry.set.epoch = context_.next_epoch(entry.set.epoch);
  entry.installation()->missing = {entry.set.nodes.begin(), entry.set.nodes.end()};
  born_.push_back(entry.bucket);
}

void ReplicaSetInstaller::delete_surplus(BucketEntry& entry, std::uint16_t node) {
  if (!context_.snapshot->storage_serves(node)) {  // The node is away; when it is back it reports its replicas.
    --entry.deletes_under_way;
    return;
  }
  rpc::DeleteBuckets request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.buckets = {entry.bucket};
  rpc::call(context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
            context_.executor, [this, ticket = entry.ticket(), node](Result<rpc::DeleteBucketsReply> reply) {
              BucketEntry* known = context_.buckets.find(ticket);
              if (known == nullptr) return;
              if (reply && reply->status && reply->statuses.size() == 1 && reply->statuses[0]) {
                --known->deletes_under_way;
              } else {
                context_.later(*known, kDeleteRetryDelay,
                               [this, node](BucketEntry& same) { delete_surplus(same, node); });
              }
            });
}

}  // namespace fjord::distributor
