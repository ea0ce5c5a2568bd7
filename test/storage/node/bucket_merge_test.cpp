#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>

#include "fjord/common/random.h"
#include "fjord/document/docblock.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/spi/entry_window.h"
#include "fjord/storage/spi/token_entry.h"
#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 4;
const BucketId kBucket = get_of(id_in(1, 0)).bucket;

/// The content of a replica by number of the document: timestamp and body (empty: removed).
using Content = std::map<int, std::pair<std::uint64_t, std::string>>;

class MergeWorld : public NodeWorld {
 public:
  explicit MergeWorld(storage::StorageNodeOptions options, std::uint16_t nodes = 3, MakeProvider providers = {})
      : NodeWorld(nodes, options, std::move(providers)) {
    give_state(kState);
    for (std::uint16_t node = 0; node < nodes; ++node) REQUIRE(install(node, kState, kBucket, {}));
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
  rpc::MergeBucketReply merge(std::uint16_t node, std::vector<std::uint16_t> sources, std::uint32_t time_limit_ms = 0) {
    rpc::MergeBucket request{
        .state_version = kState, .distributor = owner(kBucket), .bucket = kBucket, .sources = {}, .non_members = {}};
    request.sources = std::move(sources);
    request.time_limit_ms = time_limit_ms;
    return caller.ask(storage_address(node), std::move(request), seconds(300));
  }
  BucketInfo info_of(std::uint16_t node) { return reports(node, kState, owner(kBucket)).reports.at(0).info; }
  /// Returns the content of the replica.
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
  CHECK(nodes.info_of(1) == before);  // A merge does not change its sources.

  rpc::MergeBucketReply again = nodes.merge(0, {1, 2});
  REQUIRE(again.status);
  CHECK(again.entries_copied == 0);
  CHECK(again.bytes_copied == 0);

  // After merges in the other direction all three replicas are equal, with equal checksums.
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
  // Only an installed replica set creates a bucket: a late duplicate of a merge must not recreate a deleted one.
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

TEST_CASE("merge: of 16 replicas it has the metadata of one window in memory, however much they hold") {
  constexpr std::uint16_t kReplicas = 16;
  constexpr std::uint32_t kWindow = 10;
  MergeWorld nodes({.merge_page_entries = kWindow, .merge_block_bytes = 300}, kReplicas);
  std::vector<Content> contents(kReplicas);
  std::vector<std::uint16_t> sources;
  Random random(16);
  for (std::uint16_t node = 0; node < kReplicas; ++node) {
    for (int number = 0; number < 300; ++number) {
      // Some replicas hold almost nothing, others a part, so windows begin and end at other places on each.
      if (random.chance(node % 5 == 0 ? 0.95 : 0.4)) continue;
      const std::uint64_t timestamp = 100 + kReplicas * random.below(3) + node;
      contents[node][number] = {timestamp, random.chance(0.2) ? "" : "body " + std::to_string(timestamp)};
    }
    nodes.fill(node, contents[node]);
    if (node != 0) sources.push_back(node);
  }
  const rpc::MergeBucketReply reply = nodes.merge(0, sources);
  REQUIRE(reply.status);
  CHECK(nodes.content_of(0) == newest(contents));
  CHECK(nodes.metric("fjord_storage_merge_entries_peak") > kWindow);
  CHECK(nodes.metric("fjord_storage_merge_entries_peak") <= 2 * kWindow);
  CHECK(nodes.merge(0, sources).entries_copied == 0);
}

TEST_CASE("merge: one that is cut short by its time limit goes on where it ended, and copies nothing twice") {
  MergeWorld nodes({.merge_page_entries = 20, .merge_block_bytes = 100});
  Content content;
  for (int number = 0; number < 200; ++number) content[number] = {1000u + static_cast<unsigned>(number), "some body"};
  nodes.fill(1, content);
  std::uint64_t copied = 0;
  std::uint64_t bytes = 0;
  int cut_short = 0;
  rpc::MergeBucketReply reply;
  do {
    reply = nodes.merge(0, {1}, 15);
    copied += reply.entries_copied;
    bytes += reply.bytes_copied;
    cut_short += reply.status ? 0 : 1;
    REQUIRE((reply.status || reply.status.code() == StatusCode::Busy));
    REQUIRE(cut_short < 1000);
  } while (!reply.status);
  CHECK(cut_short > 2);
  CHECK(copied == 200);
  CHECK(nodes.content_of(0) == content);
  MergeWorld others({});
  others.fill(1, content);
  CHECK(bytes == others.merge(0, {1}).bytes_copied);
}

TEST_CASE("merge: after a restart of the node in the middle of it, only what is missing is fetched") {
  sim::SimEnv disk;
  const auto open = [&](std::uint16_t node, unsigned stripe,
                        unsigned of) -> Result<std::unique_ptr<spi::PersistenceProvider>> {
    SlotfileOptions options;
    options.directory = "/node" + std::to_string(node);
    options.stripe = stripe;
    options.stripes = of;
    return open_slotfile_provider(disk, options);
  };
  MergeWorld nodes({.merge_page_entries = 20, .merge_block_bytes = 100, .peer_timeout = milliseconds(100)}, 3, open);
  Content content;
  for (int number = 0; number < 200; ++number) content[number] = {1000u + static_cast<unsigned>(number), "some body"};
  nodes.fill(1, content);
  REQUIRE(nodes.merge(0, {1}, 20).status.code() == StatusCode::Busy);
  nodes.restart(0);
  nodes.give_state(kState);
  const std::size_t before = nodes.content_of(0).size();
  CHECK(before > 0);
  CHECK(before < 200);
  const rpc::MergeBucketReply reply = nodes.merge(0, {1});
  REQUIRE(reply.status);
  CHECK(reply.entries_copied == 200 - before);
  CHECK(nodes.content_of(0) == content);
}

TEST_CASE("merge: it ends when the bucket gets another owner") {
  MergeWorld nodes({.merge_page_entries = 5, .merge_block_bytes = 1});
  Content content;
  for (int number = 0; number < 100; ++number) content[number] = {1000u + static_cast<unsigned>(number), "some body"};
  nodes.fill(1, content);
  std::optional<rpc::MergeBucketReply> merged;
  auto process = nodes.world.scheduler.make_node_scheduler("distributor");
  auto executor = process->make_executor("merge");
  auto transport = nodes.world.network.transport_for("distributor");
  const std::uint16_t owner = nodes.owner(kBucket);
  rpc::MergeBucket request{
      .state_version = kState, .distributor = owner, .bucket = kBucket, .sources = {1}, .non_members = {}};
  rpc::call(*transport, storage_address(0), std::move(request), seconds(60), *executor,
            [&](Result<rpc::MergeBucketReply> reply) { merged = std::move(*reply); });
  nodes.world.scheduler.run_until([&] { return nodes.metric("fjord_storage_merged_entries_total") > 10; }, seconds(60));
  rpc::ClusterInfo info = nodes.info(kState + 1);
  info.state.insert(info.state.find(" storage:"), " ." + std::to_string(owner) + ".s:d");
  REQUIRE(nodes.ask(0, rpc::Poll{.info = info}).status);
  REQUIRE(nodes.world.scheduler.run_until([&] { return merged.has_value(); }, seconds(60)));
  CHECK(merged->status.code() == StatusCode::WrongDistribution);
  CHECK(nodes.content_of(0).size() < 100);
}

TEST_CASE("merge: with a source of an earlier version, which has no windows, it works too") {
  // A source of an earlier version: it answers by gid, whatever the request says.
  struct OldSource final : rpc::Service {
    bool handle(rpc::Request& request, rpc::Responder& respond) override {
      if (auto* list = std::get_if<rpc::ListEntries>(&request)) {
        rpc::ListEntriesReply reply;
        for (const auto& [gid, id] : ids) {
          const bool behind = list->from_start || gid > list->after;
          reply.more = reply.more || (behind && reply.entries.size() == 3);
          if (behind && reply.entries.size() < 3) reply.entries.push_back({gid, 500, true});
        }
        respond(std::move(reply));
        return true;
      }
      auto* fetch = std::get_if<rpc::FetchEntries>(&request);
      if (fetch == nullptr) return false;
      rpc::FetchEntriesReply reply;
      DocBlockBuilder block;
      for (const GlobalId& gid : fetch->gids) {
        block.add({.gid = gid, .timestamp = Timestamp{500}, .removed = true, .id = ids[gid], .header = {}, .body = {}});
        ++reply.done;
      }
      reply.docblock = block.take();
      respond(std::move(reply));
      return true;
    }
    std::map<GlobalId, std::string> ids;
  } old;
  MergeWorld nodes({.merge_page_entries = 3});
  Content content;
  for (int number = 0; number < 40; ++number) {
    const std::string id = id_in(1, number);
    if (number % 2 == 0) old.ids[get_of(id).gid] = id;
    content[number] = {number % 4 == 0 ? 600 : 400, "ours"};
  }
  nodes.fill(0, content);
  nodes.world.network.node_down("storage.1");
  nodes.world.network.listen(storage_address(1), {&old}, "storage.1");
  const rpc::MergeBucketReply reply = nodes.merge(0, {1});
  REQUIRE(reply.status);
  CHECK(reply.entries_copied == 10);
  for (int number = 2; number < 40; number += 4) content[number] = {500, ""};
  CHECK(nodes.content_of(0) == content);
}

TEST_CASE("merge: windows are not for nodes of an earlier version: they are told by gid") {
  MergeWorld nodes({});
  Content content;
  for (int number = 0; number < 10; ++number) content[number] = {100, "body"};
  nodes.fill(0, content);
  std::vector<rpc::EntryKey> pages;
  rpc::ListEntries request{.bucket = kBucket, .after = {}, .max_entries = 4};
  for (bool more = true; more;) {
    const rpc::ListEntriesReply page = nodes.ask(0, request);
    REQUIRE(!page.entries.empty());
    CHECK_FALSE(page.by_group);
    more = page.more;
    request.from_start = false;
    request.after = page.entries.back().gid;
    pages.insert(pages.end(), page.entries.begin(), page.entries.end());
  }
  REQUIRE(pages.size() == 10);
  for (std::size_t i = 1; i < pages.size(); ++i) CHECK(pages[i - 1].gid < pages[i].gid);
}

namespace {

/// Answers in the place of storage.1.
struct TestSource final : rpc::Service {
  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    if (std::get_if<rpc::ListEntries>(&request) != nullptr) {
      rpc::ListEntriesReply reply;
      for (const auto& [gid, entry] : listed) reply.entries.push_back({gid, entry.timestamp.us, entry.remove});
      std::sort(reply.entries.begin(), reply.entries.end(), [](const rpc::EntryKey& a, const rpc::EntryKey& b) {
        return std::pair(spi::group_of(a.gid), a.gid) < std::pair(spi::group_of(b.gid), b.gid);
      });
      reply.by_group = true;
      respond(std::move(reply));
      return true;
    }
    auto* fetch = std::get_if<rpc::FetchEntries>(&request);
    if (fetch == nullptr) return false;
    rpc::FetchEntriesReply reply;
    if (fetches++ == fetches_answered) {
      reply.status = Status(StatusCode::NotReady, "the source has been stopped");
    } else {
      DocBlockBuilder block;
      for (std::size_t i = 0; i < std::min(fetch->gids.size(), entries_a_block); ++i) {
        const spi::Write& entry = stored.at(fetch->gids[i]);
        block.add({.gid = entry.gid,
                   .timestamp = entry.timestamp,
                   .removed = entry.remove,
                   .id = entry.id,
                   .header = entry.header,
                   .body = entry.body});
        fetched_as_listed.push_back(fetch->listed_us.at(i));
        ++reply.done;
      }
      reply.docblock = block.take();
    }
    respond(std::move(reply));
    return true;
  }
  void add(std::map<GlobalId, spi::Write>& entries, const std::string& id, std::uint64_t timestamp) {
    const GlobalId gid = get_of(id).gid;
    entries[gid] = {.bucket = kBucket,
                    .gid = gid,
                    .timestamp = Timestamp{timestamp},
                    .remove = true,
                    .id = keep(id),
                    .header = {},
                    .body = {}};
  }
  void add_token(std::map<GlobalId, spi::Write>& entries, const std::string& id, std::uint64_t timestamp) {
    const GlobalId document = get_of(id).gid;
    const std::string token = "T" + std::to_string(timestamp);
    const GlobalId gid = spi::token_gid(document, token);
    entries[gid] = {.bucket = kBucket,
                    .gid = gid,
                    .timestamp = Timestamp{timestamp},
                    .remove = true,
                    .id = keep(spi::TokenEntry::of(document, token, true).id()),
                    .header = {},
                    .body = {}};
  }

  std::map<GlobalId, spi::Write> listed;
  std::map<GlobalId, spi::Write> stored;
  std::size_t entries_a_block = 100;
  int fetches_answered = 1000;
  std::vector<std::uint64_t> fetched_as_listed;

 private:
  std::string_view keep(std::string id) { return ids_.emplace_back(std::move(id)); }

  std::deque<std::string> ids_;
  int fetches = 0;
};

/// Returns the timestamps of the entries of node 0.
std::set<std::uint64_t> timestamps_of_0(MergeWorld& nodes) {
  const rpc::ListEntriesReply list =
      nodes.ask(0, rpc::ListEntries{.bucket = kBucket, .after = {}, .max_entries = 1000});
  REQUIRE(list.status);
  std::set<std::uint64_t> timestamps;
  for (const rpc::EntryKey& entry : list.entries) timestamps.insert(entry.timestamp_us);
  return timestamps;
}

}  // namespace

TEST_CASE("merge: a document that was written after it was listed comes with the token of that write") {
  MergeWorld nodes({});
  const std::string id = id_in(1, 0);
  const auto write = [&](std::uint64_t timestamp) {
    rpc::StorageOperation put = put_of(id, timestamp, "body");
    const std::string token = "T" + std::to_string(timestamp);
    put.token_gid = spi::token_gid(put.gid, token);
    put.token_entry = spi::TokenEntry::of(put.gid, token, true).id();
    REQUIRE(nodes.apply_one(1, kState, std::move(put)).status);
  };
  write(200);
  write(300);
  nodes.fill(1, {{1, {250, "another document"}}});
  write(400);
  write(500);
  const auto fetch = [&](std::uint64_t listed_us) {
    const rpc::FetchEntriesReply reply =
        nodes.ask(1, rpc::FetchEntries{.bucket = kBucket, .gids = {get_of(id).gid}, .listed_us = {listed_us}});
    REQUIRE(reply.status);
    CHECK(reply.done == 1);
    std::vector<std::uint64_t> timestamps;
    DocBlockReader reader(reply.docblock);
    while (const auto entry = reader.next()) timestamps.push_back(entry->timestamp.us);
    std::sort(timestamps.begin(), timestamps.end());
    return timestamps;
  };
  CHECK(fetch(500) == std::vector<std::uint64_t>{500});
  CHECK(fetch(300) == std::vector<std::uint64_t>{400, 500, 500});
  REQUIRE(nodes.apply_one(1, kState, remove_of(id, 600)).status);
  CHECK(fetch(500) == std::vector<std::uint64_t>{600});
}

TEST_CASE("merge: the source hears when it listed what is fetched") {
  TestSource source;
  source.add(source.listed, id_in(1, 0), 300);
  source.add_token(source.listed, id_in(1, 0), 200);
  source.stored = source.listed;
  MergeWorld nodes({});
  nodes.world.network.node_down("storage.1");
  nodes.world.network.listen(storage_address(1), {&source}, "storage.1");
  REQUIRE(nodes.merge(0, {1}).status);
  CHECK(source.fetched_as_listed == std::vector<std::uint64_t>{200, 300});
}

TEST_CASE("merge: a source that stops between a document and its tokens leaves neither behind") {
  TestSource source;
  source.add_token(source.listed, id_in(1, 0), 200);
  source.add_token(source.listed, id_in(1, 0), 300);
  source.add(source.listed, id_in(1, 0), 300);
  source.stored = source.listed;
  source.entries_a_block = 1;
  source.fetches_answered = GENERATE(1, 2);
  MergeWorld nodes({});
  nodes.world.network.node_down("storage.1");
  nodes.world.network.listen(storage_address(1), {&source}, "storage.1");

  CHECK(nodes.merge(0, {1}).status.code() == StatusCode::NotReady);
  CHECK(timestamps_of_0(nodes).empty());
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
  rpc::MergeBucket request{.state_version = kState,
                           .distributor = nodes.owner(kBucket),
                           .bucket = kBucket,
                           .sources = {1},
                           .non_members = {}};
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
  CHECK(written.size() > 5);  // Writes were made while the merge was running.
  CHECK(nodes.content_of(0) == newest({old, written}));
}

TEST_CASE("merge: windows of metadata begin behind a group and say whether there is more") {
  MergeWorld nodes({.merge_page_entries = 4});
  Content content;
  for (int number = 0; number < 10; ++number) content[number] = {100, number % 2 == 0 ? "" : "body"};
  nodes.fill(0, content);
  std::vector<rpc::EntryKey> all =
      nodes.ask(0, rpc::ListEntries{.bucket = kBucket, .after = {}, .max_entries = 100, .by_group = true}).entries;
  REQUIRE(all.size() == 10);
  std::vector<std::size_t> sizes;
  std::vector<rpc::EntryKey> pages;
  rpc::ListEntries request{.bucket = kBucket, .after = {}, .by_group = true};
  for (bool more = true; more;) {
    rpc::ListEntriesReply page = nodes.ask(0, request);  // Without a size in the request, the node's setting applies.
    REQUIRE(page.status);
    more = page.more;
    sizes.push_back(page.entries.size());
    REQUIRE(!page.entries.empty());
    request.from_start = false;
    request.after_group = spi::group_of(page.entries.back().gid);
    pages.insert(pages.end(), page.entries.begin(), page.entries.end());
  }
  CHECK(sizes == std::vector<std::size_t>{4, 4, 2});
  REQUIRE(pages.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(pages[i].gid == all[i].gid);
    CHECK(pages[i].removed == all[i].removed);
    if (i > 0) CHECK(spi::group_of(all[i - 1].gid) <= spi::group_of(all[i].gid));
  }
  CHECK(nodes.ask(1, rpc::ListEntries{.bucket = BucketId(3, 7), .after = {}}).status.code() ==
        (BucketId(3, 7) == kBucket ? StatusCode::Ok : StatusCode::NotFound));
}

}  // namespace fjord::test
