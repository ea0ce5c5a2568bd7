#include "stripe_operations.h"

#include <algorithm>

#include "fjord/common/lost_pages.h"
#include "fjord/rpc/refusal.h"

namespace fjord::storage {

void StripeOperations::apply(const rpc::Apply& request, MonotonicTime posted, const std::vector<std::uint32_t>& indexes,
                             std::vector<rpc::OperationResult>& results) {
  if (request.in_background < request.operations.size()) context_.budget.note_foreground(context_.clock.now() - posted);
  // Operations on one bucket stay in order. Writes go to the engine as one batch over all buckets.
  std::vector<std::uint32_t> order = indexes;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return request.operations[a].bucket.raw() < request.operations[b].bucket.raw();
  });
  prefetch_gets(request, order);
  // A write of the first message may have been reported as not applied, so a duplicate of the message must not apply
  // it.
  const bool is_copy = refused_messages_.contains(request.state_version, request.distributor, request.number);
  for (std::size_t begin = 0; begin < order.size();) {
    BucketId bucket = request.operations[order[begin]].bucket;
    std::size_t end = begin + 1;
    while (end < order.size() && request.operations[order[end]].bucket == bucket) ++end;
    apply_bucket(request, is_copy, std::span(order).subspan(begin, end - begin), results);
    begin = end;
  }
  flush_writes(request, results);
  settle_refused(request, order, results);
}

void StripeOperations::prefetch_gets(const rpc::Apply& request, std::span<const std::uint32_t> indexes) {
  places_.clear();
  for (const std::uint32_t i : indexes) {
    const rpc::StorageOperation& operation = request.operations[i];
    if (operation.kind == rpc::OperationKind::Get) places_.push_back({operation.bucket, operation.gid});
  }
  if (places_.size() > 1) context_.provider->prefetch(places_);
}

/// Settles writes that failed for lack of space, and remembers messages of which a write was refused. NO_SPACE promises
/// that the write is not stored and never will be. Both can be untrue. An earlier duplicate of the message may have
/// been applied, so the stored version is looked up. A later duplicate may find space, so the message's number is
/// remembered. The number is also remembered after NOT_READY, because a later duplicate may find the bucket ready.
void StripeOperations::settle_refused(const rpc::Apply& request, std::span<const std::uint32_t> indexes,
                                      std::vector<rpc::OperationResult>& results) {
  bool is_refused = false;
  for (std::uint32_t i : indexes) {
    const rpc::StorageOperation& operation = request.operations[i];
    const StatusCode code = results[i].status.code();
    if (operation.kind == rpc::OperationKind::Get) continue;
    if (code == StatusCode::NotReady) is_refused = true;
    if (!rpc::is_lack_of_space(code)) continue;
    const Result<spi::StoredDocument> here =
        context_.provider->get(operation.bucket, operation.gid, spi::Parts::HeaderOnly);
    if (here && here->timestamp.us >= operation.timestamp_us) {
      // What was there before that duplicate is not known here.
      results[i].status = Status::ok();
      results[i].timestamp_us = operation.timestamp_us;
    } else {
      is_refused = true;
    }
  }
  if (!is_refused) return;
  if (const auto snapshot = context_.snapshots.get(); snapshot != nullptr) {
    refused_messages_.forget_before(snapshot->state_version());
    if (request.state_version < snapshot->state_version()) return;
  }
  refused_messages_.note(request.state_version, request.distributor, request.number);
}

void StripeOperations::flush_writes(const rpc::Apply& request, std::vector<rpc::OperationResult>& results) {
  if (!write_indexes_.empty()) write_run(request, write_indexes_, results);
  write_indexes_.clear();
}

void StripeOperations::apply_bucket(const rpc::Apply& request, bool is_copy, std::span<const std::uint32_t> indexes,
                                    std::vector<rpc::OperationResult>& results) {
  BucketId bucket = request.operations[indexes.front()].bucket;
  Status owner = context_.check_owner(request.state_version, request.distributor, bucket);
  std::uint64_t epoch = 0;
  ReplicaSet replicas;
  if (owner) {
    Result<ReplicaSet> set = context_.provider->replica_set(bucket);
    if (set) {
      epoch = set->epoch;
      replicas = std::move(*set);
    } else {
      owner = Status(StatusCode::NotReady, bucket.to_string() + " is not on this storage node");
    }
  }
  if (!owner) {
    context_.metrics.refused.add(indexes.size());
    for (std::uint32_t i : indexes) results[i].status = owner;
    return;
  }
  for (std::uint32_t i : indexes) {
    const rpc::StorageOperation& operation = request.operations[i];
    if (operation.epoch < epoch) {
      // The replica set has changed since the message was sent. A delayed message must not change a single replica
      // only.
      results[i].status = Status(StatusCode::WrongDistribution, "sent under an older replica set");
      context_.metrics.refused.add();
    } else if (operation.kind == rpc::OperationKind::Get) {
      // Operations are sorted by bucket, so only the last collected writes can be on this bucket.
      if (!write_indexes_.empty() && request.operations[write_indexes_.back()].bucket == bucket) {
        flush_writes(request, results);
      }
      read(operation, results[i]);
    } else if (is_copy) {
      // The outcome of the first message is no longer known, so the answer says only that this one is refused.
      results[i].status = Status(StatusCode::NotReady, "a copy of a message that was refused");
      context_.metrics.refused.add();
    } else if (operation.kind == rpc::OperationKind::Put || operation.kind == rpc::OperationKind::Remove) {
      Status same = operation.compare ? compare(operation, replicas) : Status::ok();
      if (same) same = space_.check(operation);
      if (same) {
        write_indexes_.push_back(i);
      } else {
        results[i].status = std::move(same);
      }
    } else {
      results[i].status = Status(StatusCode::NotImplemented, "unknown kind of operation");
    }
  }
}

void StripeOperations::write_run(const rpc::Apply& request, std::span<const std::uint32_t> run,
                                 std::vector<rpc::OperationResult>& results) {
  MonotonicTime start = context_.clock.now();
  writes_.clear();
  std::uint64_t puts = 0;
  spi::Durability durability = spi::Durability::Process;
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = context_.snapshots.get();
  for (std::uint32_t i : run) {
    const rpc::StorageOperation& operation = request.operations[i];
    bool remove = operation.kind == rpc::OperationKind::Remove;
    puts += remove ? 0 : 1;
    if (durability_of(operation) == spi::Durability::Sync) durability = spi::Durability::Sync;
    writes_.push_back({.bucket = operation.bucket,
                       .gid = operation.gid,
                       .timestamp = Timestamp{operation.timestamp_us},
                       .remove = remove,
                       .id = operation.id,
                       .header = operation.header,
                       .body = operation.body});
    if (!remove && snapshot != nullptr) spi::set_compression(writes_.back(), *snapshot->types());
    if (operation.token_entry.empty()) continue;
    writes_.push_back({.bucket = operation.bucket,
                       .gid = operation.token_gid,
                       .timestamp = Timestamp{operation.timestamp_us},
                       .remove = true,
                       .id = operation.token_entry,
                       .header = {},
                       .body = {}});
  }
  write_results_.assign(writes_.size(), {});
  context_.provider->apply(writes_, write_results_, durability);
  context_.note_write(write_results_.front().status);
  std::size_t at = 0;
  for (std::uint32_t i : run) {
    rpc::OperationResult& result = results[i];
    result.status = std::move(write_results_[at].status);
    result.existed = write_results_[at].existed;
    result.timestamp_us = request.operations[i].timestamp_us;
    ++at;
    if (!request.operations[i].token_entry.empty()) {
      if (result.status) result.status = std::move(write_results_[at].status);
      ++at;
    }
    if (!result.status) context_.metrics.errors.add();
  }
  const Duration took = context_.clock.now() - start;
  const auto each_ns = static_cast<std::uint64_t>(took.count()) * 1000 / run.size();
  for (std::uint32_t i : run) {
    const rpc::StorageOperation& operation = request.operations[i];
    loads_.add_write(operation.bucket, each_ns, operation.header.size() + operation.body.size());
  }
  const Duration each = took / static_cast<std::int64_t>(run.size());
  context_.metrics.puts.add(puts);
  context_.metrics.removes.add(run.size() - puts);
  context_.metrics.put_seconds.observe_many(each, puts);
  context_.metrics.remove_seconds.observe_many(each, run.size() - puts);
}

void StripeOperations::read(const rpc::StorageOperation& operation, rpc::OperationResult& result) {
  MonotonicTime start = context_.clock.now();
  Result<spi::StoredDocument> found = context_.provider->get(
      operation.bucket, operation.gid, operation.header_only ? spi::Parts::HeaderOnly : spi::Parts::All);
  if (!found) {
    result.status = found.error();
    if (found.error().code() != StatusCode::NotFound) context_.metrics.errors.add();
  } else {
    result.status = found->removed ? Status(StatusCode::NotFound, "removed") : Status::ok();
    result.timestamp_us = found->timestamp.us;
    const LostPages lost;
    result.header = std::move(found->header);
    result.body = std::move(found->body);
    if (lost.any()) {
      result = {};
      result.status = Status(StatusCode::Corruption, operation.gid.to_string() + " was cut off while it was read");
    }
  }
  if (operation.token_gid != GlobalId{} && (result.status || result.status.code() == StatusCode::NotFound)) {
    read_token(operation, result);
  }
  const bool removed = found && found->removed;
  if (damaged_.contains(operation.bucket) && (!operation.even_damaged || removed)) {
    // Drops what was found: the newest version may be lost, and this may be an older version or remove entry.
    result = {};
    result.status =
        Status(StatusCode::Corruption, operation.bucket.to_string() + " is damaged here; another replica knows");
  }
  const Duration took = context_.clock.now() - start;
  loads_.add_read(operation.bucket, static_cast<std::uint64_t>(took.count()) * 1000,
                  result.header.size() + result.body.size());
  context_.metrics.gets.add();
  context_.metrics.get_seconds.observe(took);
}

void StripeOperations::read_token(const rpc::StorageOperation& operation, rpc::OperationResult& result) {
  Result<spi::StoredDocument> found =
      context_.provider->get(operation.bucket, operation.token_gid, spi::Parts::HeaderOnly);
  if (!found) {
    if (found.error().code() != StatusCode::NotFound) result.status = found.error();
    return;
  }
  // Reads the id from a docblock: a get does not return it, and the id contains the other fields of the token entry.
  DocBlockBuilder block;
  const GlobalId gids[] = {operation.token_gid};
  Result<std::size_t> done = context_.provider->read_entries(operation.bucket, gids, block, 1);
  if (!done) {
    result.status = done.error();
    return;
  }
  const std::string bytes = block.take();
  DocBlockReader reader(bytes);
  const std::optional<EntryView> entry = reader.next();
  if (!entry || !entry->removed) return;
  result.token_entry = entry->id;
  result.token_timestamp_us = entry->timestamp.us;
}

Status StripeOperations::compare(const rpc::StorageOperation& operation, const ReplicaSet& set) {
  const bool is_member = set.epoch == operation.epoch && set.contains(context_.options.index);
  Result<spi::StoredDocument> found = context_.provider->get(operation.bucket, operation.gid, spi::Parts::HeaderOnly);
  // Returns Corruption, not NotReady, because a retry by the sender would not help.
  if (!found && found.error().code() == StatusCode::Corruption) return found.error();
  if (!found && found.error().code() != StatusCode::NotFound) {
    return {StatusCode::NotReady, "the version here cannot be read: " + found.error().to_string()};
  }
  const std::uint64_t here = found ? found->timestamp.us : 0;
  const bool is_repetition = here == operation.timestamp_us;
  if (is_repetition || here == operation.read_us || (!is_member && here < operation.read_us)) return Status::ok();
  context_.metrics.refused.add();
  return {StatusCode::TestAndSetFailed, "version " + std::to_string(here) + " is here and not the one that was read, " +
                                            std::to_string(operation.read_us)};
}

spi::Durability StripeOperations::durability_of(const rpc::StorageOperation& operation) const {
  switch (operation.durability) {
    case rpc::Durability::Process:
      return spi::Durability::Process;
    case rpc::Durability::Sync:
      return spi::Durability::Sync;
    case rpc::Durability::Default:
      break;
  }
  return context_.options.durability;
}

}  // namespace fjord::storage
