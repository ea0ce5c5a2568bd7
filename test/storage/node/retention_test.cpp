// How storage nodes drop remove entries: docs/design/0013-retention.md.
#include <catch2/catch.hpp>
#include <map>

#include "fjord/document/docblock.h"
#include "fjord/storage/spi/token_entry.h"
#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 4;
constexpr std::uint64_t kEpoch = ReplicaSet::make_epoch(kState, 1);
const BucketId kBucket = get_of(id_in(1, 0)).bucket;
const std::vector<std::uint16_t> kAll{0, 1, 2};
const std::vector<std::uint16_t> kMembers{0, 1};
const std::vector<std::uint16_t> kOthers{1, 2};

/// By number of the document: timestamp and body (empty: removed).
using Content = std::map<int, std::pair<std::uint64_t, std::string>>;

/// Storage nodes 0 and 1 are members of the bucket's replica set, node 2 is not.
class RetentionWorld : public NodeWorld {
 public:
  RetentionWorld() : NodeWorld(3) {
    give_state(kState);
    for (const std::uint16_t node : kMembers) REQUIRE(install(node, kState, kBucket, {kEpoch, {0, 1}}));
    REQUIRE(install(2, kState, kBucket, {}));
  }
  void fill(std::uint16_t node, const Content& content) {
    for (const auto& [number, version] : content) {
      const std::string id = id_in(1, number);
      const rpc::StorageOperation operation = version.second.empty()
                                                  ? remove_of(id, version.first, epoch_)
                                                  : put_of(id, version.first, version.second, epoch_);
      REQUIRE(apply_one(node, kState, operation).status);
    }
  }
  /// Sends the owner's order to drop entries, under a new epoch.
  void forget(const std::vector<std::uint16_t>& nodes, std::uint64_t removes_us, std::uint64_t tokens_us = 0) {
    ++epoch_;
    for (const std::uint16_t node : nodes) {
      rpc::SetReplicaSets request{.state_version = kState, .distributor = owner(kBucket), .buckets = {}};
      request.buckets.push_back({.bucket = kBucket, .replica_set = {epoch_, {0, 1}}});
      request.buckets.back().forget_removes_before_us = removes_us;
      request.buckets.back().forget_tokens_before_us = tokens_us;
      REQUIRE(ask(node, std::move(request)).statuses.at(0));
    }
  }
  rpc::MergeBucketReply merge(std::uint16_t node, std::vector<std::uint16_t> sources,
                              std::vector<std::uint16_t> non_members = {}) {
    rpc::MergeBucket request{
        .state_version = kState, .distributor = owner(kBucket), .bucket = kBucket, .sources = std::move(sources)};
    request.non_members = std::move(non_members);
    request.decides = node == 0;
    request.epoch = epoch_;
    return ask(node, std::move(request));
  }
  rpc::BucketReport report(std::uint16_t node) {
    rpc::GetBucketInfo request{.state_version = kState, .distributor = owner(kBucket), .buckets = {kBucket}};
    return ask(node, std::move(request)).reports.at(0);
  }
  Content content_of(std::uint16_t node) {
    const rpc::ListEntriesReply list = ask(node, rpc::ListEntries{.bucket = kBucket, .after = {}, .max_entries = 1000});
    REQUIRE(list.status);
    rpc::FetchEntries fetch{.bucket = kBucket, .gids = {}, .max_bytes = 100'000'000};
    for (const rpc::EntryKey& entry : list.entries) fetch.gids.push_back(entry.gid);
    Content content;
    if (fetch.gids.empty()) return content;
    const rpc::FetchEntriesReply block = ask(node, fetch);
    DocBlockReader reader(block.docblock);
    while (const auto entry = reader.next()) {
      const std::string id(entry->id);
      content[std::stoi(id.substr(id.rfind(':') + 1))] = {entry->timestamp.us,
                                                          entry->removed ? "" : std::string(entry->body)};
    }
    return content;
  }
  std::uint64_t epoch_ = kEpoch;
};

}  // namespace

TEST_CASE("retention: a replica that missed removes which are dropped is no source, and is made equal") {
  RetentionWorld nodes;
  for (const std::uint16_t node : kAll) nodes.fill(node, {{1, {10, "stays"}}, {2, {11, "goes"}}});
  for (const std::uint16_t node : kMembers) nodes.fill(node, {{2, {20, ""}}, {3, {21, "later"}}});
  nodes.fill(2, {{4, {40, "in doubt, and newer than what is dropped"}}});
  nodes.forget({0, 1}, 30);
  const Content members{{1, {10, "stays"}}, {3, {21, "later"}}};
  CHECK(nodes.content_of(0) == members);

  REQUIRE(nodes.merge(0, {1, 2}, {2}).status);
  Content all = members;
  all[4] = {40, "in doubt, and newer than what is dropped"};
  CHECK(nodes.content_of(0) == all);
  for (const std::uint16_t node : kOthers) {
    REQUIRE(nodes.merge(node, {0}).status);
    CHECK(nodes.content_of(node) == all);
    CHECK(nodes.report(node).forgotten_removes_us == 30);
    CHECK(nodes.report(node).info.same_content(nodes.report(0).info));
  }
  CHECK(nodes.metric("fjord_storage_merge_dropped_entries_total") == 1);
}

TEST_CASE("retention: a replica with writes of before that nobody acknowledged is filled from nothing") {
  RetentionWorld nodes;
  for (const std::uint16_t node : kAll) nodes.fill(node, {{1, {10, "stays"}}, {2, {11, "too"}}, {3, {12, "and this"}}});
  REQUIRE(nodes.install(2, kState, kBucket, {kEpoch, {0, 1, 2}}));
  nodes.fill(2, {{1, {20, ""}}, {2, {21, "in doubt"}}});
  nodes.forget({0, 1}, 30);
  REQUIRE(nodes.merge(0, {1, 2}, {2}).status);
  const Content members{{1, {10, "stays"}}, {2, {11, "too"}}, {3, {12, "and this"}}};
  CHECK(nodes.content_of(0) == members);
  REQUIRE(nodes.merge(2, {0}).status);
  CHECK(nodes.content_of(2) == members);
  CHECK(nodes.report(2).info.same_content(nodes.report(0).info));
  CHECK(nodes.report(2).forgotten_removes_us == 30);
  CHECK(nodes.report(2).replica_set.epoch == 0);  // A former membership says nothing about the current content.
  CHECK(nodes.metric("fjord_storage_merge_refilled_total") == 1);
  // A late duplicate of a message about the former set does not make the node a member.
  CHECK(nodes.install(2, kState, kBucket, {kEpoch, {0, 1, 2}}));
  CHECK(nodes.report(2).replica_set.epoch == 0);
}

TEST_CASE("retention: a replica that was told of a set without it is filled from nothing, too") {
  RetentionWorld nodes;
  for (const std::uint16_t node : kAll) nodes.fill(node, {{1, {10, "stays"}}});
  REQUIRE(nodes.install(2, kState, kBucket, {kEpoch, {0, 1, 2}}));
  nodes.fill(2, {{1, {20, "in doubt"}}});
  nodes.forget({0, 1}, 30);
  REQUIRE(nodes.install(2, kState, kBucket, {nodes.epoch_, {0, 1}}));
  REQUIRE(nodes.report(2).replica_set.epoch == nodes.epoch_);
  REQUIRE(nodes.merge(2, {0}).status);
  CHECK(nodes.content_of(2) == Content{{1, {10, "stays"}}});
  CHECK(nodes.metric("fjord_storage_merge_refilled_total") == 1);
}

TEST_CASE("retention: a member is never emptied") {
  RetentionWorld nodes;
  for (const std::uint16_t node : kMembers) nodes.fill(node, {{1, {10, "stays"}}});
  nodes.fill(1, {{1, {20, "only here, against the rule"}}});
  nodes.forget({0}, 30);
  nodes.forget({0, 1}, 0);
  CHECK(nodes.merge(1, {0}).status.code() == StatusCode::Corruption);
  CHECK(nodes.content_of(1) == Content{{1, {20, "only here, against the rule"}}});
}

TEST_CASE("retention: an order that reached one member only is taken over by the other, as source and as receiver") {
  const bool primary_knows = GENERATE(true, false);
  RetentionWorld nodes;
  for (const std::uint16_t node : kMembers) nodes.fill(node, {{1, {10, "a"}}, {2, {11, ""}}, {3, {50, ""}}});
  nodes.forget({static_cast<std::uint16_t>(primary_knows ? 0 : 1)}, 30);
  nodes.forget({0, 1}, 0);
  REQUIRE(nodes.merge(0, {1}).status);
  REQUIRE(nodes.merge(1, {0}).status);
  for (const std::uint16_t node : kMembers) {
    CHECK(nodes.content_of(node) == Content{{1, {10, "a"}}, {3, {50, ""}}});
    CHECK(nodes.report(node).forgotten_removes_us == 30);
  }
}

TEST_CASE("retention: a replica that dropped more than the members do now takes their removes again") {
  RetentionWorld nodes;
  for (const std::uint16_t node : kAll) nodes.fill(node, {{1, {10, "a"}}, {2, {11, ""}}});
  REQUIRE(nodes.install(2, kState, kBucket, {kEpoch, {0, 1, 2}}));
  nodes.forget({2}, 30);  // Node 2 was a member. Only it was ordered to drop removes, and then went down.
  CHECK(nodes.report(2).forgotten_removes_us == 30);
  nodes.forget({0, 1}, 0);
  REQUIRE(nodes.merge(0, {1, 2}, {2}).status);
  CHECK(nodes.report(0).forgotten_removes_us == 0);
  REQUIRE(nodes.merge(2, {0}).status);
  CHECK(nodes.content_of(2) == Content{{1, {10, "a"}}, {2, {11, ""}}});
  CHECK(nodes.report(2).forgotten_removes_us == 0);
}

TEST_CASE("retention: a merge of an older replica set is refused, and one whose source is no member drops nothing") {
  RetentionWorld nodes;
  nodes.fill(0, {{1, {10, "only here"}}});
  REQUIRE(nodes.install(2, kState, kBucket, {kEpoch, {0, 1, 2}}));
  nodes.forget({2}, 30);
  CHECK(nodes.report(2).forgotten_removes_us == 30);
  nodes.epoch_ = kEpoch;
  REQUIRE(nodes.merge(0, {2}).status);
  CHECK(nodes.content_of(0) == Content{{1, {10, "only here"}}});
  CHECK(nodes.report(0).forgotten_removes_us == 0);
  nodes.forget({0}, 0);
  --nodes.epoch_;
  CHECK(nodes.merge(0, {1}).status.code() == StatusCode::WrongDistribution);
}

TEST_CASE("retention: a replica that does not decide loses nothing to a source of another replica set") {
  RetentionWorld nodes;
  nodes.fill(1, {{1, {10, "only here"}}});
  REQUIRE(nodes.install(2, kState, kBucket, {kEpoch, {0, 1, 2}}));
  nodes.forget({2}, 30);
  REQUIRE(nodes.report(2).forgotten_removes_us == 30);
  nodes.epoch_ = kEpoch;
  REQUIRE(nodes.merge(1, {2}).status);
  CHECK(nodes.content_of(1) == Content{{1, {10, "only here"}}});
  CHECK(nodes.report(1).forgotten_removes_us == 0);
  CHECK(nodes.metric("fjord_storage_merge_dropped_entries_total") == 0);
}

TEST_CASE("retention: tokens of an older time come back only to say that they do not count") {
  RetentionWorld nodes;
  const std::string id = id_in(1, 1);
  const GlobalId gid = DocumentId::parse(id)->gid();
  const spi::TokenEntry token = spi::TokenEntry::of(gid, "secret", false);
  rpc::StorageOperation write = put_of(id, 20, "with a token");
  write.token_entry = token.id();
  write.token_gid = spi::token_gid(gid, "secret");
  REQUIRE(nodes.apply_one(2, kState, write).status);
  nodes.forget({0, 1}, 30, 5);
  REQUIRE(nodes.merge(0, {1, 2}, {2}).status);
  rpc::StorageOperation get = get_of(id, nodes.epoch_);
  get.token_gid = write.token_gid;
  const rpc::OperationResult result = nodes.apply_one(0, kState, get);
  CHECK(result.status.code() == StatusCode::NotFound);
  REQUIRE(spi::TokenEntry::parse(result.token_entry).has_value());
  CHECK(spi::TokenEntry::parse(result.token_entry)->state == spi::TokenEntry::State::Cancelled);
  nodes.forget({0, 1}, 30, 40);
  CHECK(nodes.apply_one(0, kState, get_of(id, nodes.epoch_)).token_entry.empty());
  CHECK(nodes.report(0).info.entries == 0);
}

TEST_CASE("retention: what may be dropped is reported and counted, and later writes are newer than what was dropped") {
  RetentionWorld nodes;
  nodes.fill(0, {{1, {10, "a"}}, {2, {20, ""}}, {3, {30, ""}}});
  rpc::GetBucketInfo question{.state_version = kState, .distributor = nodes.owner(kBucket), .all = true, .buckets = {}};
  question.only_damaged = true;
  question.removes_before_us = 15;
  rpc::GetBucketInfoReply reply = nodes.ask(0, question);
  CHECK(reply.can_forget);
  CHECK(reply.reports.empty());
  question.removes_before_us = 25;
  reply = nodes.ask(0, question);
  REQUIRE(reply.reports.size() == 1);
  CHECK(reply.reports[0].may_forget);
  CHECK(nodes.metric("fjord_storage_removed_entries", {{"kind", "remove"}}) == 2);
  CHECK(nodes.metric("fjord_storage_removed_entries_due", {{"kind", "remove"}}) == 1);
  nodes.forget({0, 1}, 31);
  CHECK(nodes.ask(0, question).reports.empty());
  CHECK(nodes.metric("fjord_storage_removed_entries", {{"kind", "remove"}}) == 0);
  CHECK(nodes.report(0).info.max_timestamp_us == 30);
}

}  // namespace fjord::test
