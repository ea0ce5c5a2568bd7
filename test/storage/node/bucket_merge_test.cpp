#include <catch2/catch.hpp>
#include <map>

#include "fjord/common/random.h"
#include "fjord/document/docblock.h"
#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 4;
const BucketId kBucket = get_of(id_in(1, 0)).bucket;

/// What one replica holds by number of the document: timestamp, and the body (empty: removed).
using Content = std::map<int, std::pair<std::uint64_t, std::string>>;

class MergeWorld : public NodeWorld {
 public:
  explicit MergeWorld(storage::StorageNodeOptions options) : NodeWorld(3, options) {
    give_state(kState);
    for (std::uint16_t node = 0; node < 3; ++node) REQUIRE(install(node, kState, kBucket, {}));
  }
  void fill(std::uint16_t node, const Content& content) {
    std::vector<rpc::StorageOperation> batch;
    for (const auto& [number, version] : content) {
      const std::string id = id_in(1, number);
      batch.push_back(version.second.empty() ? remove_of(id, version.first)
                                             : put_of(id, version.first, version.second));
    }
    for (const rpc::OperationResult& result : apply(node, kState, owner(kBucket), batch).results)
      REQUIRE(result.status);
  }
  rpc::MergeBucketReply merge(std::uint16_t node, std::vector<std::uint16_t> sources) {
    rpc::MergeBucket request{
        .state_version = kState, .distributor = owner(kBucket), .bucket = kBucket, .sources = {}, .outsiders = {}};
    request.sources = std::move(sources);
    return caller.ask(storage_address(node), std::move(request), seconds(300));
  }
  BucketInfo info_of(std::uint16_t node) { return reports(node, kState, owner(kBucket)).reports.at(0).info; }
  /// All that the replica holds, in the words of Content.
  Content content_of(std::uint16_t node) {
    rpc::ListEntriesReply list = ask(node, rpc::ListEntries{.bucket = kBucket, .after = {}, .max_entries = 100'000});
    REQUIRE(list.status);
    rpc::FetchEntries fetch{.bucket = kBucket, .gids = {}, .max_bytes = 100'000'000};
    for (const rpc::EntryKey& entry : list.entries) fetch.gids.push_back(entry.gid);
    Content content;
    if (fetch.gids.empty()) return content;
    rpc::FetchEntriesReply block = ask(node, fetch);
    REQUIRE(block.status);
    REQUIRE(block.done == fetch.gids.size());
    DocBlockReader reader(block.docblock);
    while (auto entry = reader.next()) {
      const std::string id(entry->id);
      content[std::stoi(id.substr(id.rfind(':') + 1))] = {entry->timestamp.us,
                                                          entry->removed ? "" : std::string(entry->body)};
    }
    REQUIRE(reader.ok());
    return content;
  }
};

Content newest(const std::vector<Content>& contents) {
  Content result;
  for (const Content& content : contents) {
    for (const auto& [number, version] : content) {
      auto [at, added] = result.try_emplace(number, version);
      if (!added && version.first > at->second.first) at->second = version;
    }
  }
  return result;
}

}  // namespace

TEST_CASE("merge: fetches what is newer elsewhere, page by page and block by block, removed entries too") {
  const auto [page, block] = GENERATE(table<std::uint32_t, std::uint32_t>(
      {{1, 1}, {3, 1}, {7, 120}, {7, 1U << 20}, {20'000, 200}, {20'000, 1U << 20}}));
  INFO("pages of " << page << " entries, blocks of " << block << " bytes");
  MergeWorld nodes({.merge_page_entries = page, .merge_block_bytes = block});
  std::vector<Content> contents(3);
  Random random(page + block);
  for (int number = 0; number < 60; ++number) {
    for (Content& content : contents) {
      if (random.chance(0.3)) continue;
      const std::uint64_t timestamp =
          100 + 3 * random.below(4) + static_cast<std::uint64_t>(&content - contents.data());
      const std::string body = random.chance(0.3) ? "" : std::to_string(timestamp) + std::string(random.below(40), 'x');
      content[number] = {timestamp, body};
    }
  }
  for (std::uint16_t node = 0; node < 3; ++node) nodes.fill(node, contents[node]);
  const BucketInfo before = nodes.info_of(1);

  rpc::MergeBucketReply reply = nodes.merge(0, {1, 2});
  REQUIRE(reply.status);
  CHECK(nodes.content_of(0) == newest(contents));
  CHECK(reply.info == nodes.info_of(0));
  CHECK(reply.entries_copied > 0);
  CHECK(nodes.info_of(1) == before);  // A source is not changed.

  rpc::MergeBucketReply again = nodes.merge(0, {1, 2});
  REQUIRE(again.status);
  CHECK(again.entries_copied == 0);
  CHECK(again.bytes_copied == 0);

  // The other way round all three become equal, and their checksums say so.
  REQUIRE(nodes.merge(1, {0}).status);
  REQUIRE(nodes.merge(2, {0}).status);
  CHECK(nodes.info_of(1).checksum == nodes.info_of(0).checksum);
  CHECK(nodes.info_of(2) == nodes.info_of(0));
  CHECK(nodes.content_of(2) == newest(contents));
}

TEST_CASE("merge: a source without the bucket is passed over; a target without it does not make it") {
  MergeWorld nodes({});
  nodes.fill(1, {{1, {100, "one"}}, {2, {101, ""}}});
  for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{2}}) {
    rpc::DeleteBuckets remove{.state_version = kState, .distributor = nodes.owner(kBucket), .buckets = {kBucket}};
    REQUIRE(nodes.ask(node, remove).statuses.at(0));
  }
  // Only an installed replica set makes a bucket: a late copy of a merge must not bring a deleted one back.
  CHECK(nodes.merge(0, {1}).status.code() == StatusCode::NotFound);
  REQUIRE(nodes.merge(1, {2, 0}).status);
  CHECK(nodes.content_of(1) == Content{{1, {100, "one"}}, {2, {101, ""}}});
}

TEST_CASE("merge: a source that is down or unknown fails it, and a repetition goes on with what was fetched") {
  MergeWorld nodes({.peer_timeout = milliseconds(100)});
  nodes.fill(1, {{1, {100, "one"}}});
  nodes.fill(2, {{2, {100, "two"}}});
  nodes.world.network.isolate("storage.2");
  CHECK_FALSE(nodes.merge(0, {1, 2}).status);
  CHECK(nodes.content_of(0) == Content{{1, {100, "one"}}});
  nodes.world.network.heal();
  rpc::MergeBucketReply reply = nodes.merge(0, {1, 2});
  REQUIRE(reply.status);
  CHECK(reply.entries_copied == 1);
  CHECK(nodes.content_of(0) == Content{{1, {100, "one"}}, {2, {100, "two"}}});
  CHECK(nodes.merge(0, {7}).status.code() == StatusCode::NotReady);
}

TEST_CASE("merge: writes that come meanwhile are kept") {
  MergeWorld nodes({.merge_page_entries = 1, .merge_block_bytes = 1});
  Content old;
  for (int number = 0; number < 20; ++number) old[number] = {100, "old"};
  nodes.fill(1, old);
  std::optional<rpc::MergeBucketReply> merged;
  auto process = nodes.world.scheduler.make_node_scheduler("distributor");
  auto executor = process->make_executor("merge");
  auto transport = nodes.world.network.transport_for("distributor");
  rpc::MergeBucket request{
      .state_version = kState, .distributor = nodes.owner(kBucket), .bucket = kBucket, .sources = {1}, .outsiders = {}};
  rpc::call(*transport, storage_address(0), std::move(request), seconds(60), *executor,
            [&](Result<rpc::MergeBucketReply> reply) {
              REQUIRE(reply);
              merged = std::move(*reply);
            });
  Content written;
  for (int number = 0; number < 20 && !merged; ++number) {
    written[number] = {200, number % 3 == 0 ? "" : "new"};
    nodes.fill(0, {{number, written[number]}});
  }
  REQUIRE(nodes.world.scheduler.run_until([&] { return merged.has_value(); }, seconds(60)));
  REQUIRE(merged->status);
  CHECK(written.size() > 5);  // They did overlap.
  CHECK(nodes.content_of(0) == newest({old, written}));
}

TEST_CASE("merge: pages of metadata begin behind a gid and say whether there is more") {
  MergeWorld nodes({.merge_page_entries = 4});
  Content content;
  for (int number = 0; number < 10; ++number) content[number] = {100, number % 2 == 0 ? "" : "body"};
  nodes.fill(0, content);
  std::vector<rpc::EntryKey> all =
      nodes.ask(0, rpc::ListEntries{.bucket = kBucket, .after = {}, .max_entries = 100}).entries;
  REQUIRE(all.size() == 10);
  std::vector<std::size_t> sizes;
  std::vector<rpc::EntryKey> pages;
  rpc::ListEntries request{.bucket = kBucket, .after = {}};
  for (bool more = true; more;) {
    rpc::ListEntriesReply page = nodes.ask(0, request);  // max_entries 0: as the node is set.
    REQUIRE(page.status);
    more = page.more;
    sizes.push_back(page.entries.size());
    REQUIRE(!page.entries.empty());
    request.from_start = false;
    request.after = page.entries.back().gid;
    pages.insert(pages.end(), page.entries.begin(), page.entries.end());
  }
  CHECK(sizes == std::vector<std::size_t>{4, 4, 2});
  REQUIRE(pages.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(pages[i].gid == all[i].gid);
    CHECK(pages[i].removed == all[i].removed);
    if (i > 0) CHECK(all[i - 1].gid < all[i].gid);
  }
  CHECK(nodes.ask(1, rpc::ListEntries{.bucket = BucketId(3, 7), .after = {}}).status.code() ==
        (BucketId(3, 7) == kBucket ? StatusCode::Ok : StatusCode::NotFound));
}

}  // namespace fjord::test
