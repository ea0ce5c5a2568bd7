#include "fjord/rpc/cluster_snapshot.h"

#include <fmt/format.h>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::rpc {
namespace {

// Largest number of distribution bits for which the placement of all buckets is computed in advance. With more bits it
// is computed for each call.
constexpr unsigned kTableBits = 16;

}  // namespace

Result<std::shared_ptr<const ClusterSnapshot>> ClusterSnapshot::update(
    const std::shared_ptr<const ClusterSnapshot>& old, const ClusterInfo& newer) {
  if (old != nullptr) {
    FJORD_TRY(old->check_same_cluster(newer));
    // A client or distributor may pass on a state from before an election. It brings nothing new.
    const bool is_old_news = newer.term < old->term() && !newer.state.empty() &&
                             newer.state_version <= old->state_version() &&
                             newer.config_version <= old->config_version();
    if (is_old_news) return old;
    FJORD_TRY(old->check_same_history(newer));
    if (!old->brings_news(newer)) return old;
  }
  auto next = std::shared_ptr<ClusterSnapshot>(new ClusterSnapshot(old ? *old : ClusterSnapshot()));
  if (old == nullptr) {
    next->state_ = std::make_shared<const ClusterState>();
    next->places_state_ = next->state_;
    next->distribution_ = std::make_shared<const DistributionConfig>();
    next->table_ = std::make_shared<const std::vector<Placement>>();
    FJORD_TRY(next->take_schemas(newer));
  } else if (!newer.schemas.empty() && newer.schema_version > old->schema_version()) {
    FJORD_TRY(next->take_schemas(newer));
  }
  if (!newer.state.empty() && newer.state_version > next->state_version()) {
    if (newer.schema_version > next->schema_version()) {
      // The message is meant for an earlier process at this address, which had the schemas.
      return Status(StatusCode::NotReady, "cluster state " + std::to_string(newer.state_version) +
                                              " comes without the schemas that go with it, version " +
                                              std::to_string(newer.schema_version));
    }
    FJORD_TRY(next->take_state(newer));
  }
  FJORD_TRY(next->take_pending(newer));
  next->info_.term = newer.term;
  if (newer.cluster_id != 0) next->info_.cluster_id = newer.cluster_id;
  if (newer.lease_us != 0) next->info_.lease_us = newer.lease_us;
  if (newer.config_version > next->info_.config_version) {
    next->info_.config_version = newer.config_version;
    next->info_.config = newer.config;
  }
  if (old != nullptr && next->info_ == old->info_) return old;
  return std::shared_ptr<const ClusterSnapshot>(std::move(next));
}

bool ClusterSnapshot::brings_news(const ClusterInfo& newer) const {
  if (newer == ClusterInfo{}) return false;
  return newer.term > info_.term || (newer.cluster_id != 0 && info_.cluster_id == 0) ||
         (!newer.state.empty() && newer.state_version > info_.state_version) ||
         (!newer.schemas.empty() && newer.schema_version > info_.schema_version) ||
         (!newer.pending_state.empty() &&
          (newer.pending_state != info_.pending_state || newer.pending_distribution != info_.pending_distribution)) ||
         (newer.lease_us != 0 && newer.lease_us != info_.lease_us) || newer.config_version > info_.config_version;
}

Status ClusterSnapshot::check_same_cluster(const ClusterInfo& newer) const {
  if (!is_of_another_cluster(newer)) return Status::ok();
  return {StatusCode::InvalidArgument,
          fmt::format("this process is of cluster {:016x}, and the sender is of cluster {:016x}, which was made "
                      "at the same addresses: start this process again",
                      info_.cluster_id, newer.cluster_id)};
}

Status ClusterSnapshot::check_same_history(const ClusterInfo& newer) const {
  if (newer == ClusterInfo{}) return Status::ok();
  if (newer.term < info_.term) {
    return {StatusCode::WrongDistribution, "this comes from a fleet controller of term " + std::to_string(newer.term) +
                                               ", and one of term " + std::to_string(info_.term) + " was heard"};
  }
  if (!newer.state.empty() && !info_.state.empty() && newer.state_version == info_.state_version &&
      (newer.state != info_.state || newer.distribution != info_.distribution)) {
    return {StatusCode::Corruption, "cluster state version " + std::to_string(newer.state_version) + " is known as \"" +
                                        info_.state + "\" (" + info_.distribution + "), and term " +
                                        std::to_string(newer.term) + " says \"" + newer.state + "\" (" +
                                        newer.distribution + ")"};
  }
  return Status::ok();
}

Status ClusterSnapshot::take_state(const ClusterInfo& newer) {
  FJORD_TRY_ASSIGN(ClusterState state, ClusterState::parse(newer.state));
  FJORD_TRY_ASSIGN(DistributionConfig distribution, DistributionConfig::parse(newer.distribution));
  info_.state_version = newer.state_version;
  info_.state = newer.state;
  info_.distribution = newer.distribution;
  info_.distributor_addresses = newer.distributor_addresses;
  info_.storage_addresses = newer.storage_addresses;
  state_ = std::make_shared<const ClusterState>(std::move(state));
  distribution_ = std::make_shared<const DistributionConfig>(std::move(distribution));
  make_table();
  return Status::ok();
}

Status ClusterSnapshot::take_schemas(const ClusterInfo& newer) {
  std::vector<std::string> texts = builtin_schemas();
  texts.insert(texts.end(), newer.schemas.begin(), newer.schemas.end());
  FJORD_TRY_ASSIGN(types_, DocumentTypeRepo::build(texts, nullptr));
  info_.schema_version = newer.schemas.empty() ? 0 : newer.schema_version;
  info_.schemas = newer.schemas;
  return Status::ok();
}

Status ClusterSnapshot::take_pending(const ClusterInfo& newer) {
  if (!newer.pending_state.empty()) {
    FJORD_TRY_ASSIGN(ClusterState state, ClusterState::parse(newer.pending_state));
    if (pending_ != nullptr && state.version() == pending_->version() &&
        (newer.pending_state != info_.pending_state || newer.pending_distribution != info_.pending_distribution)) {
      return {StatusCode::Corruption, "pending cluster state version " + std::to_string(state.version()) +
                                          " is known as \"" + info_.pending_state + "\" (" +
                                          info_.pending_distribution + "), and term " + std::to_string(newer.term) +
                                          " says \"" + newer.pending_state + "\" (" + newer.pending_distribution + ")"};
    }
    if (state.version() > pending_version()) {
      FJORD_TRY_ASSIGN(DistributionConfig distribution, DistributionConfig::parse(newer.pending_distribution));
      info_.pending_state = newer.pending_state;
      info_.pending_distribution = newer.pending_distribution;
      info_.pending_distributor_addresses = newer.pending_distributor_addresses;
      info_.pending_storage_addresses = newer.pending_storage_addresses;
      pending_ = std::make_shared<const ClusterView>(ClusterView::make(std::move(state), std::move(distribution)));
    }
  }
  if (pending_ != nullptr && pending_->version() <= info_.state_version) {
    pending_ = nullptr;
    info_.pending_state.clear();
    info_.pending_distribution.clear();
    info_.pending_distributor_addresses.clear();
    info_.pending_storage_addresses.clear();
  }
  return Status::ok();
}

void ClusterSnapshot::make_table() {
  unsigned bits = state_->bits();
  places_state_ = std::make_shared<const ClusterState>(state_of_places(*state_, *distribution_));
  has_maintenance_ = false;
  for (const DistributionGroup::Node& node : distribution_->flat_nodes()) {
    has_maintenance_ = has_maintenance_ || state_->node(NodeId::storage(node.index)).state == NodeState::Maintenance;
  }
  new_bucket_places_ = nullptr;
  if (has_maintenance_) {
    new_bucket_places_ = placement_algorithm().prepare(
        std::make_shared<const ClusterState>(state_for_new_buckets(*state_, *distribution_)), distribution_);
  }
  auto table = std::make_shared<std::vector<Placement>>();
  if (bits <= kTableBits) {
    const auto map = placement_algorithm().prepare(places_state_, distribution_);
    table->resize(std::size_t{1} << bits);
    for (std::size_t i = 0; i < table->size(); ++i) {
      const BucketId bucket(bits, i);
      (*table)[i] = {map->ideal_nodes(bucket), fjord::distributor_of(bucket, *state_)};
    }
  }
  table_ = std::move(table);
}

ClusterSnapshot::Placement ClusterSnapshot::compute(BucketId bucket) const {
  return {placement_algorithm().ideal_nodes(bucket, *places_state_, *distribution_),
          fjord::distributor_of(bucket, *state_)};
}

NodeList ClusterSnapshot::ideal_nodes(BucketId bucket) const {
  const NodeList all = places(bucket);
  if (!has_maintenance_) return all;
  NodeList writable;
  for (const std::uint16_t node : all) {
    if (storage_serves(node)) writable.push_back(node);
  }
  return writable;
}

NodeList ClusterSnapshot::nodes_for_new(BucketId bucket) const {
  return new_bucket_places_ == nullptr ? places(bucket) : new_bucket_places_->ideal_nodes(bucket);
}

ClusterSnapshot::Placement ClusterSnapshot::placement_of(BucketId bucket) const {
  if (table_->empty()) return compute(bucket);
  return (*table_)[bucket.raw() & (table_->size() - 1)];
}

ClusterInfo ClusterSnapshot::info_newer_than(std::uint64_t known_state, std::uint64_t known_schema) const {
  ClusterInfo info;
  info.state_version = info_.state_version;
  info.schema_version = info_.schema_version;
  info.term = info_.term;
  info.cluster_id = info_.cluster_id;
  if (info_.state_version > known_state) {
    info.state = info_.state;
    info.distribution = info_.distribution;
    info.distributor_addresses = info_.distributor_addresses;
    info.storage_addresses = info_.storage_addresses;
  }
  if (info_.schema_version > known_schema) info.schemas = info_.schemas;
  return info;
}

std::shared_ptr<const ClusterSnapshot> SnapshotHolder::get() const {
  std::lock_guard lock(mutex_);
  return current_;
}

Result<bool> SnapshotHolder::update(const ClusterInfo& newer) {
  std::shared_ptr<const ClusterSnapshot> old = get();
  const std::shared_ptr<const ClusterSnapshot> before = old;
  if (old != nullptr && follows_ == Follows::AnyCluster && old->is_of_another_cluster(newer)) {
    if (newer.state.empty() || (newer.schemas.empty() && newer.schema_version != 0)) {
      return Status(StatusCode::NotReady, "the sender is of another cluster and has left out a part of what it knows");
    }
    log::warning("rpc", "cluster {:016x} is at the addresses of cluster {:016x}, of which nothing counts any more",
                 newer.cluster_id, old->info().cluster_id);
    old = nullptr;
  }
  Result<std::shared_ptr<const ClusterSnapshot>> updated = ClusterSnapshot::update(old, newer);
  if (!updated) {
    if (updated.error().code() == StatusCode::Corruption) log::error("rpc", "{}", updated.error().to_string());
    return updated.error();
  }
  std::shared_ptr<const ClusterSnapshot> next = std::move(*updated);
  if (next == old) return false;
  std::lock_guard lock(mutex_);
  // If another thread has updated the snapshot meanwhile, this update is dropped; the next message repeats it.
  if (current_ != before) return false;
  current_ = std::move(next);
  return true;
}

}  // namespace fjord::rpc
