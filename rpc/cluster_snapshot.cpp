#include "fjord/rpc/cluster_snapshot.h"

#include <utility>

namespace fjord::rpc {
namespace {

// Placement is computed ahead for every bucket up to this many bits; with more it is computed for each question.
constexpr unsigned kTableBits = 16;

}  // namespace

const std::vector<std::string>& builtin_schemas() {
  static const std::vector<std::string> schemas = {
      R"(document fjord_tuples {
  field job type string { header }
  field source type long { header }
  field destination type int { header }
  field counter type int { header }
  field tuples type raw { body }
}
)",
      R"(document fjord_result {
  field job type string { header }
  field key type string { header }
  field value type string { body }
}
)"};
  return schemas;
}

Result<std::shared_ptr<const ClusterSnapshot>> ClusterSnapshot::update(
    const std::shared_ptr<const ClusterSnapshot>& old, const ClusterInfo& newer) {
  bool newer_state = !newer.state.empty() && (old == nullptr || newer.state_version > old->state_version());
  bool newer_schemas = old == nullptr || (!newer.schemas.empty() && newer.schema_version > old->schema_version());
  if (old != nullptr && !newer_state && !newer_schemas) return old;

  auto next = std::shared_ptr<ClusterSnapshot>(new ClusterSnapshot(old ? *old : ClusterSnapshot()));
  if (newer_state) {
    FJORD_TRY_ASSIGN(ClusterState state, ClusterState::parse(newer.state));
    FJORD_TRY_ASSIGN(DistributionConfig distribution, DistributionConfig::parse(newer.distribution));
    next->info_.state_version = newer.state_version;
    next->info_.state = newer.state;
    next->info_.distribution = newer.distribution;
    next->info_.distributor_addresses = newer.distributor_addresses;
    next->info_.storage_addresses = newer.storage_addresses;
    next->state_ = std::make_shared<const ClusterState>(std::move(state));
    next->distribution_ = std::make_shared<const DistributionConfig>(std::move(distribution));
    next->make_table();
  } else if (old == nullptr) {
    next->state_ = std::make_shared<const ClusterState>();
    next->distribution_ = std::make_shared<const DistributionConfig>();
    next->table_ = std::make_shared<const std::vector<Placement>>();
  }
  if (newer_schemas) {
    std::vector<std::string> texts = builtin_schemas();
    texts.insert(texts.end(), newer.schemas.begin(), newer.schemas.end());
    FJORD_TRY_ASSIGN(next->types_, DocumentTypeRepo::build(texts, nullptr));
    next->info_.schema_version = newer.schemas.empty() ? 0 : newer.schema_version;
    next->info_.schemas = newer.schemas;
  }
  return std::shared_ptr<const ClusterSnapshot>(std::move(next));
}

void ClusterSnapshot::make_table() {
  unsigned bits = state_->bits();
  auto table = std::make_shared<std::vector<Placement>>();
  if (bits <= kTableBits) {
    table->resize(std::size_t{1} << bits);
    for (std::size_t i = 0; i < table->size(); ++i) (*table)[i] = compute(BucketId(bits, i));
  }
  table_ = std::move(table);
}

ClusterSnapshot::Placement ClusterSnapshot::compute(BucketId bucket) const {
  return {Straw2Placement().ideal_nodes(bucket, *state_, *distribution_), fjord::distributor_of(bucket, *state_)};
}

ClusterSnapshot::Placement ClusterSnapshot::placement_of(BucketId bucket) const {
  if (table_->empty()) return compute(bucket);
  return (*table_)[bucket.raw() & (table_->size() - 1)];
}

ClusterInfo ClusterSnapshot::info_newer_than(std::uint64_t known_state, std::uint64_t known_schema) const {
  ClusterInfo info;
  info.state_version = info_.state_version;
  info.schema_version = info_.schema_version;
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
  FJORD_TRY_ASSIGN(std::shared_ptr<const ClusterSnapshot> next, ClusterSnapshot::update(old, newer));
  if (next == old) return false;
  std::lock_guard lock(mutex_);
  // Another thread may have taken something newer in meanwhile; then this update is repeated by the next message.
  if (current_ != old) return false;
  current_ = std::move(next);
  return true;
}

}  // namespace fjord::rpc
