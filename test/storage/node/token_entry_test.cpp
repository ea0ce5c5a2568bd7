// The part of storage nodes in conditional writes: idempotency keys, compared versions, and merges of both.
#include "fjord/storage/spi/token_entry.h"

#include <catch2/catch.hpp>

#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 4;
const std::string kId = id_in(1, 0);
const BucketId kBucket = get_of(kId).bucket;
const GlobalId kGid = get_of(kId).gid;
constexpr std::uint64_t kEpoch = ReplicaSet::make_epoch(kState, 1);

rpc::StorageOperation with_token(rpc::StorageOperation operation, const std::string& token) {
  operation.token_gid = spi::token_gid(operation.gid, token);
  operation.token_entry = spi::TokenEntry::of(operation.gid, token, true).id();
  return operation;
}
rpc::StorageOperation after(rpc::StorageOperation operation, std::uint64_t read_us) {
  operation.compare = true;
  operation.read_us = read_us;
  return operation;
}

class TokenWorld : public NodeWorld {
 public:
  explicit TokenWorld(storage::StorageNodeOptions options = {}) : NodeWorld(3, options) {
    give_state(kState);
    for (std::uint16_t node = 0; node < 2; ++node) REQUIRE(install(node, kState, kBucket, {kEpoch, {0, 1}}));
    REQUIRE(install(2, kState, kBucket, {}));
  }
  void write(std::uint16_t node, rpc::StorageOperation operation) {
    operation.epoch = kEpoch;
    REQUIRE(apply_one(node, kState, std::move(operation)).status);
  }
  /// Returns the last character of the key's entry, "1", "0" or "x"; "" if the replica does not have the key.
  std::string state_of(std::uint16_t node, const std::string& token) {
    rpc::StorageOperation get = get_of(kId, kEpoch);
    get.token_gid = spi::token_gid(kGid, token);
    const std::string id = apply_one(node, kState, std::move(get)).token_entry;
    return id.empty() ? id : id.substr(id.size() - 1);
  }
  std::uint64_t version_at(std::uint16_t node) { return apply_one(node, kState, get_of(kId, kEpoch)).timestamp_us; }
  void merge(std::uint16_t node, std::vector<std::uint16_t> sources, bool decides,
             std::vector<std::uint16_t> non_members = {}) {
    rpc::MergeBucket request;
    request.state_version = kState;
    request.distributor = owner(kBucket);
    request.bucket = kBucket;
    request.sources = std::move(sources);
    request.non_members = std::move(non_members);
    request.decides = decides;
    REQUIRE(ask(node, std::move(request)).status);
  }
};

}  // namespace

TEST_CASE("storage node: a token is stored with its document and found with it, a removed or missing one too") {
  TokenWorld nodes;
  nodes.write(0, with_token(put_of(kId, 100, "body"), "T"));
  rpc::StorageOperation get = get_of(kId, kEpoch);
  get.token_gid = spi::token_gid(kGid, "T");
  rpc::OperationResult both = nodes.apply_one(0, kState, get);
  CHECK(both.status);
  CHECK(both.body == "body");
  CHECK(spi::TokenEntry::parse(both.token_entry)->is_of("T"));
  CHECK(both.token_timestamp_us == 100);
  CHECK(nodes.state_of(0, "U").empty());

  get.header_only = true;
  CHECK(nodes.apply_one(0, kState, get).body.empty());
  nodes.write(0, with_token(remove_of(kId, 200), "R"));
  get.token_gid = spi::token_gid(kGid, "R");
  rpc::OperationResult removed = nodes.apply_one(0, kState, get);
  CHECK(removed.status.code() == StatusCode::NotFound);
  CHECK(removed.timestamp_us == 200);
  CHECK(removed.token_timestamp_us == 200);
  get.gid = spi::token_gid(kGid, "nothing is here");
  CHECK(nodes.apply_one(0, kState, get).token_timestamp_us == 200);
}

TEST_CASE("storage node: a write that follows another version than the one here is refused, a repetition is not") {
  TokenWorld nodes;
  nodes.write(0, after(put_of(kId, 100, "a"), 0));
  nodes.write(0, after(put_of(kId, 100, "a"), 0));
  nodes.write(0, after(put_of(kId, 200, "b"), 100));
  for (const std::uint64_t read : {0, 100, 300}) {
    rpc::StorageOperation put = with_token(after(put_of(kId, 400, "c", kEpoch), read), "T");
    rpc::OperationResult result = nodes.apply_one(0, kState, put);
    CHECK(result.status.code() == StatusCode::TestAndSetFailed);
  }
  CHECK(nodes.version_at(0) == 200);
  CHECK(nodes.state_of(0, "T").empty());

  // A replica that is catching up may lack the version that was read, but a newer version conflicts there too.
  nodes.write(2, after(put_of(kId, 500, "d"), 300));
  CHECK(nodes.version_at(2) == 500);
  rpc::StorageOperation late = after(put_of(kId, 450, "c", kEpoch), 300);
  CHECK(nodes.apply_one(2, kState, late).status.code() == StatusCode::TestAndSetFailed);
}

TEST_CASE("merge: documents and tokens come together, also in the smallest blocks") {
  TokenWorld nodes({.merge_page_entries = 2, .merge_block_bytes = 1});
  for (int i = 0; i < 20; ++i) {
    rpc::StorageOperation put = put_of(id_in(1, i), 100u + static_cast<unsigned>(i), "body");
    nodes.write(0, with_token(put, "T" + std::to_string(i)));
  }
  nodes.merge(1, {0}, false);
  const std::uint16_t distributor = nodes.owner(kBucket);
  CHECK(nodes.reports(1, kState, distributor).reports.at(0).info ==
        nodes.reports(0, kState, distributor).reports.at(0).info);
  CHECK(nodes.reports(1, kState, distributor).reports.at(0).info.entries == 40);
}

TEST_CASE("merge: the token of a write that lost without being seen is cancelled everywhere") {
  TokenWorld nodes;
  for (std::uint16_t node = 0; node < 2; ++node) nodes.write(node, with_token(put_of(kId, 100, "common"), "old"));
  nodes.write(0, with_token(after(put_of(kId, 300, "winner"), 100), "W"));
  nodes.write(1, with_token(after(put_of(kId, 200, "loser"), 100), "L"));
  SECTION("where the winner decides") {
    nodes.merge(0, {1}, true);
    nodes.merge(1, {0}, false);
  }
  SECTION("where the loser decides") {
    nodes.merge(1, {0}, true);
    nodes.merge(0, {1}, false);
  }
  for (std::uint16_t node = 0; node < 2; ++node) {
    INFO("node " << node);
    CHECK(nodes.version_at(node) == 300);
    CHECK(nodes.state_of(node, "old") == "1");
    CHECK(nodes.state_of(node, "W") == "1");
    CHECK(nodes.state_of(node, "L") == "x");
  }
}

TEST_CASE("merge: from a replica outside of the set, tokens count if their write does; what it lacks cancels nothing") {
  TokenWorld nodes;
  nodes.write(0, with_token(put_of(kId, 100, "member"), "M"));
  SECTION("its write is newer") {
    nodes.write(2, with_token(put_of(kId, 200, "non-member"), "O"));
    nodes.merge(0, {2}, true, {2});
    CHECK(nodes.version_at(0) == 200);
    CHECK(nodes.state_of(0, "O") == "1");
  }
  SECTION("its write is older") {
    nodes.write(2, with_token(put_of(kId, 50, "non-member"), "O"));
    nodes.merge(0, {2}, true, {2});
    CHECK(nodes.version_at(0) == 100);
    CHECK(nodes.state_of(0, "O") == "x");
  }
  CHECK(nodes.state_of(0, "M") == "1");
  nodes.merge(2, {0}, false);
  CHECK(nodes.version_at(2) == nodes.version_at(0));
  CHECK(nodes.state_of(2, "M") == "1");
  CHECK(nodes.state_of(2, "O") == nodes.state_of(0, "O"));
}

TEST_CASE(
    "merge: the token of a write that reached one non-member only is cancelled though the non-member has what came "
    "later") {
  TokenWorld nodes;
  for (std::uint16_t node = 0; node < 3; ++node) nodes.write(node, with_token(put_of(kId, 100, "common"), "old"));
  nodes.write(2, with_token(after(put_of(kId, 200, "cut off"), 100), "L"));
  nodes.write(0, with_token(after(put_of(kId, 300, "without it"), 100), "M"));
  SECTION("by members and non-member alike") {
    for (const std::uint16_t node : {std::uint16_t{0}, std::uint16_t{2}}) nodes.write(node, put_of(kId, 400, "plain"));
  }
  SECTION("alone so far") { nodes.write(2, put_of(kId, 400, "plain")); }
  nodes.merge(0, {2}, true, {2});
  CHECK(nodes.version_at(0) == 400);
  CHECK(nodes.state_of(0, "L") == "x");
  CHECK(nodes.state_of(0, "M") == "1");
  CHECK(nodes.state_of(0, "old") == "1");
}

TEST_CASE("merge: the token of a write that reached one non-member only is cancelled if another non-member's wins") {
  TokenWorld nodes;
  for (std::uint16_t node = 0; node < 3; ++node) nodes.write(node, with_token(put_of(kId, 100, "common"), "old"));
  nodes.write(1, with_token(after(put_of(kId, 200, "cut off"), 100), "L"));
  rpc::StorageOperation winner = after(put_of(kId, 300, "while it was filled"), 100);
  SECTION("with a version that was made without it") {
    nodes.write(2, with_token(winner, "W"));
    SECTION("which comes later") { nodes.merge(0, {1, 2}, true, {1, 2}); }
    SECTION("which comes first") { nodes.merge(0, {2, 1}, true, {1, 2}); }
    CHECK(nodes.state_of(0, "L") == "x");
  }
  SECTION("but not if that one knows it") {
    nodes.write(2, with_token(after(put_of(kId, 200, "cut off"), 100), "L"));
    nodes.write(2, with_token(after(put_of(kId, 300, "with both"), 200), "W"));
    nodes.merge(0, {1, 2}, true, {1, 2});
    CHECK(nodes.state_of(0, "L") == "1");
  }
  CHECK(nodes.version_at(0) == 300);
  CHECK(nodes.state_of(0, "W") == "1");
  CHECK(nodes.state_of(0, "old") == "1");
}

}  // namespace fjord::test
