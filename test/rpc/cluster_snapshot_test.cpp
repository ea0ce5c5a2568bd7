#include "fjord/rpc/cluster_snapshot.h"

#include <catch2/catch.hpp>

namespace fjord::rpc {
namespace {

using Snapshot = std::shared_ptr<const ClusterSnapshot>;

ClusterInfo info_of(std::uint64_t version, const std::string& nodes = "bits:4 distributor:2 storage:3") {
  ClusterInfo info;
  info.state_version = version;
  info.state = "version:" + std::to_string(version) + " " + nodes;
  info.distribution = DistributionConfig::flat(3, 2).to_string();
  info.distributor_addresses = {"d0:1", "d1:" + std::to_string(version)};
  info.storage_addresses = {"s0:1", "s1:1", "s2:" + std::to_string(version)};
  return info;
}
ClusterInfo schemas_of(std::uint64_t version, std::vector<std::string> schemas) {
  ClusterInfo info;
  info.schema_version = version;
  info.schemas = std::move(schemas);
  return info;
}
ClusterInfo pending_of(std::uint64_t version, const std::string& nodes = "bits:4 distributor:2 storage:3") {
  ClusterInfo info;
  info.pending_state = "version:" + std::to_string(version) + " " + nodes;
  info.pending_distribution = DistributionConfig::flat(3, 2).to_string();
  info.pending_storage_addresses = {"s0:1", "s1:1", "s2:1", "s3:1"};
  return info;
}
const std::string kSong = "document song { field title type string { } }";
const std::string kAlbum = "document album { field title type string { } }";

Snapshot update(const Snapshot& old, const ClusterInfo& newer) {
  Result<Snapshot> next = ClusterSnapshot::update(old, newer);
  INFO(next.status());
  REQUIRE(next);
  return *next;
}

}  // namespace

TEST_CASE("cluster snapshot: a state that comes without its schemas is not taken in", "[rpc]") {
  SnapshotHolder holder;  // The simulation found this bug: updates, seed 159302134975411.
  ClusterInfo info;
  info.state_version = 5;
  info.state = "version:5 bits:4 distributor:1 storage:1";
  info.distribution = DistributionConfig::flat(1, 1).to_string();
  info.schema_version = 1;
  CHECK(holder.update(info).error().code() == StatusCode::NotReady);
  CHECK(holder.get() == nullptr);
  info.schemas = {"document item { field value type string { body } }"};
  REQUIRE(holder.update(info));
  CHECK(holder.get()->state_version() == 5);
  CHECK(holder.get()->types()->find("item") != nullptr);
}

TEST_CASE("cluster snapshot: the first knows the built-in types, whatever it is told") {
  const ClusterInfo first = GENERATE(ClusterInfo{}, info_of(3), schemas_of(2, {kSong}));
  Snapshot snapshot = update(nullptr, first);
  CHECK(snapshot->state_version() == first.state_version);
  CHECK(snapshot->schema_version() == first.schema_version);
  CHECK(snapshot->types()->find("fjord_tuples") != nullptr);
  CHECK(snapshot->types()->find("fjord_result") != nullptr);
  CHECK((snapshot->types()->find("song") != nullptr) == !first.schemas.empty());
  CHECK(snapshot->info() == first);
  if (first.state.empty()) {
    CHECK(snapshot->ideal_nodes(BucketId(4, 1)).empty());
    CHECK_FALSE(snapshot->distributor_of(BucketId(4, 1)).has_value());
  }
}

TEST_CASE("cluster snapshot: a newer state replaces the old one with all that belongs to it") {
  Snapshot old = update(nullptr, info_of(3));
  Snapshot next = update(old, info_of(5, "bits:5 distributor:2 storage:3 .1.s:d"));
  CHECK(next != old);
  CHECK(next->state_version() == 5);
  CHECK(next->distribution_bits() == 5);
  CHECK_FALSE(next->storage_serves(1));
  CHECK(next->info().storage_addresses.back() == "s2:5");
  CHECK(old->state_version() == 3);  // Holders of the old snapshot see no change.
  CHECK(old->storage_serves(1));
}

TEST_CASE("cluster snapshot: what is not newer, or is left out, gives the old snapshot itself") {
  Snapshot old = update(nullptr, info_of(5));
  old = update(old, schemas_of(2, {kSong}));
  ClusterInfo silent;
  silent.state_version = 9;  // The sender knows version 9 and assumes that the receiver has it: nothing to update.
  silent.schema_version = 9;
  CHECK(update(old, silent) == old);
  CHECK(update(old, info_of(4)) == old);
  CHECK(update(old, schemas_of(2, {kAlbum})) == old);
  CHECK(update(old, schemas_of(1, {kAlbum})) == old);
}

TEST_CASE("cluster snapshot: state and schemas are taken each by its own version") {
  Snapshot old = update(update(nullptr, info_of(5)), schemas_of(2, {kSong}));
  ClusterInfo mixed = info_of(4, "bits:4 distributor:1 storage:1");
  mixed.schema_version = 3;
  mixed.schemas = {kSong, kAlbum};
  Snapshot next = update(old, mixed);
  CHECK(next->state_version() == 5);
  CHECK(next->state() == old->state());
  CHECK(next->info().storage_addresses.size() == 3);
  CHECK(next->schema_version() == 3);
  CHECK(next->types()->find("album") != nullptr);

  mixed = info_of(6);
  mixed.schema_version = 1;
  mixed.schemas = {kAlbum};
  next = update(old, mixed);
  CHECK(next->state_version() == 6);
  CHECK(next->schema_version() == 2);
  CHECK(next->types() == old->types());
  CHECK(next->info().schemas == std::vector<std::string>{kSong});
}

TEST_CASE("cluster snapshot: a part that does not parse changes nothing") {
  SnapshotHolder holder;
  CHECK(holder.get() == nullptr);
  Result<bool> updated = holder.update(info_of(5));
  REQUIRE(updated);
  CHECK(*updated);
  Snapshot old = holder.get();

  ClusterInfo broken = info_of(6);
  broken.state = "version:6 nonsense:x storage:y";
  CHECK_FALSE(holder.update(broken));
  broken = info_of(6);
  broken.distribution = "redundancy";
  CHECK_FALSE(holder.update(broken));
  broken = info_of(6);
  broken.schema_version = 1;
  broken.schemas = {"document song {"};
  CHECK_FALSE(holder.update(broken));
  CHECK(holder.get() == old);

  updated = holder.update(info_of(5));
  REQUIRE(updated);
  CHECK_FALSE(*updated);
  updated = holder.update(info_of(6));
  REQUIRE(updated);
  CHECK(*updated);
  CHECK(holder.get()->state_version() == 6);
}

TEST_CASE("cluster snapshot: one version with two texts is refused, active or pending") {
  SnapshotHolder holder;
  REQUIRE(holder.update(info_of(5)));
  const std::uint64_t term = GENERATE(0u, 3u);
  ClusterInfo other = info_of(5, "bits:4 distributor:1 storage:1");
  other.term = term;
  CHECK(holder.update(other).error().code() == StatusCode::Corruption);
  other = info_of(5);
  other.distribution = DistributionConfig::flat(3, 1).to_string();
  CHECK(holder.update(other).error().code() == StatusCode::Corruption);

  REQUIRE(holder.update(pending_of(6)));
  Snapshot old = holder.get();
  other = pending_of(6, "bits:4 distributor:1 storage:1");
  other.term = term;
  CHECK(holder.update(other).error().code() == StatusCode::Corruption);
  other = pending_of(6);
  other.pending_distribution = DistributionConfig::flat(3, 1).to_string();
  CHECK(holder.update(other).error().code() == StatusCode::Corruption);
  CHECK(holder.get() == old);
}

TEST_CASE("cluster snapshot: what comes from an older term is refused and both terms are named") {
  SnapshotHolder holder;
  ClusterInfo info = info_of(5);
  info.term = 7;
  REQUIRE(holder.update(info));
  Snapshot old = holder.get();
  CHECK(old->term() == 7);
  CHECK(old->info_newer_than(9, 9).term == 7);

  info = info_of(6);
  info.term = 6;
  Result<bool> updated = holder.update(info);
  REQUIRE_FALSE(updated);
  CHECK(updated.error().code() == StatusCode::WrongDistribution);
  CHECK(updated.error().message().find("term 6") != std::string::npos);
  CHECK(updated.error().message().find("term 7") != std::string::npos);
  CHECK(holder.get() == old);

  info = ClusterInfo{};
  info.term = 6;  // An answer without news still belongs to that term.
  CHECK_FALSE(holder.update(info));
  updated = holder.update(ClusterInfo{});  // An update by cluster information that names no sender.
  REQUIRE(updated);
  CHECK_FALSE(*updated);

  info = info_of(4);  // A sender that does not know of the election yet forwards it: no news, but no error.
  info.term = 6;
  updated = holder.update(info);
  REQUIRE(updated);
  CHECK_FALSE(*updated);
  CHECK(holder.get() == old);

  info = ClusterInfo{};
  info.term = 8;
  updated = holder.update(info);
  REQUIRE(updated);
  CHECK(*updated);
  CHECK(holder.get()->term() == 8);
  CHECK(holder.get()->state_version() == 5);
}

TEST_CASE("cluster snapshot: the pending state stands beside the active one until something later is active") {
  Snapshot active = update(nullptr, info_of(5));
  CHECK(active->pending() == nullptr);
  CHECK(active->pending_version() == 0);
  Snapshot both = update(active, pending_of(7, "bits:4 distributor:2 storage:3 .1.s:d"));
  CHECK(both->state_version() == 5);
  CHECK(both->storage_serves(1));
  REQUIRE(both->pending() != nullptr);
  CHECK(both->pending_version() == 7);
  CHECK_FALSE(both->pending()->is_up(NodeId::storage(1)));
  CHECK(both->pending()->redundancy() == 2);
  CHECK(both->info().pending_storage_addresses == std::vector<std::string>{"s0:1", "s1:1", "s2:1", "s3:1"});

  CHECK(update(both, pending_of(7, "bits:4 distributor:2 storage:3 .1.s:d")) == both);
  CHECK(update(both, pending_of(6)) == both);  // State 6 is older than the pending state.
  CHECK(update(both, pending_of(4)) == both);
  CHECK(update(active, pending_of(5)) == active);  // State 5 is as old as the active state.
  CHECK(update(both, info_of(6))->pending_version() == 7);
  CHECK(update(both, pending_of(8))->pending_version() == 8);
  ClusterInfo broken = pending_of(9, "nonsense");
  CHECK_FALSE(ClusterSnapshot::update(both, broken));

  Snapshot activated = update(both, info_of(7));
  CHECK(activated->pending() == nullptr);
  CHECK(activated->info().pending_state.empty());
  CHECK(activated->info().pending_distribution.empty());
  CHECK(activated->info().pending_storage_addresses.empty());
  CHECK(update(update(both, info_of(8)), pending_of(7))->pending() == nullptr);

  ClusterInfo at_once = info_of(6);
  at_once.pending_state = pending_of(7).pending_state;
  at_once.pending_distribution = pending_of(7).pending_distribution;
  Snapshot next = update(active, at_once);
  CHECK(next->state_version() == 6);
  CHECK(next->pending_version() == 7);
}

TEST_CASE("cluster snapshot: the live configuration is replaced as a whole by a newer one") {
  ClusterInfo info = info_of(5);
  info.config_version = 3;
  info.config = {"a=1", "b=2"};
  info.lease_us = 1000;
  Snapshot snapshot = update(nullptr, info);
  CHECK(snapshot->config_version() == 3);
  CHECK(snapshot->info().config == info.config);
  CHECK(update(snapshot, info) == snapshot);
  CHECK(update(snapshot, info_of(6))->info().config == info.config);
  CHECK(update(snapshot, info_of(6))->info().lease_us == 1000);

  ClusterInfo other;
  other.config_version = 2;
  other.config = {"a=5"};
  CHECK(update(snapshot, other) == snapshot);
  other.config_version = 4;
  other.config = {};  // All settings are at their defaults again.
  other.lease_us = 2000;
  Snapshot next = update(snapshot, other);
  CHECK(next->config_version() == 4);
  CHECK(next->info().config.empty());
  CHECK(next->info().lease_us == 2000);
}

TEST_CASE("cluster snapshot: tells others the parts that are newer than what they know") {
  Snapshot snapshot = update(update(nullptr, info_of(5)), schemas_of(2, {kSong}));
  const auto [known_state, known_schema] =
      GENERATE(table<std::uint64_t, std::uint64_t>({{0, 0}, {4, 1}, {4, 2}, {5, 1}, {5, 2}, {6, 3}}));
  INFO("known: state " << known_state << ", schemas " << known_schema);
  ClusterInfo said = snapshot->info_newer_than(known_state, known_schema);
  CHECK(said.state_version == 5);
  CHECK(said.schema_version == 2);
  CHECK(said.state.empty() == (known_state >= 5));
  CHECK(said.distribution.empty() == (known_state >= 5));
  CHECK(said.storage_addresses.empty() == (known_state >= 5));
  CHECK(said.distributor_addresses.empty() == (known_state >= 5));
  CHECK(said.schemas.empty() == (known_schema >= 2));
  if (known_state == 0) CHECK(update(nullptr, said)->info() == snapshot->info());
}

TEST_CASE("cluster snapshot: the placement table says what placement and ownership say") {
  const std::string nodes =
      GENERATE(as<std::string>(), "bits:1 distributor:1 storage:3", "bits:6 distributor:3 storage:3",
               "bits:6 distributor:3 .1.s:d storage:3 .0.s:d", "bits:4 distributor:0 storage:0",
               "bits:17 distributor:2 storage:3" /* Too many for a table. */);
  INFO(nodes);
  Snapshot snapshot = update(nullptr, info_of(5, nodes));
  const unsigned bits = snapshot->distribution_bits();
  for (std::uint64_t i = 0; i < 64; ++i) {
    for (unsigned used : {bits, bits + 3, 40u}) {  // A bucket that was split belongs to the owner of its ancestor.
      BucketId bucket(used, i * 0x9e3779b97f4a7c15);
      INFO(bucket);
      CHECK(snapshot->ideal_nodes(bucket) ==
            Straw2Placement().ideal_nodes(bucket, snapshot->state(), snapshot->distribution()));
      CHECK(snapshot->distributor_of(bucket) == distributor_of(bucket, snapshot->state()));
    }
  }
  const GlobalId gid = DocumentId::parse("id:a:song::b")->gid();
  CHECK(snapshot->bucket_of(gid) == bucket_of(gid, bits));
}

TEST_CASE("cluster snapshot: the built-in schemas are two types that no job needs to deploy") {
  Result<std::shared_ptr<const DocumentTypeRepo>> types = DocumentTypeRepo::build(builtin_schemas(), nullptr);
  REQUIRE(types);
  CHECK((*types)->find("fjord_tuples")->field("tuples") != nullptr);
  CHECK((*types)->find("fjord_result")->field("value") != nullptr);
}

}  // namespace fjord::rpc
