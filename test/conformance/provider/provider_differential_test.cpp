#include <algorithm>

#include "fjord/common/random.h"
#include "fjord/storage/spi/entry_window.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"

namespace fjord::testing {

namespace {

/// Runs the same random operations on an engine and a model, and compares everything visible.
class Differential {
 public:
  Differential(std::uint64_t seed, const std::string& engine) : random_(seed), engine_(make_engine(engine)) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      if (random_.chance(0.02)) reopen();
      if (random_.chance(0.05)) compare();
      if (random_.chance(0.05)) take_snapshot();
      if (random_.chance(0.1)) read_snapshots();
    }
    reopen();
    compare();
    CHECK(snapshots_read_ > 0);
  }

 private:
  spi::PersistenceProvider& tested() { return engine_->provider(); }
  spi::PersistenceProvider& model() { return model_->provider(); }
  /// Returns one of a few buckets, some of which contain others, as in a cluster that has not finished splitting.
  BucketId some_bucket() {
    return BucketId(8 + static_cast<unsigned>(random_.below(3)), 0x12 + random_.below(4) * 256);
  }
  BucketId some_bucket_there() {
    const std::vector<BucketId> there = model().list_buckets();
    return there.empty() || random_.chance(0.05) ? some_bucket() : there[random_.below(there.size())];
  }

  void step() {
    for (std::uint64_t n = random_.below(6); n > 0; --n) {
      now_ = now_ + std::chrono::milliseconds(20);
      tested().maintain(now_);
    }
    const BucketId bucket = some_bucket_there();
    const std::uint64_t dice = random_.below(100);
    if (dice < 4) {
      const BucketId fresh = some_bucket();
      CHECK(tested().create_bucket(fresh) == model().create_bucket(fresh));
    } else if (dice < 6 && bucket.used_bits() < 11) {  // A split beyond 11 bits would leave a half empty.
      CHECK(tested().split_bucket(bucket).code() == model().split_bucket(bucket).code());
    } else if (dice < 9 && bucket.used_bits() > 6) {
      const BucketId parent = bucket.with_used_bits(bucket.used_bits() - 1);
      CHECK(tested().join_buckets(parent).code() == model().join_buckets(parent).code());
    } else if (dice < 10) {
      CHECK(tested().delete_bucket(bucket) == model().delete_bucket(bucket));
    } else if (dice < 14) {
      const ReplicaSet set{.epoch = random_.below(100), .nodes = {static_cast<std::uint16_t>(random_.below(9))}};
      CHECK(tested().set_replica_set(bucket, set).code() == model().set_replica_set(bucket, set).code());
    } else {
      write_batch(bucket);
    }
  }

  static bool is_in(int number, BucketId bucket) {
    return bucket.contains(test_id(number).bucket(BucketId::kUsedBitsMax));
  }

  OwnedWrite some_write(BucketId bucket) {
    // Usually the number of a document that belongs into the bucket, if there is one.
    int number = static_cast<int>(random_.below(150));
    for (int tries = 0; tries < 50 && !is_in(number, bucket); ++tries) number = static_cast<int>(random_.below(150));
    const std::uint64_t timestamp = random_.chance(0.8) ? ++clock_ : random_.below(clock_ + 1) + 1;
    if (random_.chance(0.2)) return test_remove(number, timestamp);
    // Sometimes a document larger than a tiny slotfile.
    const std::uint64_t size = random_.chance(0.01) ? 20000 : random_.below(600);
    return test_put(number, timestamp, std::string(size, static_cast<char>('a' + random_.below(26))));
  }

  void write_batch(BucketId bucket) {
    std::vector<OwnedWrite> writes;
    for (std::uint64_t n = 1 + random_.below(12); n > 0; --n) writes.push_back(some_write(bucket));
    const auto got = apply(tested(), bucket, writes);
    const auto expected = apply(model(), bucket, writes);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      CHECK(got[i].status.code() == expected[i].status.code());
      CHECK(got[i].existed == expected[i].existed);
      CHECK(got[i].superseded == expected[i].superseded);
    }
  }

  void reopen() {
    snapshots_.clear();
    engine_->reopen();
  }

  /// Opens an iteration over the current content, to be read later in parts.
  void take_snapshot() {
    const std::vector<BucketId> there = model().list_buckets();
    if (there.empty() || snapshots_.size() == 3) return;
    const BucketId bucket = there[random_.below(there.size())];
    spi::IterateOptions options = some_options();
    options.snapshot = true;
    Result<std::unique_ptr<spi::DocumentIterator>> iterator = tested().iterate(bucket, options);
    REQUIRE(iterator);
    snapshots_.push_back({std::move(*iterator), iterate_all(model(), bucket, options), {}});
  }

  void read_snapshots() {
    for (auto at = snapshots_.begin(); at != snapshots_.end();) {
      DocBlockBuilder block;
      const Result<bool> more = at->iterator->next(block, random_.below(20'000));
      REQUIRE(more);
      for (OwnedEntry& entry : entries_of(block.take())) at->given.push_back(std::move(entry));
      if (*more) {
        ++at;
        continue;
      }
      std::sort(at->given.begin(), at->given.end());
      CHECK((at->given == at->expected));
      ++snapshots_read_;
      at = snapshots_.erase(at);
    }
  }

  spi::IterateOptions some_options() {
    spi::IterateOptions options{.types = test_types(), .selection = nullptr};
    options.include_removed = random_.chance(0.5);
    if (random_.chance(0.3)) options.parts = random_.chance(0.5) ? spi::Parts::IdOnly : spi::Parts::HeaderOnly;
    if (random_.chance(0.3)) options.from = Timestamp{random_.below(clock_ + 1)};
    if (random_.chance(0.5)) {
      const std::string text = random_.chance(0.5) ? "item.size < 75" : "item.text = \"a*\"";
      options.selection = std::make_shared<const Selection>(Selection::parse(text, *test_types()).value());
    }
    return options;
  }

  void compare() {
    REQUIRE(tested().list_buckets() == model().list_buckets());
    for (const BucketId bucket : model().list_buckets()) compare_bucket(bucket);
  }

  /// Compares the entries window by window.
  void compare_windows(BucketId bucket, std::size_t max_entries) {
    spi::GroupRange range;
    for (bool more = true; more;) {
      const spi::EntryWindow window = spi::list_window(tested(), bucket, range, max_entries).value();
      const spi::EntryWindow expected = spi::list_window(model(), bucket, range, max_entries).value();
      REQUIRE((window.entries == expected.entries));
      REQUIRE(window.more == expected.more);
      more = window.more;
      if (more) range = {.from_start = false, .after = spi::group_of(window.entries.back().gid)};
    }
  }

  void compare_newer(BucketId bucket, Timestamp after) {
    const auto newer = [&](spi::PersistenceProvider& provider) {
      std::vector<std::pair<GlobalId, std::uint64_t>> found;
      CHECK(provider
                .for_each_newer(bucket, after,
                                [&](const spi::EntryMeta& entry) {
                                  found.emplace_back(entry.gid, entry.timestamp.us * 2 + (entry.removed ? 1 : 0));
                                })
                .is_ok());
      std::sort(found.begin(), found.end());
      return found;
    };
    REQUIRE((newer(tested()) == newer(model())));
  }

  void compare_bucket(BucketId bucket) {
    CAPTURE(bucket, tested().bucket_info(bucket)->entries, model().bucket_info(bucket)->entries);
    CHECK(tested().bucket_info(bucket).value() == model().bucket_info(bucket).value());
    CHECK(tested().replica_set(bucket).value() == model().replica_set(bucket).value());
    const std::vector<spi::EntryMeta> entries = model().list_entries(bucket).value();
    REQUIRE((tested().list_entries(bucket).value() == entries));
    compare_windows(bucket, 1 + random_.below(entries.size() + 1));
    compare_newer(bucket, Timestamp{random_.below(clock_ + 2)});

    const spi::IterateOptions options = some_options();
    CHECK((iterate_all(tested(), bucket, options, random_.below(5000)) == iterate_all(model(), bucket, options)));

    std::vector<GlobalId> gids;
    for (const spi::EntryMeta& entry : entries) {
      if (random_.chance(0.3)) gids.push_back(entry.gid);
    }
    const std::size_t max_bytes = random_.below(8000);
    DocBlockBuilder got;
    DocBlockBuilder expected;
    CHECK(tested().read_entries(bucket, gids, got, max_bytes).value() ==
          model().read_entries(bucket, gids, expected, max_bytes).value());
    CHECK((entries_of(got.take()) == entries_of(expected.take())));
    compare_gets(bucket, gids);
  }

  /// Compares documents that were announced, together with some that are not there.
  void compare_gets(BucketId bucket, std::vector<GlobalId> gids) {
    gids.push_back(test_id(1'000'000).gid());
    std::vector<spi::DocumentPlace> places{{BucketId(40, 0x12345), gids.front()}};
    for (const GlobalId& gid : gids) places.push_back({bucket, gid});
    tested().prefetch(places);
    for (const GlobalId& gid : gids) {
      const Result<spi::StoredDocument> got = tested().get(bucket, gid);
      const Result<spi::StoredDocument> expected = model().get(bucket, gid);
      REQUIRE(got.status().code() == expected.status().code());
      if (!got) continue;
      CHECK(got->timestamp == expected->timestamp);
      CHECK(got->removed == expected->removed);
      CHECK((got->header == expected->header && got->body == expected->body));
    }
  }

  struct Snapshot {
    std::unique_ptr<spi::DocumentIterator> iterator;
    std::vector<OwnedEntry> expected;
    std::vector<OwnedEntry> given;
  };

  Random random_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Engine> model_ = make_engine("memory");
  std::vector<Snapshot> snapshots_;  ///< Destroyed before the engines that they read.
  int snapshots_read_ = 0;
  std::uint64_t clock_ = 0;
  MonotonicTime now_;
};

}  // namespace

TEST_CASE("provider: every engine does what the model does with random operations and restarts") {
  const std::string engine = GENERATE(from_range(engine_names()));
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 9));
  if (engine == "memory") return;
  if (engine == "leveldb sync" && seed > 2) return;  // It syncs real files, which is slow: two seeds.
  INFO("engine: " << engine << ", seed: " << seed);
  Differential(seed, engine).run(400);
}

}  // namespace fjord::testing
