#include <algorithm>
#include <set>

#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"

/// Scenarios from other systems' suites for their engines; README.md explains their names.
namespace fjord::testing {

namespace {

const BucketId kBucket(8, 0x12);

std::unique_ptr<Engine> next_engine() {
  const std::string name = GENERATE(from_range(engine_names()));
  UNSCOPED_INFO("engine: " << name);
  return make_engine(name);
}

std::unique_ptr<Engine> engine_with_bucket(BucketId bucket = kBucket) {
  std::unique_ptr<Engine> engine = next_engine();
  REQUIRE(engine->provider().create_bucket(bucket).is_ok());
  return engine;
}

spi::IterateOptions selecting(const std::string& text) {
  auto parsed = Selection::parse(text, *test_types());
  REQUIRE(parsed);
  return {.types = test_types(), .selection = std::make_shared<const Selection>(*parsed)};
}

std::vector<std::string> ids_of(const std::vector<OwnedEntry>& entries) {
  std::vector<std::string> ids;
  for (const OwnedEntry& entry : entries) ids.push_back(entry.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::string> ids_of_numbers(const std::vector<int>& numbers) {
  std::vector<std::string> ids;
  for (const int number : numbers) ids.push_back(test_id(number).str());
  std::sort(ids.begin(), ids.end());
  return ids;
}

void check_removed(spi::PersistenceProvider& provider, int number, std::uint64_t timestamp_us) {
  const auto got = provider.get(kBucket, test_id(number).gid());
  REQUIRE(got);
  CHECK(got->removed);
  CHECK(got->timestamp == Timestamp{timestamp_us});
}

void check_body(spi::PersistenceProvider& provider, BucketId bucket, const OwnedWrite& put) {
  const auto got = provider.get(bucket, put.gid);
  REQUIRE(got);
  CHECK_FALSE(got->removed);
  CHECK(got->timestamp == put.timestamp);
  CHECK(got->body == put.body);
}

}  // namespace

TEST_CASE("persistence: basics: testPutNewDocumentVersion: a newer version takes the place of the one before") {
  const auto engine = engine_with_bucket();
  const OwnedWrite first = test_put(1, 3, "first");
  const OwnedWrite second = test_put(1, 4, "the second is longer");
  REQUIRE(apply(engine->provider(), kBucket, first).status.is_ok());
  const BucketInfo before = engine->provider().bucket_info(kBucket).value();
  REQUIRE(apply(engine->provider(), kBucket, second).existed);
  for (int round = 0; round < 2; ++round) {
    const BucketInfo after = engine->provider().bucket_info(kBucket).value();
    CHECK(after.entries == 1);
    CHECK(after.documents == 1);
    CHECK(after.checksum != before.checksum);
    CHECK(after.bytes == second.header.size() + second.body.size());
    check_body(engine->provider(), kBucket, second);
    engine->reopen();
  }
}

TEST_CASE("persistence: basics: testPutDuplicate: a put that comes twice is there once") {
  const auto engine = engine_with_bucket();
  const OwnedWrite put = test_put(1, 3, "once");
  REQUIRE(apply(engine->provider(), kBucket, put).status.is_ok());
  const BucketInfo info = engine->provider().bucket_info(kBucket).value();
  for (int round = 0; round < 2; ++round) {
    const spi::WriteResult again = apply(engine->provider(), kBucket, put);
    CHECK(again.status.is_ok());
    CHECK(again.superseded);
    CHECK(engine->provider().bucket_info(kBucket).value() == info);
    CHECK(iterate_all(engine->provider(), kBucket, {}).size() == 1);
    engine->reopen();
  }
}

TEST_CASE("persistence: basics: testRemoveMulti: each remove of a batch says whether there was a document") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 20; i += 2) apply(engine->provider(), kBucket, test_put(i, 10));
  std::vector<OwnedWrite> removes;
  for (int i = 0; i < 20; ++i) removes.push_back(test_remove(i, static_cast<std::uint64_t>(20 + i)));
  const auto results = apply(engine->provider(), kBucket, removes);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i].status.is_ok());
    CHECK(results[i].existed == (i % 2 == 0));
  }
  engine->reopen();
  const BucketInfo info = engine->provider().bucket_info(kBucket).value();
  CHECK(info.documents == 0);
  CHECK(info.entries == 20);
}

TEST_CASE(
    "persistence: basics: multi_remove_does_not_remove_docs_if_specified_timestamp_is_older_than_stored_doc: the newer "
    "documents of a batch of removes stay") {
  const auto engine = engine_with_bucket();
  std::vector<OwnedWrite> removes;
  for (int i = 0; i < 10; ++i) {
    apply(engine->provider(), kBucket, test_put(i, static_cast<std::uint64_t>(100 + i)));
    removes.push_back(test_remove(i, i < 5 ? 99 : 200));
  }
  const auto results = apply(engine->provider(), kBucket, removes);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i].status.is_ok());
    CHECK(results[i].superseded == (i < 5));
  }
  engine->reopen();
  CHECK(ids_of(iterate_all(engine->provider(), kBucket, {})) == ids_of_numbers({0, 1, 2, 3, 4}));
}

TEST_CASE("persistence: basics: testRemoveMerge: of several removes the newest counts, and hides what is older") {
  const auto engine = engine_with_bucket();
  // The engine has never had the document.
  CHECK_FALSE(apply(engine->provider(), kBucket, test_remove(1, 10)).existed);
  const spi::WriteResult newer = apply(engine->provider(), kBucket, test_remove(1, 12));
  CHECK(newer.status.is_ok());
  CHECK_FALSE(newer.existed);
  CHECK_FALSE(newer.superseded);
  for (int round = 0; round < 2; ++round) {
    check_removed(engine->provider(), 1, 12);
    CHECK(apply(engine->provider(), kBucket, test_remove(1, 11)).superseded);
    CHECK(apply(engine->provider(), kBucket, test_put(1, 11)).superseded);
    check_removed(engine->provider(), 1, 12);
    CHECK(engine->provider().bucket_info(kBucket)->entries == 1);
    engine->reopen();
  }
}

TEST_CASE("persistence: basics: testGet: a read gives a document, a removed entry, or nothing") {
  const auto engine = engine_with_bucket();
  const OwnedWrite put = test_put(1, 3, "there");
  CHECK(engine->provider().get(kBucket, put.gid).status().code() == StatusCode::NotFound);
  apply(engine->provider(), kBucket, put);
  for (int round = 0; round < 2; ++round) {
    check_body(engine->provider(), kBucket, put);
    const auto header = engine->provider().get(kBucket, put.gid, spi::Parts::HeaderOnly);
    REQUIRE(header);
    CHECK(header->header == put.header);
    CHECK(header->body.empty());
    CHECK(engine->provider().get(kBucket, test_id(2).gid()).status().code() == StatusCode::NotFound);
    engine->reopen();
  }
  apply(engine->provider(), kBucket, test_remove(1, 4));
  check_removed(engine->provider(), 1, 4);
}

TEST_CASE("persistence: basics: testGetModifiedBuckets: what an engine does by itself changes no bucket") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 60; ++i) apply(engine->provider(), kBucket, test_put(i % 40, static_cast<std::uint64_t>(10 + i)));
  const BucketInfo info = engine->provider().bucket_info(kBucket).value();
  const auto entries = iterate_all(engine->provider(), kBucket, {});
  MonotonicTime now{1'000'000};
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 200; ++i) {
      engine->provider().maintain(now);
      now = now + std::chrono::milliseconds(20);
    }
    CHECK(engine->provider().take_damaged().empty());
    CHECK(engine->provider().bucket_info(kBucket).value() == info);
    CHECK((iterate_all(engine->provider(), kBucket, {}) == entries));
    engine->checkpoint();
    engine->reopen();
  }
}

TEST_CASE("persistence: basics: test_remove_to_missing_bucket: a remove makes no bucket") {
  const auto engine = next_engine();
  CHECK(apply(engine->provider(), kBucket, test_remove(1, 3)).status.code() == StatusCode::NotFound);
  CHECK(engine->provider().list_buckets().empty());
  engine->reopen();
  CHECK(engine->provider().list_buckets().empty());
}

TEST_CASE(
    "persistence: basics: test_missing_bucket_gives_empty_bucket_info: a missing bucket is told from an empty one") {
  const auto engine = engine_with_bucket();
  CHECK(engine->provider().bucket_info(BucketId(8, 0x13)).status().code() == StatusCode::NotFound);
  CHECK(engine->provider().bucket_info(BucketId(9, 0x12)).status().code() == StatusCode::NotFound);
  CHECK(engine->provider().bucket_info(BucketId(7, 0x12)).status().code() == StatusCode::NotFound);
  CHECK(engine->provider().bucket_info(kBucket).has_value());
  CHECK(engine->provider().health().is_ok());
}

TEST_CASE(
    "persistence: iteration: testIterateCreateIterator: iterations of one bucket go on without regard to each other") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  for (int i = 0; i < 40; ++i) apply(provider, kBucket, test_put(i, 10, std::string(100, 'x')));
  auto one = provider.iterate(kBucket, {});
  auto two = provider.iterate(kBucket, {});
  REQUIRE(one);
  REQUIRE(two);
  std::vector<OwnedEntry> of_one;
  std::vector<OwnedEntry> of_two;
  const auto take = [](spi::DocumentIterator& from, std::vector<OwnedEntry>& into, std::size_t bytes) {
    DocBlockBuilder block;
    const Result<bool> more = from.next(block, bytes);
    REQUIRE(more);
    for (OwnedEntry& entry : entries_of(block.take())) into.push_back(std::move(entry));
    return *more;
  };
  take(**one, of_one, 1000);
  while (take(**two, of_two, 300)) {
  }
  two->reset();
  while (take(**one, of_one, 500)) {
  }
  std::sort(of_one.begin(), of_one.end());
  std::sort(of_two.begin(), of_two.end());
  CHECK(of_one.size() == 40);
  CHECK((of_one == of_two));
}

TEST_CASE(
    "persistence: iteration: testIterateAllDocsNewestVersionOnly: of each document the newest version comes, once") {
  const auto engine = engine_with_bucket();
  std::vector<OwnedEntry> expected;
  for (int version = 0; version < 3; ++version) {
    for (int i = 0; i < 30; ++i) {
      const OwnedWrite put =
          test_put(i, static_cast<std::uint64_t>(100 * version + i + 1), std::string(1, "abc"[version]));
      apply(engine->provider(), kBucket, put);
      if (version < 2) continue;
      expected.push_back({.gid = put.gid,
                          .timestamp_us = put.timestamp.us,
                          .removed = false,
                          .id = put.id,
                          .header = put.header,
                          .body = put.body});
    }
  }
  std::sort(expected.begin(), expected.end());
  for (int round = 0; round < 2; ++round) {
    CHECK((iterate_all(engine->provider(), kBucket, {}, 500) == expected));
    engine->checkpoint();
    engine->reopen();
  }
}

TEST_CASE(
    "persistence: iteration: testIterationRequiringDocumentIdOnlyMatching: a selection by id picks documents; removed "
    "entries come when they are wanted, stored before or not") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 10; ++i) apply(engine->provider(), kBucket, test_put(i, 10));
  apply(engine->provider(), kBucket, test_remove(3, 20));
  apply(engine->provider(), kBucket, test_remove(40, 21));  // Document 40 was never stored.
  spi::IterateOptions options = selecting("id.specific == \"5\" or id.specific == \"3\"");
  REQUIRE_FALSE(options.selection->needs_body());
  CHECK(ids_of(iterate_all(engine->provider(), kBucket, options)) == ids_of_numbers({5}));
  options.include_removed = true;
  CHECK(ids_of(iterate_all(engine->provider(), kBucket, options)) == ids_of_numbers({3, 5, 40}));
}

TEST_CASE(
    "persistence: iteration: testIterateBadDocumentSelection: a selection that fits no stored type gives nothing") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 10; ++i) apply(engine->provider(), kBucket, test_put(i, 10));
  const std::string schema = "document other { field count type int { header } }";
  const auto others = DocumentTypeRepo::build(std::span(&schema, 1));
  REQUIRE(others);
  CHECK_FALSE(Selection::parse("other.count ==", **others));  // A selection that does not parse cannot reach an engine.
  CHECK_FALSE(Selection::parse("item.size == 3", **others));
  for (const std::string text : {"other", "other.count == 3", "not other.count == 3"}) {
    CAPTURE(text);
    auto parsed = Selection::parse(text, **others);
    REQUIRE(parsed);
    const spi::IterateOptions options{.types = *others, .selection = std::make_shared<const Selection>(*parsed)};
    CHECK(iterate_all(engine->provider(), kBucket, options).empty());
  }
}

TEST_CASE("persistence: iteration: testIterateAlreadyCompleted: an iteration that is over stays over") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  for (int i = 0; i < 10; ++i) apply(provider, kBucket, test_put(i, 10));
  auto iterator = provider.iterate(kBucket, {});
  REQUIRE(iterator);
  DocBlockBuilder all;
  while ((*iterator)->next(all, 1 << 20).value()) {
  }
  CHECK(all.count() == 10);
  for (int i = 0; i < 3; ++i) {
    DocBlockBuilder more;
    CHECK_FALSE((*iterator)->next(more, 1 << 20).value());
    CHECK(more.empty());
  }
}

TEST_CASE("persistence: iteration: test_iterate_missing_bucket: an iteration of a missing bucket does not begin") {
  const auto engine = engine_with_bucket();
  for (const BucketId bucket : {BucketId(8, 0x13), BucketId(9, 0x12), BucketId(7, 0x12)}) {
    CHECK(engine->provider().iterate(bucket, {}).status().code() == StatusCode::NotFound);
    CHECK(engine->provider().iterate(bucket, selecting("item.size == 3")).status().code() == StatusCode::NotFound);
  }
}

TEST_CASE(
    "persistence: split and join: testSplitSingleDocumentInSource: the half without documents is there and empty") {
  const auto engine = engine_with_bucket();
  const OwnedWrite put = test_put(1, 10, "alone");
  apply(engine->provider(), kBucket, put);
  REQUIRE(engine->provider().split_bucket(kBucket).is_ok());
  const auto halves = halves_of(kBucket);
  const std::size_t with = halves[0].contains(test_id(1).bucket(BucketId::kUsedBitsMax)) ? 0 : 1;
  for (int round = 0; round < 2; ++round) {
    auto& provider = engine->provider();
    CHECK(provider.list_buckets() == std::vector<BucketId>(halves.begin(), halves.end()));
    check_body(provider, halves[with], put);
    CHECK(provider.bucket_info(halves[1 - with]).value() == BucketInfo{});
    CHECK(provider.get(kBucket, put.gid).status().code() == StatusCode::NotFound);
    engine->reopen();
  }
}

TEST_CASE("persistence: split and join: testJoinTargetExists: a target that is there gets what the halves have") {
  const auto engine = engine_with_bucket();
  const ReplicaSet own{.epoch = 4, .nodes = {2}};
  REQUIRE(engine->provider().set_replica_set(kBucket, own).is_ok());
  const auto halves = halves_of(kBucket);
  for (const BucketId half : halves) REQUIRE(engine->provider().create_bucket(half).is_ok());
  std::vector<OwnedWrite> newest;
  for (int i = 0; i < 20; ++i) {
    const BucketId half = halves[halves[0].contains(test_id(i).bucket(BucketId::kUsedBitsMax)) ? 0 : 1];
    const OwnedWrite below = test_put(i, 20, "below");
    const OwnedWrite here = test_put(i, i % 2 == 0 ? 10 : 30, "here");
    apply(engine->provider(), half, below);
    if (i < 10) apply(engine->provider(), kBucket, here);
    newest.push_back(i < 10 && i % 2 == 1 ? here : below);
  }
  REQUIRE(engine->provider().join_buckets(kBucket).is_ok());
  for (int round = 0; round < 2; ++round) {
    CHECK(engine->provider().list_buckets() == std::vector<BucketId>{kBucket});
    CHECK(engine->provider().bucket_info(kBucket)->entries == 20);
    CHECK(engine->provider().replica_set(kBucket).value() == own);
    for (const OwnedWrite& put : newest) check_body(engine->provider(), kBucket, put);
    engine->reopen();
  }
}

TEST_CASE("persistence: split and join: testJoinSameSourceBuckets: one bucket is lifted up bit by bit") {
  const BucketId deep(11, 0x12);
  const auto engine = engine_with_bucket(deep);
  std::vector<OwnedWrite> puts;
  for (int i = 0; i < 80; i += 8) puts.push_back(test_put(i, 10, "lifted"));
  for (const OwnedWrite& put : puts) REQUIRE(apply(engine->provider(), deep, put).status.is_ok());
  const BucketInfo info = engine->provider().bucket_info(deep).value();
  for (unsigned bits = 10; bits >= 8; --bits) {
    const BucketId parent = deep.with_used_bits(bits);
    REQUIRE(engine->provider().join_buckets(parent).is_ok());
    CHECK(engine->provider().list_buckets() == std::vector<BucketId>{parent});
    CHECK(engine->provider().bucket_info(parent).value() == info);
    if (bits == 9) engine->reopen();
  }
  engine->reopen();
  for (const OwnedWrite& put : puts) check_body(engine->provider(), kBucket, put);
}

TEST_CASE(
    "persistence: split and join: testJoinSameSourceBucketsTargetExists: one half is added to a target that is there") {
  const auto engine = engine_with_bucket();
  const auto halves = halves_of(kBucket);
  const int number = halves[1].contains(test_id(1).bucket(BucketId::kUsedBitsMax)) ? 1 : 0;
  const BucketId half = halves[halves[1].contains(test_id(number).bucket(BucketId::kUsedBitsMax)) ? 1 : 0];
  REQUIRE(engine->provider().create_bucket(half).is_ok());
  const OwnedWrite below = test_put(number, 20, "below");
  const OwnedWrite here = test_put(number + 8, 10, "here");
  apply(engine->provider(), half, below);
  apply(engine->provider(), kBucket, here);
  apply(engine->provider(), kBucket, test_remove(number, 15));
  REQUIRE(engine->provider().join_buckets(kBucket).is_ok());
  for (int round = 0; round < 2; ++round) {
    CHECK(engine->provider().list_buckets() == std::vector<BucketId>{kBucket});
    CHECK(engine->provider().bucket_info(kBucket)->documents == 2);
    check_body(engine->provider(), kBucket, below);
    check_body(engine->provider(), kBucket, here);
    engine->reopen();
  }
}

TEST_CASE("storage operations: split_single_group: a split that puts everything on one side loses nothing") {
  const auto engine = engine_with_bucket(kBucket);
  std::vector<OwnedWrite> puts;  // All documents have the same location, so only the last bits of their buckets differ.
  for (int i = 0; i < 240; i += 8) puts.push_back(test_put(i, 10, std::string(100, 'x')));
  for (const OwnedWrite& put : puts) REQUIRE(apply(engine->provider(), kBucket, put).status.is_ok());
  const BucketInfo info = engine->provider().bucket_info(kBucket).value();
  BucketId bucket = kBucket;
  for (int splits = 0; splits < 6; ++splits) {
    REQUIRE(engine->provider().split_bucket(bucket).is_ok());
    const auto halves = halves_of(bucket);
    const std::size_t with = halves[0].contains(test_id(0).bucket(BucketId::kUsedBitsMax)) ? 0 : 1;
    bucket = halves[with];
    CHECK(engine->provider().bucket_info(bucket).value() == info);
    CHECK(engine->provider().bucket_info(halves[1 - with]).value() == BucketInfo{});
    if (splits % 2 == 0) engine->reopen();
  }
  for (const OwnedWrite& put : puts) check_body(engine->provider(), bucket, put);
  CHECK(iterate_all(engine->provider(), bucket, {}).size() == puts.size());
}

TEST_CASE("storage operations: visiting: selection and time range pick the same before and after a split") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 60; ++i) apply(engine->provider(), kBucket, test_put(i, static_cast<std::uint64_t>(100 + i)));
  spi::IterateOptions options = selecting("item.size >= 10 and item.size < 50");
  options.from = Timestamp{105};
  options.to = Timestamp{140};
  const auto whole = iterate_all(engine->provider(), kBucket, options);
  CHECK(whole.size() == 31);
  REQUIRE(engine->provider().split_bucket(kBucket).is_ok());
  for (int round = 0; round < 2; ++round) {
    std::vector<OwnedEntry> parts;
    for (const BucketId half : halves_of(kBucket)) {
      for (OwnedEntry& entry : iterate_all(engine->provider(), half, options)) parts.push_back(std::move(entry));
    }
    std::sort(parts.begin(), parts.end());
    CHECK((parts == whole));
    engine->reopen();
  }
}

TEST_CASE("storage operations: equal_timestamps: documents may share a timestamp, versions of one may not") {
  const auto engine = engine_with_bucket();
  const OwnedWrite one = test_put(1, 10, "one");
  const OwnedWrite two = test_put(2, 10, "two");
  CHECK_FALSE(apply(engine->provider(), kBucket, one).superseded);
  CHECK_FALSE(apply(engine->provider(), kBucket, two).superseded);
  CHECK(apply(engine->provider(), kBucket, test_put(1, 10, "one again")).superseded);
  CHECK(apply(engine->provider(), kBucket, test_remove(2, 10)).superseded);
  engine->reopen();
  check_body(engine->provider(), kBucket, one);
  check_body(engine->provider(), kBucket, two);
}

TEST_CASE(
    "merge execution: multiple_versions_in_apply_diff_only_writes_newest_version: the newest version of a batch "
    "stays") {
  const auto engine = engine_with_bucket();
  const OwnedWrite newest = test_put(1, 30, "newest");
  apply(engine->provider(), kBucket, std::vector<OwnedWrite>{test_put(1, 20, "older"), newest, test_remove(1, 25)});
  for (int round = 0; round < 2; ++round) {
    CHECK(engine->provider().list_entries(kBucket)->size() == 1);
    check_body(engine->provider(), kBucket, newest);
    engine->reopen();
  }
}

TEST_CASE(
    "merge execution: entry_removed_after_get_bucket_diff: an entry that went away after it was listed is passed "
    "over") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  for (int i = 0; i < 6; ++i) apply(provider, kBucket, test_put(i, 10));
  apply(provider, kBucket, test_remove(2, 20));
  std::vector<GlobalId> gids;
  const std::vector<spi::EntryMeta> listed = provider.list_entries(kBucket).value();
  for (const spi::EntryMeta& entry : listed) gids.push_back(entry.gid);
  REQUIRE(gids.size() == 6);
  REQUIRE(provider.forget_removes(kBucket, Timestamp{21}).is_ok());
  apply(provider, kBucket, test_put(3, 30, "newer than listed"));
  MonotonicTime now{1'000'000};
  for (int i = 0; i < 200; ++i) {
    provider.maintain(now);
    now = now + std::chrono::milliseconds(20);
  }
  DocBlockBuilder block;
  CHECK(provider.read_entries(kBucket, gids, block, 1 << 20).value() == 6);
  std::set<std::string> ids;
  for (const OwnedEntry& entry : entries_of(block.take())) {
    CHECK(entry.timestamp_us == (entry.id == test_id(3).str() ? 30U : entry.removed ? 20U : 10U));
    ids.insert(entry.id);
  }
  CAPTURE(ids);
  CHECK_FALSE(ids.contains(test_id(2).str()));
  CHECK(ids.size() == 5);
}

}  // namespace fjord::testing
