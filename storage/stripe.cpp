#include "stripe.h"

#include <algorithm>

#include "bucket_merge.h"
#include "fjord/document/document_id.h"

namespace fjord::storage {

StripeMetrics::StripeMetrics(MetricRegistry& registry)
    : puts(registry.counter("fjord_storage_operations_total", "Operations applied", {{"operation", "put"}})),
      gets(registry.counter("fjord_storage_operations_total", "Operations applied", {{"operation", "get"}})),
      removes(registry.counter("fjord_storage_operations_total", "Operations applied", {{"operation", "remove"}})),
      errors(registry.counter("fjord_storage_errors_total", "Operations that the storage engine could not do")),
      refused(registry.counter("fjord_storage_refused_total",
                               "Operations refused because sender or cluster state were not the current ones")),
      merges(registry.counter("fjord_storage_merges_total", "Merges of a bucket from another replica")),
      merged_entries(registry.counter("fjord_storage_merged_entries_total", "Entries fetched by merges")),
      put_seconds(
          registry.histogram("fjord_storage_operation_seconds", "Time in the storage engine", {{"operation", "put"}})),
      get_seconds(
          registry.histogram("fjord_storage_operation_seconds", "Time in the storage engine", {{"operation", "get"}})),
      remove_seconds(registry.histogram("fjord_storage_operation_seconds", "Time in the storage engine",
                                        {{"operation", "remove"}})) {}

StorageNode::Stripe::Stripe(const StorageNodeOptions& options, Runtime& runtime, rpc::Transport& transport,
                            const rpc::SnapshotHolder& snapshots, std::unique_ptr<spi::PersistenceProvider> provider,
                            unsigned index)
    : options_(options),
      clock_(runtime.clock),
      transport_(transport),
      snapshots_(snapshots),
      metrics_(runtime.metrics),
      provider_(std::move(provider)),
      executor_(runtime.scheduler.make_executor("stripe-" + std::to_string(index))) {}

Status StorageNode::Stripe::check_owner(std::uint64_t version, std::uint16_t distributor, BucketId bucket) const {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = snapshots_.get();
  if (snapshot == nullptr || snapshot->state_version() < version) {
    return {StatusCode::NotReady, "storage node has not got cluster state " + std::to_string(version) + " yet"};
  }
  if (snapshot->state_version() != version || snapshot->distributor_of(bucket) != distributor) {
    return {StatusCode::WrongDistribution, "distributor." + std::to_string(distributor) + " with cluster state " +
                                               std::to_string(version) + " does not own " + bucket.to_string() +
                                               " in cluster state " + std::to_string(snapshot->state_version())};
  }
  return Status::ok();
}

void StorageNode::Stripe::apply(const rpc::Apply& request, const std::vector<std::uint32_t>& indexes,
                                std::vector<rpc::OperationResult>& results) {
  // Operations on one bucket stay in order; the engine gets each bucket's as one run.
  std::vector<std::uint32_t> order = indexes;
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return request.operations[a].bucket.raw() < request.operations[b].bucket.raw();
  });
  for (std::size_t begin = 0; begin < order.size();) {
    BucketId bucket = request.operations[order[begin]].bucket;
    std::size_t end = begin + 1;
    while (end < order.size() && request.operations[order[end]].bucket == bucket) ++end;
    apply_bucket(request, std::span(order).subspan(begin, end - begin), results);
    begin = end;
  }
}

void StorageNode::Stripe::apply_bucket(const rpc::Apply& request, std::span<const std::uint32_t> indexes,
                                       std::vector<rpc::OperationResult>& results) {
  BucketId bucket = request.operations[indexes.front()].bucket;
  Status owner = check_owner(request.state_version, request.distributor, bucket);
  std::uint64_t epoch = 0;
  if (owner) {
    Result<ReplicaSet> set = provider_->replica_set(bucket);
    if (set) {
      epoch = set->epoch;
    } else {
      owner = Status(StatusCode::NotReady, bucket.to_string() + " is not on this storage node");
    }
  }
  if (!owner) {
    metrics_.refused.add(indexes.size());
    for (std::uint32_t i : indexes) results[i].status = owner;
    return;
  }
  write_indexes_.clear();
  auto flush = [&] {
    if (!write_indexes_.empty()) write_run(request, write_indexes_, results);
    write_indexes_.clear();
  };
  for (std::uint32_t i : indexes) {
    const rpc::StorageOperation& operation = request.operations[i];
    if (operation.epoch < epoch) {
      // The set was changed since this was sent: a late message must not reach one replica only.
      results[i].status = Status(StatusCode::WrongDistribution, "sent under an older replica set");
      metrics_.refused.add();
    } else if (operation.kind == rpc::OperationKind::Get) {
      flush();
      read(operation, results[i]);
    } else if (operation.kind == rpc::OperationKind::Put || operation.kind == rpc::OperationKind::Remove) {
      write_indexes_.push_back(i);
    } else {
      results[i].status = Status(StatusCode::NotImplemented, "unknown kind of operation");
    }
  }
  flush();
}

void StorageNode::Stripe::write_run(const rpc::Apply& request, std::span<const std::uint32_t> run,
                                    std::vector<rpc::OperationResult>& results) {
  MonotonicTime start = clock_.now();
  writes_.clear();
  std::uint64_t puts = 0;
  for (std::uint32_t i : run) {
    const rpc::StorageOperation& operation = request.operations[i];
    bool remove = operation.kind == rpc::OperationKind::Remove;
    puts += remove ? 0 : 1;
    writes_.push_back(
        {operation.gid, Timestamp{operation.timestamp_us}, remove, operation.id, operation.header, operation.body});
  }
  write_results_.assign(writes_.size(), {});
  provider_->apply(request.operations[run.front()].bucket, writes_, write_results_);
  for (std::size_t k = 0; k < run.size(); ++k) {
    rpc::OperationResult& result = results[run[k]];
    result.status = std::move(write_results_[k].status);
    result.existed = write_results_[k].existed;
    result.timestamp_us = request.operations[run[k]].timestamp_us;
    if (!result.status) metrics_.errors.add();
  }
  Duration each = (clock_.now() - start) / static_cast<std::int64_t>(run.size());
  metrics_.puts.add(puts);
  metrics_.removes.add(run.size() - puts);
  metrics_.put_seconds.observe_many(each, puts);
  metrics_.remove_seconds.observe_many(each, run.size() - puts);
}

void StorageNode::Stripe::read(const rpc::StorageOperation& operation, rpc::OperationResult& result) {
  MonotonicTime start = clock_.now();
  Result<spi::StoredDocument> found = provider_->get(operation.bucket, operation.gid);
  if (!found) {
    result.status = found.error();
    if (found.error().code() != StatusCode::NotFound) metrics_.errors.add();
  } else {
    result.status = found->removed ? Status(StatusCode::NotFound, "removed") : Status::ok();
    result.timestamp_us = found->timestamp.us;
    result.header = std::move(found->header);
    result.body = std::move(found->body);
  }
  metrics_.gets.add();
  metrics_.get_seconds.observe(clock_.now() - start);
}

Result<std::vector<rpc::BucketReport>> StorageNode::Stripe::bucket_info(const rpc::GetBucketInfo& request) {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = snapshots_.get();
  if (snapshot == nullptr || snapshot->state_version() < request.state_version) {
    return Status(StatusCode::NotReady, "storage node has not got that cluster state yet");
  }
  if (snapshot->state_version() > request.state_version) {
    return Status(StatusCode::WrongDistribution, "the cluster state is newer");
  }
  std::vector<rpc::BucketReport> reports;
  for (BucketId bucket : request.all ? provider_->list_buckets() : request.buckets) {
    if (snapshot->distributor_of(bucket) != request.distributor) continue;
    Result<BucketInfo> info = provider_->bucket_info(bucket);
    Result<ReplicaSet> set = provider_->replica_set(bucket);
    if (!info || !set) continue;
    reports.push_back({bucket, *info, *set});
  }
  return reports;
}

Status StorageNode::Stripe::set_replica_set(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry) {
  FJORD_TRY(check_owner(request.state_version, request.distributor, entry.bucket));
  if (is_deleted_since(request, entry)) return Status::ok();
  // A set that leaves this node out is news for a replica that is here, and no reason to make one.
  bool left_out = entry.replica_set.epoch != 0 && !entry.replica_set.contains(options_.index);
  if (left_out && !provider_->replica_set(entry.bucket)) return Status::ok();
  FJORD_TRY(provider_->create_bucket(entry.bucket));
  FJORD_TRY_ASSIGN(ReplicaSet old, provider_->replica_set(entry.bucket));
  // A replica that is being filled (epoch 0) keeps what it was a member of before; a late copy changes nothing.
  if (entry.replica_set.epoch <= old.epoch) return Status::ok();
  if (old.epoch == 0 && !entry.replica_set.contains(options_.index)) return Status::ok();
  return provider_->set_replica_set(entry.bucket, entry.replica_set);
}

bool StorageNode::Stripe::is_deleted_since(const rpc::SetReplicaSets& request,
                                           const rpc::BucketReplicaSet& entry) const {
  auto deleted = deleted_.find(entry.bucket);
  return request.state_version == deleted_version_ && deleted != deleted_.end() &&
         entry.replica_set.epoch <= deleted->second;
}

Status StorageNode::Stripe::delete_bucket(const rpc::DeleteBuckets& request, BucketId bucket) {
  FJORD_TRY(check_owner(request.state_version, request.distributor, bucket));
  if (deleted_version_ != request.state_version) {
    deleted_version_ = request.state_version;
    deleted_.clear();
  }
  // The bucket was told the set that leaves it out before it is deleted, so every earlier message has no higher epoch.
  if (Result<ReplicaSet> set = provider_->replica_set(bucket)) deleted_[bucket] = set->epoch;
  return provider_->delete_bucket(bucket);
}

void StorageNode::Stripe::merge(rpc::MergeBucket request, rpc::Responder respond) {
  Status owner = check_owner(request.state_version, request.distributor, request.bucket);
  if (!owner) {
    rpc::MergeBucketReply reply;
    reply.status = std::move(owner);
    respond(std::move(reply));
    return;
  }
  BucketMerge::start(*this, std::move(request), std::move(respond));
}

rpc::ListEntriesReply StorageNode::Stripe::list_entries(const rpc::ListEntries& request) {
  rpc::ListEntriesReply reply;
  Result<std::vector<spi::EntryMeta>> entries = provider_->list_entries(request.bucket);
  if (!entries) {
    reply.status = entries.error();
    return reply;
  }
  auto begin = entries->begin();
  if (!request.from_start) {
    begin = std::upper_bound(entries->begin(), entries->end(), request.after,
                             [](const GlobalId& after, const spi::EntryMeta& entry) { return after < entry.gid; });
  }
  std::size_t limit = request.max_entries == 0 ? options_.merge_page_entries : request.max_entries;
  auto end = begin + static_cast<std::ptrdiff_t>(std::min(limit, static_cast<std::size_t>(entries->end() - begin)));
  for (auto it = begin; it != end; ++it) reply.entries.push_back({it->gid, it->timestamp.us, it->removed});
  reply.more = end != entries->end();
  return reply;
}

rpc::FetchEntriesReply StorageNode::Stripe::fetch_entries(const rpc::FetchEntries& request) {
  rpc::FetchEntriesReply reply;
  DocBlockBuilder block;
  std::size_t max_bytes = request.max_bytes == 0 ? options_.merge_block_bytes : request.max_bytes;
  Result<std::size_t> done = provider_->read_entries(request.bucket, request.gids, block, max_bytes);
  if (!done) {
    reply.status = done.error();
    return reply;
  }
  reply.done = static_cast<std::uint32_t>(*done);
  reply.docblock = block.take();
  return reply;
}

StorageNode::Stripe::Totals StorageNode::Stripe::totals() const {
  Totals totals;
  for (BucketId bucket : provider_->list_buckets()) {
    Result<BucketInfo> info = provider_->bucket_info(bucket);
    if (!info) continue;
    ++totals.buckets;
    totals.documents += info->documents;
    totals.bytes += info->bytes;
  }
  return totals;
}

}  // namespace fjord::storage
