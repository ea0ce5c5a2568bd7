#include "fjord/common/random.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"

namespace fjord::testing {

namespace {

/// Drives an engine and the model with the same random operations and compares everything that can be seen.
class Differential {
 public:
  Differential(std::uint64_t seed, const std::string& engine) : random_(seed), engine_(make_engine(engine)) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      if (random_.chance(0.02)) engine_->reopen();
      if (random_.chance(0.05)) compare();
    }
    engine_->reopen();
    compare();
  }

 private:
  spi::PersistenceProvider& tested() { return engine_->provider(); }
  spi::PersistenceProvider& model() { return model_->provider(); }
  BucketId some_bucket() { return BucketId(4, random_.below(3)); }

  void step() {
    const BucketId bucket = some_bucket();
    const std::uint64_t dice = random_.below(100);
    if (dice < 6) {
      CHECK(tested().create_bucket(bucket) == model().create_bucket(bucket));
    } else if (dice < 7) {
      CHECK(tested().delete_bucket(bucket) == model().delete_bucket(bucket));
    } else if (dice < 12) {
      const ReplicaSet set{.epoch = random_.below(100), .nodes = {static_cast<std::uint16_t>(random_.below(9))}};
      CHECK(tested().set_replica_set(bucket, set).code() == model().set_replica_set(bucket, set).code());
    } else {
      write_batch(bucket);
    }
  }

  OwnedWrite some_write() {
    const int number = static_cast<int>(random_.below(150));
    const std::uint64_t timestamp = random_.chance(0.8) ? ++clock_ : random_.below(clock_ + 1) + 1;
    if (random_.chance(0.2)) return test_remove(number, timestamp);
    // Now and then one that is larger than a tiny slotfile.
    const std::uint64_t size = random_.chance(0.01) ? 20000 : random_.below(600);
    return test_put(number, timestamp, std::string(size, static_cast<char>('a' + random_.below(26))));
  }

  void write_batch(BucketId bucket) {
    std::vector<OwnedWrite> writes;
    for (std::uint64_t n = 1 + random_.below(12); n > 0; --n) writes.push_back(some_write());
    const auto got = apply(tested(), bucket, writes);
    const auto expected = apply(model(), bucket, writes);
    for (std::size_t i = 0; i < writes.size(); ++i) {
      CHECK(got[i].status.code() == expected[i].status.code());
      CHECK(got[i].existed == expected[i].existed);
      CHECK(got[i].superseded == expected[i].superseded);
    }
  }

  void compare() {
    REQUIRE(tested().list_buckets() == model().list_buckets());
    for (const BucketId bucket : model().list_buckets()) compare_bucket(bucket);
  }

  void compare_bucket(BucketId bucket) {
    CHECK(tested().bucket_info(bucket).value() == model().bucket_info(bucket).value());
    CHECK(tested().replica_set(bucket).value() == model().replica_set(bucket).value());
    const std::vector<spi::EntryMeta> entries = model().list_entries(bucket).value();
    REQUIRE((tested().list_entries(bucket).value() == entries));

    spi::IterateOptions options{.types = test_types(), .selection = nullptr};
    options.include_removed = random_.chance(0.5);
    if (random_.chance(0.3)) options.fields = spi::FieldSet::IdOnly;
    if (random_.chance(0.3)) options.from = Timestamp{random_.below(clock_ + 1)};
    if (random_.chance(0.5)) {
      const std::string text = random_.chance(0.5) ? "item.size < 75" : "item.text = \"a*\"";
      options.selection = std::make_shared<const Selection>(Selection::parse(text, *test_types()).value());
    }
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
  }

  Random random_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Engine> model_ = make_engine("memory");
  std::uint64_t clock_ = 0;
};

}  // namespace

TEST_CASE("provider: every engine does what the model does with random operations and restarts") {
  const std::string engine = GENERATE(from_range(engine_names()));
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 9));
  if (engine == "memory") return;
  INFO("engine: " << engine << ", seed: " << seed);
  Differential(seed, engine).run(400);
}

}  // namespace fjord::testing
