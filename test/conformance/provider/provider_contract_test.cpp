#include <algorithm>
#include <set>

#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"

namespace fjord::testing {

namespace {

const BucketId kBucket(8, 0x12);

/// Returns an engine; each test case runs once for every engine.
std::unique_ptr<Engine> next_engine() {
  const std::string name = GENERATE(from_range(engine_names()));
  UNSCOPED_INFO("engine: " << name);
  return make_engine(name);
}

std::unique_ptr<Engine> engine_with_bucket() {
  std::unique_ptr<Engine> engine = next_engine();
  REQUIRE(engine->provider().create_bucket(kBucket).is_ok());
  return engine;
}

}  // namespace

TEST_CASE("persistence: basics: testListBuckets: buckets are listed by rising raw id, also after a restart") {
  const auto engine = next_engine();
  CHECK(engine->provider().list_buckets().empty());
  const std::vector<BucketId> buckets{BucketId(1, 1), BucketId(8, 0x12), BucketId(8, 0x13), BucketId(58, 0x123456789)};
  for (const BucketId bucket : {buckets[2], buckets[0], buckets[3], buckets[1]}) {
    REQUIRE(engine->provider().create_bucket(bucket).is_ok());
  }
  CHECK(engine->provider().list_buckets() == buckets);
  engine->reopen();
  CHECK(engine->provider().list_buckets() == buckets);
}

TEST_CASE(
    "persistence: basics: test_empty_bucket_gives_empty_bucket_info: a new bucket has nothing; making it again changes "
    "nothing") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  CHECK(provider.bucket_info(kBucket).value() == BucketInfo{});
  CHECK(provider.replica_set(kBucket).value() == ReplicaSet{});
  REQUIRE(apply(provider, kBucket, test_put(1, 10)).status.is_ok());
  const ReplicaSet set{.epoch = 7, .nodes = {3, 1}};
  REQUIRE(provider.set_replica_set(kBucket, set).is_ok());
  REQUIRE(provider.create_bucket(kBucket).is_ok());
  CHECK(provider.bucket_info(kBucket)->documents == 1);
  CHECK(provider.replica_set(kBucket).value() == set);
}

TEST_CASE(
    "storage operations: running_task_against_unknown_bucket_fails: a bucket that is not there is not found, by any "
    "call") {
  const auto engine = next_engine();
  auto& provider = engine->provider();
  const GlobalId gid = test_id(1).gid();
  DocBlockBuilder block;
  CHECK(provider.bucket_info(kBucket).status().code() == StatusCode::NotFound);
  CHECK(provider.replica_set(kBucket).status().code() == StatusCode::NotFound);
  CHECK(provider.set_replica_set(kBucket, {}).code() == StatusCode::NotFound);
  CHECK(provider.get(kBucket, gid).status().code() == StatusCode::NotFound);
  CHECK(provider.iterate(kBucket, {}).status().code() == StatusCode::NotFound);
  CHECK(provider.list_entries(kBucket).status().code() == StatusCode::NotFound);
  CHECK(provider.read_entries(kBucket, std::span(&gid, 1), block, 100).status().code() == StatusCode::NotFound);
  CHECK(apply(provider, kBucket, test_put(1, 1)).status.code() == StatusCode::NotFound);
  CHECK(provider.delete_bucket(kBucket).is_ok());
}

TEST_CASE("provider: the replica set is kept over a restart, whatever its size") {
  const auto engine = engine_with_bucket();
  for (const ReplicaSet& set : {ReplicaSet{.epoch = 1, .nodes = {}}, ReplicaSet{.epoch = 1ULL << 60, .nodes = {65535}},
                                ReplicaSet{.epoch = 9, .nodes = {4, 2, 0, 7}}}) {
    REQUIRE(engine->provider().set_replica_set(kBucket, set).is_ok());
    engine->reopen();
    CHECK(engine->provider().replica_set(kBucket).value() == set);
  }
}

TEST_CASE("storage operations: put: a document is given back as it was put, before and after a restart") {
  const auto engine = engine_with_bucket();
  const OwnedWrite put = test_put(1, 10, std::string(3000, 'x'));
  const OwnedWrite without_body = test_put(2, 11, "");
  REQUIRE(without_body.body.empty());
  for (const OwnedWrite& write : {put, without_body}) {
    const spi::WriteResult result = apply(engine->provider(), kBucket, write);
    REQUIRE(result.status.is_ok());
    CHECK_FALSE(result.existed);
    CHECK_FALSE(result.superseded);
  }
  for (int round = 0; round < 2; ++round) {
    for (const OwnedWrite& write : {put, without_body}) {
      const auto got = engine->provider().get(kBucket, write.gid);
      REQUIRE(got);
      CHECK(got->timestamp == write.timestamp);
      CHECK_FALSE(got->removed);
      CHECK(got->header == write.header);
      CHECK(got->body == write.body);
    }
    CHECK(engine->provider().get(kBucket, test_id(3).gid()).status().code() == StatusCode::NotFound);
    engine->reopen();
  }
}

TEST_CASE("persistence: basics: testPutOlderDocumentVersion: only a newer timestamp replaces an entry") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  REQUIRE(apply(provider, kBucket, test_put(1, 10, "ten")).status.is_ok());

  const spi::WriteResult older = apply(provider, kBucket, test_put(1, 9, "nine"));
  CHECK(older.status.is_ok());
  CHECK(older.superseded);
  CHECK(older.existed);
  const BucketInfo before = provider.bucket_info(kBucket).value();
  const spi::WriteResult equal = apply(provider, kBucket, test_put(1, 10, "another ten"));
  CHECK(equal.status.is_ok());
  CHECK(equal.superseded);
  CHECK(provider.bucket_info(kBucket).value() == before);
  CHECK(provider.get(kBucket, test_id(1).gid())->body == test_put(1, 10, "ten").body);
  const spi::WriteResult old_remove = apply(provider, kBucket, test_remove(1, 8));
  CHECK(old_remove.superseded);

  const spi::WriteResult newer = apply(provider, kBucket, test_put(1, 11, "eleven"));
  CHECK(newer.status.is_ok());
  CHECK(newer.existed);
  CHECK_FALSE(newer.superseded);
  CHECK(provider.get(kBucket, test_id(1).gid())->timestamp == Timestamp{11});
}

TEST_CASE("provider: a remove leaves an entry, also of a document that was never there") {
  const auto engine = engine_with_bucket();
  REQUIRE(apply(engine->provider(), kBucket, test_put(1, 10)).existed == false);
  CHECK(apply(engine->provider(), kBucket, test_remove(1, 11)).existed);
  CHECK_FALSE(apply(engine->provider(), kBucket, test_remove(2, 12)).existed);
  for (int round = 0; round < 2; ++round) {
    auto& provider = engine->provider();
    for (int number : {1, 2}) {
      const auto got = provider.get(kBucket, test_id(number).gid());
      REQUIRE(got);
      CHECK(got->removed);
      CHECK(got->timestamp == Timestamp{static_cast<std::uint64_t>(10 + number)});
      CHECK(got->header.empty());
      CHECK(got->body.empty());
    }
    const BucketInfo info = provider.bucket_info(kBucket).value();
    CHECK(info.entries == 2);
    CHECK(info.documents == 0);
    CHECK(info.bytes == 0);
    CHECK(info.max_timestamp_us == 12);
    CHECK(apply(provider, kBucket, test_put(2, 5)).superseded);  // A put older than a remove has no effect.
    engine->reopen();
  }
  CHECK_FALSE(apply(engine->provider(), kBucket, test_put(1, 20)).existed);
  CHECK_FALSE(engine->provider().get(kBucket, test_id(1).gid())->removed);
}

TEST_CASE("provider: a batch is applied in order, also for one document") {
  const auto engine = engine_with_bucket();
  const std::vector<OwnedWrite> writes{test_put(1, 10, "a"),    test_put(2, 11, "b"), test_remove(1, 12),
                                       test_put(1, 11, "late"), test_put(1, 13, "c"), test_put(2, 11, "again")};
  const auto results = apply(engine->provider(), kBucket, writes);
  const std::vector<bool> existed{false, false, true, false, false, true};
  const std::vector<bool> superseded{false, false, false, true, false, true};
  for (std::size_t i = 0; i < writes.size(); ++i) {
    INFO("write " << i);
    CHECK(results[i].status.is_ok());
    CHECK(results[i].existed == existed[i]);
    CHECK(results[i].superseded == superseded[i]);
  }
  engine->reopen();
  CHECK(engine->provider().get(kBucket, test_id(1).gid())->body == writes[4].body);
  CHECK(engine->provider().get(kBucket, test_id(2).gid())->body == writes[1].body);
}

TEST_CASE("persistence: basics: testBucketInfo: info counts entries, documents, bytes and the newest timestamp") {
  const auto engine = engine_with_bucket();
  const OwnedWrite first = test_put(1, 10, "some text");
  const OwnedWrite second = test_put(2, 30, "other");
  apply(engine->provider(), kBucket, test_put(1, 5, "replaced"));
  apply(engine->provider(), kBucket, first);
  apply(engine->provider(), kBucket, second);
  apply(engine->provider(), kBucket, test_remove(3, 20));
  const BucketInfo info = engine->provider().bucket_info(kBucket).value();
  CHECK(info.entries == 3);
  CHECK(info.documents == 2);
  CHECK(info.bytes == first.header.size() + first.body.size() + second.header.size() + second.body.size());
  CHECK(info.max_timestamp_us == 30);
  CHECK(info.checksum == spi::entry_hash(first.gid, Timestamp{10}, false) +
                             spi::entry_hash(second.gid, Timestamp{30}, false) +
                             spi::entry_hash(test_id(3).gid(), Timestamp{20}, true));
  engine->reopen();
  CHECK(engine->provider().bucket_info(kBucket).value() == info);
}

TEST_CASE(
    "persistence: basics: testOrderIndependentBucketInfo: info is equal for equal content in any order, and differs "
    "otherwise") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  const BucketId other(4, 0x2);
  REQUIRE(provider.create_bucket(other).is_ok());
  std::vector<OwnedWrite> writes;
  for (int i = 0; i < 40; ++i) {
    writes.push_back(
        test_put(i % 20, static_cast<std::uint64_t>(100 + i), std::string(static_cast<std::size_t>(i), 'x')));
    writes.push_back(test_remove(i % 7, static_cast<std::uint64_t>(200 + i)));
  }
  for (const OwnedWrite& write : writes) apply(provider, kBucket, write);
  std::reverse(writes.begin(), writes.end());
  apply(provider, other, writes);
  CHECK(provider.bucket_info(kBucket).value() == provider.bucket_info(other).value());
  CHECK(provider.list_entries(kBucket).value() == provider.list_entries(other).value());
  apply(provider, other, test_remove(3, 1000));
  CHECK(provider.bucket_info(kBucket)->checksum != provider.bucket_info(other)->checksum);
}

TEST_CASE("provider: a part of 64 MiB is taken, one byte more is too large, and the others of the batch are written") {
  const auto engine = engine_with_bucket();
  std::vector<OwnedWrite> writes{test_put(1, 10, "a"), test_put(2, 11, "b"), test_put(3, 12, "c"),
                                 test_put(4, 13, "d")};
  writes[1].body.assign(spi::kPartBytesMax + 1, 'y');
  writes[2].body.assign(spi::kPartBytesMax, 'z');
  const auto results = apply(engine->provider(), kBucket, writes);
  CHECK(results[0].status.is_ok());
  CHECK(results[1].status.code() == StatusCode::TooLarge);
  CHECK(results[2].status.is_ok());
  CHECK(results[3].status.is_ok());
  CHECK(engine->provider().get(kBucket, writes[1].gid).status().code() == StatusCode::NotFound);
  engine->reopen();
  CHECK((engine->provider().get(kBucket, writes[2].gid)->body == writes[2].body));
  CHECK(engine->provider().bucket_info(kBucket)->documents == 3);
}

TEST_CASE(
    "persistence: split and join: testDeleteBucket: a deleted bucket is gone, and one of the same id begins empty") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 60; ++i) apply(engine->provider(), kBucket, test_put(i, 10, std::string(400, 'x')));
  REQUIRE(engine->provider().set_replica_set(kBucket, {.epoch = 3, .nodes = {1}}).is_ok());
  REQUIRE(engine->provider().delete_bucket(kBucket).is_ok());
  CHECK(engine->provider().list_buckets().empty());
  CHECK(engine->provider().get(kBucket, test_id(1).gid()).status().code() == StatusCode::NotFound);
  engine->reopen();
  CHECK(engine->provider().list_buckets().empty());
  REQUIRE(engine->provider().create_bucket(kBucket).is_ok());
  CHECK(engine->provider().bucket_info(kBucket).value() == BucketInfo{});
  CHECK(engine->provider().replica_set(kBucket).value() == ReplicaSet{});
  REQUIRE(apply(engine->provider(), kBucket, test_put(1, 5)).status.is_ok());
  engine->reopen();
  CHECK(engine->provider().bucket_info(kBucket)->documents == 1);
  REQUIRE(engine->provider().delete_bucket(kBucket).is_ok());
  REQUIRE(engine->provider().delete_bucket(kBucket).is_ok());
}

TEST_CASE("provider: entries are listed by rising gid, removed ones included") {
  const auto engine = engine_with_bucket();
  std::vector<spi::EntryMeta> expected;
  for (int i = 0; i < 50; ++i) {
    const auto timestamp = static_cast<std::uint64_t>(10 + i);
    const OwnedWrite write = i % 3 == 0 ? test_remove(i, timestamp) : test_put(i, timestamp, std::string(300, 'x'));
    REQUIRE(apply(engine->provider(), kBucket, write).status.is_ok());
    expected.push_back({.gid = write.gid, .timestamp = write.timestamp, .removed = write.remove});
  }
  std::sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.gid < b.gid; });
  CHECK(engine->provider().list_entries(kBucket).value() == expected);
  engine->reopen();
  CHECK(engine->provider().list_entries(kBucket).value() == expected);
}

TEST_CASE("provider: of the entries that are newer than a time each is given once, removed ones included") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 50; ++i) {
    const auto timestamp = static_cast<std::uint64_t>(10 + i);
    const OwnedWrite write = i % 3 == 0 ? test_remove(i, timestamp) : test_put(i, timestamp, std::string(300, 'x'));
    REQUIRE(apply(engine->provider(), kBucket, write).status.is_ok());
  }
  REQUIRE(apply(engine->provider(), kBucket, test_put(0, 100, "again")).status.is_ok());
  const auto newer = [&](std::uint64_t after) {
    std::multiset<std::uint64_t> found;
    const Status status = engine->provider().for_each_newer(
        kBucket, Timestamp{after}, [&](const spi::EntryMeta& entry) { found.insert(entry.timestamp.us); });
    CHECK(status.is_ok());
    return found;
  };
  for (const bool reopened : {false, true}) {
    CAPTURE(reopened);
    if (reopened) engine->reopen();
    CHECK(newer(0).size() == 50);
    CHECK(newer(56) == std::multiset<std::uint64_t>{57, 58, 59, 100});
    CHECK(newer(59) == std::multiset<std::uint64_t>{100});
    CHECK(newer(100).empty());
  }
  const BucketId missing(8, 0x13);
  const auto nobody = [](const spi::EntryMeta&) {};
  CHECK(engine->provider().for_each_newer(missing, {}, nobody).code() == StatusCode::NotFound);
}

TEST_CASE(
    "persistence: iteration: testIterateExplicitTimestampSubset: entries are read by id, in the order asked for, until "
    "the block is full") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  for (int i = 0; i < 10; ++i) apply(provider, kBucket, test_put(i, 10, std::string(500, 'x')));
  apply(provider, kBucket, test_remove(4, 20));
  std::vector<GlobalId> gids;
  for (int i : {7, 4, 100, 2, 9}) gids.push_back(test_id(i).gid());

  DocBlockBuilder block;
  CHECK(provider.read_entries(kBucket, gids, block, 1 << 20).value() == 5);
  const auto entries = entries_of(block.take());
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].id == test_id(7).str());
  CHECK(entries[0].body == test_put(7, 10, std::string(500, 'x')).body);
  CHECK(entries[1].removed);
  CHECK(entries[1].id == test_id(4).str());
  CHECK(entries[1].timestamp_us == 20);
  CHECK(entries[3].id == test_id(9).str());

  DocBlockBuilder small;
  CHECK(provider.read_entries(kBucket, gids, small, 1).value() == 1);
  CHECK(small.count() == 1);
  DocBlockBuilder two;
  CHECK(provider.read_entries(kBucket, gids, two, 700).value() == 4);  // Documents 7, 4, a missing one and 2.
  CHECK(two.count() == 3);
  CHECK(provider.read_entries(kBucket, {}, two, 700).value() == 0);
}

namespace {

/// Runs all background work of the engine.
void settle(spi::PersistenceProvider& provider) {
  MonotonicTime now{1'000'000};
  for (int idle = 0; idle < 5;) {
    const spi::Maintenance left = provider.maintain(now);
    idle = left.more ? 0 : idle + 1;
    now = now + std::chrono::milliseconds(5);
  }
}

std::uint64_t sum_of_entries(spi::PersistenceProvider& provider) {
  std::uint64_t sum = 0;
  for (const BucketId bucket : provider.list_buckets()) sum += provider.bucket_info(bucket)->checksum;
  return sum;
}

}  // namespace

TEST_CASE("provider: a write whose document belongs to another bucket is refused, and the others are done") {
  const auto engine = engine_with_bucket();
  std::vector<OwnedWrite> writes{test_put(1, 10), test_put(2, 11)};
  REQUIRE(engine->provider().create_bucket(BucketId(8, 0x13)).is_ok());
  CHECK(apply(engine->provider(), BucketId(8, 0x13), writes)[0].status.code() == StatusCode::InvalidArgument);
  CHECK(engine->provider().bucket_info(BucketId(8, 0x13))->entries == 0);
}

TEST_CASE(
    "persistence: split and join: testJoinNormalCase: a split shares the entries between the halves, a join brings "
    "them together (I10)") {
  const auto engine = engine_with_bucket();
  const ReplicaSet set{.epoch = 7, .nodes = {3, 1}};
  REQUIRE(engine->provider().set_replica_set(kBucket, set).is_ok());
  for (int i = 0; i < 80; ++i) apply(engine->provider(), kBucket, test_put(i, 10, std::string(200, 'x')));
  for (int i = 0; i < 10; ++i) apply(engine->provider(), kBucket, test_remove(i, 20));
  const BucketInfo whole = engine->provider().bucket_info(kBucket).value();
  REQUIRE(engine->provider().split_bucket(kBucket).is_ok());
  const auto halves = halves_of(kBucket);
  for (int round = 0; round < 3; ++round) {
    auto& provider = engine->provider();
    CHECK(provider.list_buckets() == std::vector<BucketId>(halves.begin(), halves.end()));
    CHECK(sum_of_entries(provider) == whole.checksum);
    for (const BucketId half : halves) {
      CHECK(provider.replica_set(half).value() == set);
      CHECK(provider.bucket_info(half)->entries == 40);
      const std::vector<spi::EntryMeta> entries = provider.list_entries(half).value();
      for (const spi::EntryMeta& entry : entries) {
        CHECK(bucket_of(entry.gid, half.used_bits()) == half);
        CHECK(provider.get(half, entry.gid)->removed == entry.removed);
      }
    }
    if (round == 0) settle(provider);
    engine->reopen();
  }
  apply(engine->provider(), halves[0], test_put(0, 30, "after the split"));
  REQUIRE(engine->provider().join_buckets(kBucket).is_ok());
  for (int round = 0; round < 3; ++round) {
    auto& provider = engine->provider();
    CHECK(provider.list_buckets() == std::vector<BucketId>{kBucket});
    CHECK(provider.bucket_info(kBucket)->entries == 80);
    CHECK(provider.replica_set(kBucket).value() == set);
    CHECK(provider.get(kBucket, test_id(0).gid())->timestamp == Timestamp{30});
    CHECK(provider.get(kBucket, test_id(1).gid())->removed);
    CHECK(provider.get(kBucket, test_id(60).gid())->body == test_put(60, 10, std::string(200, 'x')).body);
    if (round == 0) settle(provider);
    engine->reopen();
  }
}

TEST_CASE(
    "persistence: split and join: testSplitTargetExists: halves that are there keep their replica set and the newer of "
    "two versions") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  const auto halves = halves_of(kBucket);
  const ReplicaSet own{.epoch = 3, .nodes = {9}};
  REQUIRE(provider.create_bucket(halves[0]).is_ok());
  REQUIRE(provider.set_replica_set(halves[0], own).is_ok());
  REQUIRE(provider.set_replica_set(kBucket, {.epoch = 5, .nodes = {1}}).is_ok());
  apply(provider, halves[0], test_put(0, 50, "newer here"));
  apply(provider, halves[0], test_put(2, 5, "older here"));
  for (int i = 0; i < 4; ++i) apply(provider, kBucket, test_put(i, 10, "of the whole"));
  REQUIRE(provider.split_bucket(kBucket).is_ok());
  CHECK(provider.replica_set(halves[0]).value() == own);
  CHECK(provider.replica_set(halves[1]).value() == ReplicaSet{.epoch = 5, .nodes = {1}});
  CHECK(provider.get(halves[0], test_id(0).gid())->timestamp == Timestamp{50});
  CHECK(provider.get(halves[0], test_id(2).gid())->timestamp == Timestamp{10});
  engine->reopen();
  CHECK(engine->provider().get(halves[0], test_id(0).gid())->timestamp == Timestamp{50});
  REQUIRE(engine->provider().join_buckets(kBucket).is_ok());
  CHECK(engine->provider().replica_set(kBucket).value() == ReplicaSet{});  // No set: the halves had different ones.
}

TEST_CASE("provider: what cannot be split or joined says why") {
  const auto engine = engine_with_bucket();
  auto& provider = engine->provider();
  CHECK(provider.split_bucket(BucketId(8, 0x99)).code() == StatusCode::NotFound);
  CHECK(provider.join_buckets(BucketId(9, 0x99)).code() == StatusCode::NotFound);
  const BucketId deepest(BucketId::kUsedBitsMax, 0x12);
  REQUIRE(provider.create_bucket(deepest).is_ok());
  CHECK(provider.split_bucket(deepest).code() == StatusCode::InvalidArgument);
  CHECK(provider.join_buckets(deepest).code() == StatusCode::InvalidArgument);
}

TEST_CASE("persistence: split and join: testJoinOneBucket: a bucket without its sibling is joined alone") {
  const auto engine = engine_with_bucket();
  apply(engine->provider(), kBucket, test_put(1, 10));
  REQUIRE(engine->provider().join_buckets(kBucket.with_used_bits(7)).is_ok());
  CHECK(engine->provider().list_buckets() == std::vector<BucketId>{kBucket.with_used_bits(7)});
  CHECK(engine->provider().get(kBucket.with_used_bits(7), test_id(1).gid()).has_value());
}

TEST_CASE("provider: removed entries are forgotten on permission, and no document is") {
  const auto engine = engine_with_bucket();
  CHECK(engine->provider().forget_removes(BucketId(8, 0x99), Timestamp{5}).code() == StatusCode::NotFound);
  for (int i = 0; i < 20; ++i) apply(engine->provider(), kBucket, test_put(i, 10));
  for (int i = 0; i < 5; ++i) apply(engine->provider(), kBucket, test_remove(i, static_cast<std::uint64_t>(20 + i)));
  settle(engine->provider());
  engine->reopen();
  CHECK(engine->provider().removes_forgotten_before(kBucket)->us == 0);
  CHECK(engine->provider().removes_forgotten_before(BucketId(8, 0x99)).status().code() == StatusCode::NotFound);
  REQUIRE(engine->provider().forget_removes(kBucket, Timestamp{23}).is_ok());
  for (int i = 10; i < 12; ++i) apply(engine->provider(), kBucket, test_put(i, 40));
  engine->reopen();
  engine->checkpoint();
  settle(engine->provider());
  for (int round = 0; round < 2; ++round) {
    auto& provider = engine->provider();
    CHECK(provider.removes_forgotten_before(kBucket)->us == 23);
    CHECK(provider.bucket_info(kBucket)->entries == 17);
    CHECK(provider.bucket_info(kBucket)->documents == 15);
    CHECK(provider.get(kBucket, test_id(2).gid()).status().code() == StatusCode::NotFound);
    CHECK(provider.get(kBucket, test_id(3).gid())->removed);
    engine->reopen();
  }
}

TEST_CASE("provider: what is forgotten is gone at once for every reader, and what it hid does not come back") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 8; ++i) apply(engine->provider(), kBucket, test_put(i, 10));
  engine->checkpoint();
  settle(engine->provider());
  for (int i = 0; i < 4; ++i) apply(engine->provider(), kBucket, test_remove(i, static_cast<std::uint64_t>(20 + i)));
  const bool flushed = GENERATE(true, false);
  if (flushed) engine->checkpoint();
  const std::uint64_t checksum = engine->provider().bucket_info(kBucket)->checksum;
  REQUIRE(engine->provider().forget_removes(kBucket, Timestamp{23}).is_ok());
  for (int round = 0; round < 3; ++round) {
    CAPTURE(flushed, round);
    auto& provider = engine->provider();
    const BucketInfo info = provider.bucket_info(kBucket).value();
    CHECK(info.entries == 5);
    CHECK(info.documents == 4);
    CHECK(provider.list_entries(kBucket)->size() == 5);
    CHECK(provider.get(kBucket, test_id(0).gid()).status().code() == StatusCode::NotFound);
    CHECK(provider.get(kBucket, test_id(3).gid())->removed);
    const GlobalId gone = test_id(1).gid();
    DocBlockBuilder block;
    REQUIRE(provider.read_entries(kBucket, std::span(&gone, 1), block, 1000).value() == 1);
    CHECK(block.count() == 0);
    const spi::Forgotten forgotten = provider.forgotten(kBucket).value();
    CHECK(forgotten.removes.us == 23);
    CHECK(forgotten.checksum + info.checksum == checksum);
    const spi::RemovedEntries kept = provider.count_removed(kBucket, {.removes_before = Timestamp{24}}).value();
    CHECK(kept.removes == 1);
    CHECK(kept.removes_due == 1);
    CHECK(kept.oldest_remove.us == 23);
    if (round == 1) {
      engine->checkpoint();
      settle(provider);
    }
    engine->reopen();
  }
  CHECK(apply(engine->provider(), kBucket, test_put(0, 30, "anew")).status.is_ok());
  CHECK_FALSE(engine->provider().get(kBucket, test_id(0).gid())->removed);
}

TEST_CASE("provider: what is written while background work drops a forgotten entry of that document stays") {
  // Each place in the background work in turn: the entry that the work was to drop is another one when it ends.
  int places = 0;
  for (bool more = true; more; ++places) {
    CAPTURE(places);
    const auto engine = engine_with_bucket();
    auto& provider = engine->provider();
    for (int i = 0; i < 8; ++i) apply(provider, kBucket, test_put(i, 10));
    for (int i = 0; i < 4; ++i) apply(provider, kBucket, test_remove(i, static_cast<std::uint64_t>(20 + i)));
    engine->checkpoint();
    settle(provider);
    REQUIRE(provider.forget_removes(kBucket, Timestamp{30}).is_ok());
    MonotonicTime now{1'000'000};
    more = true;
    for (int step = 0; step < places && more; ++step) {
      now = now + std::chrono::milliseconds(5);
      more = provider.maintain(now).more;
    }
    for (int i = 0; i < 4; ++i) REQUIRE(apply(provider, kBucket, test_put(i, 40, "anew")).status.is_ok());
    settle(provider);
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 8; ++i) {
        const auto got = engine->provider().get(kBucket, test_id(i).gid());
        REQUIRE(got.has_value());
        CHECK(got->timestamp.us == (i < 4 ? 40 : 10));
      }
      CHECK(engine->provider().bucket_info(kBucket)->entries == 8);
      engine->reopen();
    }
  }
  CHECK(places > 1);
}

TEST_CASE("provider: a remove that is older than what is forgotten hides an older document and leaves nothing") {
  const auto engine = engine_with_bucket();
  apply(engine->provider(), kBucket, test_put(1, 10));
  engine->checkpoint();
  REQUIRE(engine->provider().forget_removes(kBucket, Timestamp{30}).is_ok());
  CHECK(apply(engine->provider(), kBucket, test_remove(1, 20)).status.is_ok());
  apply(engine->provider(), kBucket, test_remove(2, 20));
  for (int round = 0; round < 2; ++round) {
    CHECK(engine->provider().bucket_info(kBucket)->entries == 0);
    CHECK(engine->provider().list_entries(kBucket)->empty());
    engine->checkpoint();
    settle(engine->provider());
    engine->reopen();
  }
}

TEST_CASE("provider: tokens are forgotten by a time of their own") {
  const auto engine = engine_with_bucket();
  const auto token = [](int number, std::uint64_t timestamp_us) {
    OwnedWrite write = test_remove(number, timestamp_us);
    write.id = "token:" + write.id;
    return write;
  };
  for (int i = 0; i < 6; ++i) apply(engine->provider(), kBucket, token(i, static_cast<std::uint64_t>(10 + i)));
  for (int i = 6; i < 9; ++i) apply(engine->provider(), kBucket, test_remove(i, static_cast<std::uint64_t>(4 + i)));
  spi::RemovedEntries kept =
      engine->provider()
          .count_removed(kBucket, {.removes_before = {}, .tokens_before = Timestamp{12}, .tokens_max = 4})
          .value();
  CHECK(kept.tokens == 6);
  CHECK(kept.removes == 3);
  CHECK(kept.tokens_due == 2);
  CHECK(kept.surplus_tokens.us == 12);
  REQUIRE(engine->provider().forget(kBucket, Timestamp{11}, Timestamp{13}).is_ok());
  engine->reopen();
  kept = engine->provider().count_removed(kBucket, {}).value();
  CHECK(kept.tokens == 3);
  CHECK(kept.removes == 2);
  CHECK(engine->provider().bucket_info(kBucket)->entries == 5);
  CHECK(engine->provider().get(kBucket, test_id(0).gid()).status().code() == StatusCode::NotFound);
}

TEST_CASE("provider: a bucket may come to have forgotten less, and then takes removes again") {
  const auto engine = engine_with_bucket();
  apply(engine->provider(), kBucket, test_remove(1, 20));
  REQUIRE(engine->provider().forget_removes(kBucket, Timestamp{30}).is_ok());
  const spi::Forgotten less{.removes = Timestamp{5}, .tokens = Timestamp{6}, .checksum = 7};
  REQUIRE(engine->provider().set_forgotten(kBucket, less).is_ok());
  apply(engine->provider(), kBucket, test_remove(1, 20));
  apply(engine->provider(), kBucket, test_remove(2, 4));
  engine->reopen();
  CHECK(engine->provider().forgotten(kBucket).value() == less);
  CHECK(engine->provider().get(kBucket, test_id(1).gid())->removed);
  CHECK(engine->provider().bucket_info(kBucket)->entries == 1);
}

TEST_CASE("provider: halves and the whole have forgotten what those have that they were made of") {
  const auto engine = engine_with_bucket();
  for (int i = 0; i < 16; ++i) apply(engine->provider(), kBucket, test_remove(i, static_cast<std::uint64_t>(10 + i)));
  REQUIRE(engine->provider().forget(kBucket, Timestamp{14}, Timestamp{3}).is_ok());
  REQUIRE(engine->provider().split_bucket(kBucket).is_ok());
  const auto [low, high] = halves_of(kBucket);
  std::uint64_t entries = 0;
  for (const BucketId half : {low, high}) {
    CHECK(engine->provider().forgotten(half)->removes.us == 14);
    CHECK(engine->provider().forgotten(half)->tokens.us == 3);
    entries += engine->provider().bucket_info(half)->entries;
  }
  CHECK(entries == 12);
  REQUIRE(engine->provider().forget_removes(low, Timestamp{20}).is_ok());
  std::uint64_t sum = 0;
  for (const BucketId half : {low, high}) {
    sum += engine->provider().bucket_info(half)->checksum + engine->provider().forgotten(half)->checksum;
  }
  REQUIRE(engine->provider().join_buckets(kBucket).is_ok());
  engine->reopen();
  CHECK(engine->provider().forgotten(kBucket)->removes.us == 20);
  CHECK(engine->provider().bucket_info(kBucket)->entries == 6);
  CHECK(engine->provider().bucket_info(kBucket)->checksum + engine->provider().forgotten(kBucket)->checksum == sum);
}

}  // namespace fjord::testing
