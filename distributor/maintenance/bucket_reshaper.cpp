#include "maintenance/bucket_reshaper.h"

#include <algorithm>

#include "fjord/common/log.h"

namespace fjord::distributor {
namespace {

constexpr std::size_t kReshapesAtOnce = 4;
// Two halves are joined if their sum is at most this part (1/4) of the limits above which a bucket is split. So a
// bucket is not split and joined again and again.
constexpr std::uint64_t kJoinBelow = 4;

}  // namespace

BucketReshaper::BucketReshaper(Context& context, TunableRegistry& tunables, Hooks hooks)
    : context_(context),
      hooks_(std::move(hooks)),
      entries_(tunables.declare("distributor.bucket_entries_max", context.options.bucket_entries_max)),
      bytes_(tunables.declare("distributor.bucket_bytes_max", context.options.bucket_bytes_max)),
      splits_(context.metrics.counter("fjord_distributor_bucket_splits_total", "Buckets split into halves")),
      joins_(context.metrics.counter("fjord_distributor_bucket_joins_total", "Halves joined to buckets")) {}

void BucketReshaper::forget() {
  queue_.clear();
  queued_.clear();
  works_.clear();
  inspected_.clear();
}

// --- finding work ----------------------------------------------------------------------------------------------------

void BucketReshaper::note_size(BucketEntry& entry, std::uint16_t node, const BucketInfo& info) {
  if (!is_large(info, limits()) || info.entries <= 1) return;
  if (entry.bucket.used_bits() == BucketId::kUsedBitsMax || !entry.is_settled()) return;
  const auto known = inspected_.find(entry.bucket.raw());
  if (known != inspected_.end() && !has_changed(known->second, info)) return;
  inspected_[entry.bucket.raw()] = info;
  inspect({.ticket = entry.ticket(), .node = node, .info = info});
}

void BucketReshaper::inspect(const Inspection& inspection) {
  ask_for_group(inspection, {}, [this, inspection](std::optional<std::uint64_t> first) {
    if (!first) return;  // There is nothing to split: the bucket was emptied meanwhile.
    const std::uint64_t middle = halves_of(inspection.ticket.bucket)[1].position() << BucketId::kCountBits;
    if (*first >= middle) return inspect_one_side(inspection, *first);
    ask_for_group(inspection, middle - 1, [this, inspection, first = *first](std::optional<std::uint64_t> behind) {
      if (!behind) return inspect_one_side(inspection, first);
      inspected(inspection, BucketShape::Divisible);
    });
  });
}

void BucketReshaper::inspect_one_side(const Inspection& inspection, std::uint64_t first_group) {
  if (!is_huge(inspection.info, limits())) return inspected(inspection, BucketShape::OneSided);
  ask_for_group(inspection, first_group, [this, inspection](std::optional<std::uint64_t> second) {
    inspected(inspection, second ? BucketShape::OneSided : BucketShape::OneGroup);
  });
}

void BucketReshaper::inspected(const Inspection& inspection, BucketShape shape) {
  if (!should_split(shape, inspection.info, limits())) {
    log::info("distributor", "{} has {} entries, {} bytes, and a split would leave them together",
              inspection.ticket.bucket.to_string(), inspection.info.entries, inspection.info.bytes);
    return;
  }
  inspected_.erase(inspection.ticket.bucket.raw());
  enqueue({.parent = inspection.ticket.bucket, .buckets = {inspection.ticket}, .set = {}, .missing = {}});
}

void BucketReshaper::ask_for_group(const Inspection& inspection, std::optional<std::uint64_t> after, OnGroup done) {
  rpc::ListEntries request;
  request.bucket = inspection.ticket.bucket;
  request.max_entries = 1;
  request.by_group = true;
  request.from_start = !after;
  request.after_group = after.value_or(0);
  rpc::call(context_.transport, context_.storage_address(inspection.node), std::move(request),
            context_.options.storage_timeout, context_.executor,
            [this, inspection, generation = context_.generation,
             done = std::move(done)](Result<rpc::ListEntriesReply> reply) {
              if (generation != context_.generation) return;
              const bool ok = reply && reply->status && reply->by_group && !reply->damaged;
              if (!ok || context_.buckets.find(inspection.ticket) == nullptr) {
                // The bucket is examined again when its size is reported the next time.
                inspected_.erase(inspection.ticket.bucket.raw());
              } else if (reply->entries.empty()) {
                done(std::nullopt);
              } else {
                done(bucket_of(reply->entries[0].gid, BucketId::kUsedBitsMax).sort_key());
              }
            });
}

void BucketReshaper::look_for_few_bits() {
  const unsigned bits = context_.bucket_bits_min();
  if (bits == context_.snapshot->distribution_bits()) return;
  std::vector<BucketTicket> found;  // Collects the buckets first, since a split changes the database.
  for (auto& [key, entry] : context_.buckets) {
    if (entry.bucket.used_bits() < bits && entry.is_settled()) found.push_back(entry.ticket());
  }
  for (const BucketTicket& ticket : found)
    enqueue({.parent = ticket.bucket, .buckets = {ticket}, .set = {}, .missing = {}});
}

void BucketReshaper::look_for_joins() {
  std::map<std::uint16_t, std::pair<std::vector<BucketTicket>, std::vector<BucketId>>> by_node;
  const BucketEntry* before = nullptr;
  for (auto& [key, entry] : context_.buckets) {
    const unsigned bits = entry.bucket.used_bits();
    const bool siblings = before != nullptr && bits > context_.bucket_bits_min() &&
                          before->bucket.used_bits() == bits &&
                          before->bucket.with_used_bits(bits - 1) == entry.bucket.with_used_bits(bits - 1);
    if (siblings && before->is_settled() && entry.is_settled() && same_nodes(before->set.nodes, entry.set.nodes)) {
      auto& [tickets, buckets] = by_node[entry.set.nodes.front()];
      tickets.push_back(before->ticket());
      buckets.insert(buckets.end(), {before->bucket, entry.bucket});
    }
    before = &entry;
  }
  for (auto& [node, pairs] : by_node) {
    rpc::GetBucketInfo request;
    request.state_version = context_.snapshot->state_version();
    request.distributor = context_.options.index;
    request.buckets = std::move(pairs.second);
    rpc::call(
        context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
        context_.executor,
        [this, generation = context_.generation, lows = std::move(pairs.first)](Result<rpc::GetBucketInfoReply> reply) {
          if (generation == context_.generation && reply && reply->status) consider_joins(lows, reply->reports);
        });
  }
}

void BucketReshaper::consider_joins(const std::vector<BucketTicket>& lows,
                                    const std::vector<rpc::BucketReport>& reports) {
  std::map<BucketId, BucketInfo> sizes;
  for (const rpc::BucketReport& report : reports) sizes[report.bucket] = report.info;
  for (const BucketTicket& low : lows) {
    const BucketId parent = low.bucket.with_used_bits(low.bucket.used_bits() - 1);
    const BucketEntry* other = context_.buckets.find(halves_of(parent)[1]);
    if (other == nullptr || !sizes.contains(low.bucket) || !sizes.contains(other->bucket)) continue;
    const BucketInfo& a = sizes[low.bucket];
    const BucketInfo& b = sizes[other->bucket];
    if ((a.entries + b.entries) * kJoinBelow > entries_limit() || (a.bytes + b.bytes) * kJoinBelow > bytes_limit())
      continue;
    enqueue({.parent = parent, .buckets = {low, other->ticket()}, .set = {}, .missing = {}});
  }
}

void BucketReshaper::enqueue(Work work) {
  if (!queued_.insert(work.parent.raw()).second) return;
  queue_.push_back(std::move(work));
  start_some();
}

void BucketReshaper::start_some() {
  while (works_.size() < kReshapesAtOnce && !queue_.empty()) {
    Work work = std::move(queue_.front());
    queue_.pop_front();
    queued_.erase(work.parent.raw());
    start(std::move(work));
  }
}

/// Returns false if a bucket has other maintenance or no replica set in force; the work is then found again later.
bool BucketReshaper::start(Work work) {
  for (const BucketTicket& ticket : work.buckets) {
    const BucketEntry* entry = context_.buckets.find(ticket);
    if (entry == nullptr || !entry->is_settled()) return false;
  }
  const std::uint64_t number = ++last_number_;
  std::uint32_t writes = 0;
  for (const BucketTicket& ticket : work.buckets) {
    BucketEntry& entry = *context_.buckets.find(ticket);
    entry.apply(event::ReshapeStarted{number});
    writes += entry.writes_under_way;
    if (entry.set.epoch >= work.set.epoch) work.set = entry.set;
  }
  const bool is_join = work.is_join();
  works_.emplace(number, std::move(work));
  if (writes == 0) enter(number, is_join ? Stage::Equalising : Stage::Changing);
  return true;
}

// --- splits and joins in progress ------------------------------------------------------------------------------------

void BucketReshaper::drained(const BucketEntry& drained_entry) {
  const auto at = works_.find(std::get<activity::Reshaping>(drained_entry.activity).number);
  if (at == works_.end() || at->second.stage != Stage::Draining) return;
  for (const BucketTicket& ticket : at->second.buckets) {
    const BucketEntry& entry = *context_.buckets.find(ticket);
    if (entry.writes_under_way > 0) return;
    if (entry.may_differ() || entry.wants_merge() ||
        entry.merges_or_waits()) {  // The last writes to the bucket did not reach all replicas.
      abandon(at->first);
      return;
    }
  }
  enter(at->first, at->second.is_join() ? Stage::Equalising : Stage::Changing);
}

void BucketReshaper::abandon(std::uint64_t number) {
  const Work work = std::move(works_.at(number));
  works_.erase(number);
  for (const BucketTicket& ticket : work.buckets) {
    context_.buckets.find(ticket)->apply(event::Resumed{});
  }
  for (const BucketTicket& ticket : work.buckets) hooks_.bucket_ready(ticket.bucket);
  start_some();
}

void BucketReshaper::enter(std::uint64_t number, Stage stage) {
  Work& work = works_.at(number);
  work.stage = stage;
  if (stage == Stage::Equalising) work.set.epoch = context_.next_epoch(work.set.epoch);
  work.missing = {work.set.nodes.begin(), work.set.nodes.end()};
  for (std::uint16_t node : work.set.nodes) ask(number, node);
}

void BucketReshaper::ask(std::uint64_t number, std::uint16_t node) {
  const Work& work = works_.at(number);
  const auto send = [&](auto request) {
    using Reply = typename decltype(request)::Reply;
    request.state_version = context_.snapshot->state_version();
    request.distributor = context_.options.index;
    rpc::call(context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
              context_.executor, [this, number, node, stage = work.stage](Result<Reply> reply) {
                Status status = reply ? reply->status : reply.error();
                if constexpr (std::is_same_v<Reply, rpc::SetReplicaSetsReply>) {
                  for (std::size_t i = 0; status && i < reply->statuses.size(); ++i) status = reply->statuses[i];
                }
                on_answer(number, stage, node, status);
              });
  };
  if (work.stage == Stage::Equalising) {
    rpc::SetReplicaSets request;
    for (const BucketTicket& ticket : work.buckets) request.buckets.push_back({ticket.bucket, work.set});
    send(std::move(request));
  } else if (work.is_join()) {
    rpc::JoinBuckets request;
    request.parent = work.parent;
    request.epoch = work.set.epoch;
    send(request);
  } else {
    rpc::SplitBucket request;
    request.bucket = work.parent;
    request.epoch = work.set.epoch;
    send(request);
  }
}

void BucketReshaper::on_answer(std::uint64_t number, Stage stage, std::uint16_t node, const Status& status) {
  const auto at = works_.find(number);
  if (at == works_.end() || at->second.stage != stage || !at->second.missing.contains(node)) return;
  Work& work = at->second;
  if (!status) {
    // Retries until a new cluster state says that this node is away, because other replicas may have done the step
    // already.
    context_.executor.post_after(context_.options.retry_delay, [this, number, stage, node] {
      const auto again = works_.find(number);
      if (again != works_.end() && again->second.stage == stage) ask(number, node);
    });
    return;
  }
  work.missing.erase(node);
  if (!work.missing.empty()) return;
  if (stage == Stage::Equalising) {
    enter(number, Stage::Changing);
  } else {
    finish(number);
  }
}

void BucketReshaper::finish(std::uint64_t number) {
  const Work work = std::move(works_.at(number));
  works_.erase(number);
  std::uint64_t last_timestamp_us = 0;
  for (const BucketTicket& ticket : work.buckets) {
    last_timestamp_us = std::max(last_timestamp_us, context_.buckets.find(ticket)->last_timestamp_us);
    context_.buckets.erase(ticket.bucket);
  }
  std::vector<BucketId> made = {work.parent};
  if (!work.is_join()) {
    const auto halves = halves_of(work.parent);
    made.assign(halves.begin(), halves.end());
  }
  for (BucketId bucket : made) {
    BucketEntry& entry = context_.buckets.add(bucket);
    entry.set = {context_.next_epoch(work.set.epoch), work.set.nodes};
    entry.last_timestamp_us = last_timestamp_us;
    hooks_.install(entry);
  }
  (work.is_join() ? joins_ : splits_).add();
  log::info("distributor", "{} {}", work.parent.to_string(), work.is_join() ? "joined" : "split");
  for (const BucketTicket& ticket : work.buckets) hooks_.bucket_ready(ticket.bucket);
  start_some();
}

}  // namespace fjord::distributor
