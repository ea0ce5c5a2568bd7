#include "transfers.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fjord/document/document_id.h"

namespace fjord::sim {
namespace {

std::string name_of(std::uint16_t storage_node) { return "storage." + std::to_string(storage_node); }

bool is_write(rpc::OperationKind kind) { return kind == rpc::OperationKind::Put || kind == rpc::OperationKind::Remove; }

}  // namespace

void TransferChecker::watch(SimCluster& cluster, bool damage) {
  cluster_ = &cluster;
  damage_ = damage;
}

void TransferChecker::fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

TransferChecker::Node& TransferChecker::node(const std::string& name) {
  Node& node = nodes_[name];
  const std::uint64_t incarnation = cluster_ == nullptr ? 0 : cluster_->incarnation_of(name);
  if (node.incarnation != incarnation) {
    node = {incarnation, {}, {}};
    std::erase_if(transfers_, [&](const auto& transfer) { return transfer.second == name; });
  }
  return node;
}

NetworkObserver::SeeReply TransferChecker::see_sets(const std::string& to, const rpc::SetReplicaSets& request) {
  return [this, to, request](const Result<rpc::Reply>& reply) {
    const auto* told = reply ? std::get_if<rpc::SetReplicaSetsReply>(&*reply) : nullptr;
    if (told == nullptr || !told->status || told->statuses.size() != request.buckets.size()) return;
    for (std::size_t i = 0; i < request.buckets.size(); ++i) {
      if (told->statuses[i]) take_set(to, request, request.buckets[i]);
    }
  };
}

void TransferChecker::take_set(const std::string& name, const rpc::SetReplicaSets& request,
                               const rpc::BucketReplicaSet& told) {
  const std::uint64_t bucket = told.bucket.raw();
  ReplicaSet& known = node(name).sets[bucket];
  // A late duplicate of an earlier set has no effect; this includes the set with epoch 0, which says that the replica
  // is catching up.
  if (told.replica_set.epoch < known.epoch) return;
  known = told.replica_set;
  std::set<std::string>& filling = filling_[{bucket, {request.state_version, request.distributor}}];
  if (known.nodes.empty()) {
    filling.insert(name);
    transfers_.emplace(bucket, name);
    return;
  }
  std::set<std::string>& members = sets_[{bucket, known.epoch}];
  for (const std::uint16_t member : known.nodes) members.insert(name_of(member));
  if (!members.contains(name)) return;
  filling.erase(name);
  if (transfers_.erase({bucket, name}) == 0) return;
  exposure_.note(theorem(1));
  exposure_.note(theorem(2));
}

NetworkObserver::SeeReply TransferChecker::see_apply(const std::string& to, const rpc::Apply& request) {
  struct Short {
    rpc::OperationKind kind;
    BucketId bucket;
    std::uint64_t epoch;
    GlobalId gid;
    std::uint64_t timestamp_us;
    std::uint64_t confirmed;  ///< Epoch of the set that the node had confirmed when the operation arrived.
  };
  std::vector<Short> operations;
  const std::map<std::uint64_t, ReplicaSet>& sets = node(to).sets;
  for (const rpc::StorageOperation& o : request.operations) {
    const auto known = sets.find(o.bucket.raw());
    operations.push_back(
        {o.kind, o.bucket, o.epoch, o.gid, o.timestamp_us, known == sets.end() ? 0 : known->second.epoch});
  }
  return [this, to, operations = std::move(operations), version = request.state_version,
          distributor = request.distributor](const Result<rpc::Reply>& reply) {
    const auto* applied = reply ? std::get_if<rpc::ApplyReply>(&*reply) : nullptr;
    if (applied == nullptr || applied->results.size() != operations.size()) return;
    Node& at = node(to);
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Short& one = operations[i];
      const StatusCode code = applied->results[i].status.code();
      rpc::StorageOperation operation;
      operation.bucket = one.bucket;
      operation.epoch = one.epoch;
      if (one.kind == rpc::OperationKind::Get && (code == StatusCode::Ok || code == StatusCode::NotFound)) {
        check_read_where_complete(to, at, operation);
      }
      if (!is_write(one.kind) || code != StatusCode::Ok) continue;
      check_writes_cease(to, operation, one.confirmed);
      Version& newest = at.newest[one.gid];
      if (one.timestamp_us > newest.timestamp_us) {
        newest = {one.timestamp_us, one.kind == rpc::OperationKind::Remove};
      }
      Taken& taken = taken_[{one.gid, one.timestamp_us}];
      taken.nodes.insert(to);
      if (one.epoch >= taken.epoch) {
        taken.bucket = one.bucket.raw();
        taken.epoch = one.epoch;
        taken.owner = {version, distributor};
      }
    }
  };
}

/// Theorem 5.1: after a node has confirmed a replica set, it takes no more writes of the earlier set. Writes that it
/// took before are allowed; their answers may come later, as disks are slow.
void TransferChecker::check_writes_cease(const std::string& name, const rpc::StorageOperation& operation,
                                         std::uint64_t confirmed) {
  if (confirmed <= operation.epoch) return;
  fail(fmt::format("T5.1: {} takes a write to {} under set {}, and had confirmed set {}", name,
                   operation.bucket.to_string(), operation.epoch, confirmed));
}

/// Theorem 5.3: a read sees all writes, because a replica that is catching up is never read.
void TransferChecker::check_read_where_complete(const std::string& name, const Node& node,
                                                const rpc::StorageOperation& operation) {
  const auto known = node.sets.find(operation.bucket.raw());
  if (known != node.sets.end() && known->second.nodes.empty()) {
    fail(fmt::format("T5.3: {} answers a read of {} while its replica is being filled", name,
                     operation.bucket.to_string()));
  }
  const auto first = transfers_.lower_bound({operation.bucket.raw(), ""});
  if (first != transfers_.end() && first->first == operation.bucket.raw()) exposure_.note(theorem(3));
}

/// Sees only operations without idempotency keys and conditions, whose answers cannot come from an earlier attempt.
NetworkObserver::SeeReply TransferChecker::see_execute(const rpc::Execute& request) {
  std::map<std::size_t, rpc::Operation> plain;
  for (std::size_t i = 0; i < request.operations.size(); ++i) {
    const rpc::Operation& operation = request.operations[i];
    if (!is_write(operation.kind) || rpc::reads_first(operation)) continue;
    plain[i].id = operation.id;
  }
  if (plain.empty()) return {};
  return [this, plain = std::move(plain)](const Result<rpc::Reply>& reply) {
    const auto* executed = reply ? std::get_if<rpc::ExecuteReply>(&*reply) : nullptr;
    if (executed == nullptr) return;
    for (const auto& [i, operation] : plain) {
      if (i < executed->results.size() && executed->results[i].status) {
        check_write_is_everywhere(operation, executed->results[i]);
      }
    }
  };
}

/// Theorem 5.4: an acknowledged write is on all members. It is also sent to nodes that are catching up, but the answer
/// does not wait for them: a node that missed it becomes a member only after a further merge, and I3 compares the
/// replicas.
void TransferChecker::check_write_is_everywhere(const rpc::Operation& operation, const rpc::OperationResult& result) {
  const Result<DocumentId> id = DocumentId::parse(operation.id);
  const auto found = id ? taken_.find({id->gid(), result.timestamp_us}) : taken_.end();
  if (found == taken_.end()) return;
  const Taken& taken = found->second;
  std::set<std::string> wanted;
  const auto members = sets_.find({taken.bucket, taken.epoch});
  if (members != sets_.end()) wanted = members->second;
  const auto filling = filling_.find({taken.bucket, taken.owner});
  if (filling != filling_.end() && !filling->second.empty()) exposure_.note(theorem(4));
  for (const std::string& name : wanted) {
    if (taken.nodes.contains(name)) continue;
    fail(fmt::format("T5.4: the write of {} at {} is acknowledged and is on {} only, without {}", operation.id,
                     result.timestamp_us, fmt::join(taken.nodes, " "), name));
  }
}

NetworkObserver::SeeReply TransferChecker::see_merge(const std::string& to, const rpc::MergeBucket& request) {
  return [this, to, bucket = request.bucket](const Result<rpc::Reply>& reply) {
    const auto* merged = reply ? std::get_if<rpc::MergeBucketReply>(&*reply) : nullptr;
    if (merged != nullptr && merged->status && !damage_) check_newer_stays(to, bucket, merged->entries_copied);
  };
}

/// Theorem 5.5: a write that a node has taken is not replaced by an older version from a transfer.
void TransferChecker::check_newer_stays(const std::string& name, BucketId bucket, std::uint64_t copied) {
  std::map<GlobalId, Version> own;
  for (const auto& [gid, version] : node(name).newest) {
    if (bucket_of(gid, bucket.used_bits()) == bucket) own.emplace(gid, version);
  }
  if (own.empty() || cluster_ == nullptr) return;
  const Result<std::vector<spi::EntryMeta>> entries = cluster_->entries_of(name, bucket);
  if (!entries) return;  // The bucket was split or deleted at the same time.
  if (copied > 0) exposure_.note(theorem(5));
  const Result<spi::Forgotten> forgotten = cluster_->forgotten_of(name, bucket);
  // A later remove may have been written and dropped while this replica was down or catching up. Or the write was never
  // acknowledged and reached no other replica.
  const auto is_closed = [&](const Version& version) {
    return !forgotten || version.timestamp_us < forgotten->removes.us;
  };
  for (const spi::EntryMeta& entry : *entries) {
    const auto taken = own.find(entry.gid);
    if (taken == own.end()) continue;
    if (entry.timestamp.us < taken->second.timestamp_us && !is_closed(taken->second)) {
      fail(fmt::format("T5.5: {} had taken a write at {} to {}, and after a transfer has that of {}", name,
                       taken->second.timestamp_us, bucket.to_string(), entry.timestamp.us));
    }
    own.erase(taken);
  }
  for (const auto& [gid, version] : own) {
    if (version.removed || is_closed(version)) continue;  // The replica may have dropped this version.
    fail(fmt::format("T5.5: {} had taken a write at {} to {}, which is gone after a transfer", name,
                     version.timestamp_us, bucket.to_string()));
  }
}

NetworkObserver::SeeReply TransferChecker::see_delete(const std::string& to, const rpc::DeleteBuckets& request) {
  return [this, to, buckets = request.buckets](const Result<rpc::Reply>& reply) {
    const auto* deleted = reply ? std::get_if<rpc::DeleteBucketsReply>(&*reply) : nullptr;
    if (deleted == nullptr || deleted->statuses.size() != buckets.size()) return;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      if (!deleted->statuses[i]) continue;
      Node& at = node(to);
      at.sets.erase(buckets[i].raw());
      transfers_.erase({buckets[i].raw(), to});
      std::erase_if(at.newest,
                    [&](const auto& one) { return bucket_of(one.first, buckets[i].used_bits()) == buckets[i]; });
    }
  };
}

std::string TransferChecker::check_transfers_end() {
  for (const auto& [name, node] : nodes_) {
    for (const auto& [bucket, set] : cluster_->sets_of(name)) {
      const bool is_member = std::any_of(set.nodes.begin(), set.nodes.end(),
                                         [&](std::uint16_t member) { return name_of(member) == name; });
      if (!is_member) return fmt::format("T5.2: the transfer of {} to {} has not ended", bucket.to_string(), name);
    }
  }
  return {};
}

}  // namespace fjord::sim
