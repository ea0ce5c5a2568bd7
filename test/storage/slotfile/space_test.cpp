#include <catch2/catch.hpp>
#include <string>

#include "fjord/sim/sim_env.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"

/// Checks that removes give space back under all circumstances, and how much memory a restart takes.
namespace fjord {
namespace {

using testing::OwnedWrite;
using testing::test_put;
using testing::test_remove;

constexpr std::uint64_t kCapacity = 64 << 20;
const BucketId kBucket(8, 0x12);

/// A bucket of documents with over a mebibyte in all, in slotfiles, on a disk whose use the test measures.
struct Store {
  /// The store has `documents` documents of `bytes` bytes each.
  Store(int documents, std::size_t bytes) : count(documents) {
    disk.set_capacity(kCapacity);
    REQUIRE(disk.create_directories("/").is_ok());
    options.directory = "/buckets";
    auto opened = SlotfileProvider::open(disk, options);
    REQUIRE(opened);
    provider = std::move(*opened);
    REQUIRE(provider->create_bucket(kBucket).is_ok());
    for (int i = 0; i < count; ++i) {
      OwnedWrite write = test_put(i, 1);
      write.body.assign(bytes, static_cast<char>('a' + i % 26));
      REQUIRE(testing::apply(*provider, kBucket, write).status.is_ok());
    }
    REQUIRE(provider->checkpoint().is_ok());
  }
  std::uint64_t used() { return kCapacity - disk.space("/")->free_bytes; }
  /// Removes four of five documents, with less than a mebibyte of journal.
  void remove_most() {
    for (int i = 0; i < count; ++i) {
      if (i % 5 != 0) REQUIRE(testing::apply(*provider, kBucket, test_remove(i, 2)).status.is_ok());
    }
  }
  void get(int number) { REQUIRE(provider->get(kBucket, test_put(number, 1).gid, spi::Parts::HeaderOnly)); }
  /// Runs background work for `time`, with a read before each step.
  void run_while_read(Duration time) {
    for (const MonotonicTime end = now + time; now < end; now = now + milliseconds(10)) {
      get(0);
      provider->maintain(now);
    }
  }

  const int count;
  sim::SimEnv disk;
  SlotfileOptions options;
  std::unique_ptr<SlotfileProvider> provider;
  MonotonicTime now{1'000'000};
};

}  // namespace

TEST_CASE("slotfile space: on a full disk removes give their space back while documents are read") {
  Store store(200, 20'000);
  const std::uint64_t full = store.used();
  store.remove_most();
  store.run_while_read(seconds(5));
  // Space is not urgent as long as the disk has some.
  CHECK(store.used() >= full);
  store.provider->set_short_of_space(true);
  store.run_while_read(seconds(5));
  CHECK(store.used() + 155 * 20'000 < full);  // 160 documents were removed; their remove entries hold the rest.
  for (int i = 0; i < store.count; i += 5) store.get(i);
}

TEST_CASE("slotfile space: checkpoints of a full disk do not follow each other at once") {
  const std::size_t bytes = GENERATE(1000, 150'000);
  Store store(20, bytes);
  store.provider->set_short_of_space(true);
  store.run_while_read(seconds(2));
  const std::uint64_t before = store.provider->stats().checkpoints;
  for (int i = 0; i < 100; ++i) {
    OwnedWrite write = test_put(i % 20, 10 + i);
    write.body.assign(bytes, 'x');
    REQUIRE(testing::apply(*store.provider, kBucket, write).status.is_ok());
    store.run_while_read(milliseconds(100));
  }
  const std::uint64_t checkpoints = store.provider->stats().checkpoints - before;
  CHECK(checkpoints >= 5);
  CHECK(checkpoints <= 11);
}

TEST_CASE("slotfile space: a full disk without anything to give back is left alone") {
  Store store(20, 1000);
  store.provider->set_short_of_space(true);
  store.run_while_read(seconds(5));
  const SlotfileStats before = store.provider->stats();
  store.run_while_read(seconds(10));
  const SlotfileStats after = store.provider->stats();
  CHECK(after.checkpoints == before.checkpoints);
  CHECK(after.rewrites == before.rewrites);
}

TEST_CASE("slotfile space: a restart holds the writes of the journal in memory as far as the limit allows") {
  constexpr int kDocuments = 20;
  constexpr std::uint64_t kLimit = 8 << 10;
  sim::SimEnv disk;
  REQUIRE(disk.create_directories("/").is_ok());
  SlotfileOptions options;
  options.directory = "/buckets";
  auto provider = SlotfileProvider::open(disk, options).value();
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  const std::string text(1000, 'x');
  for (int i = 0; i < kDocuments; ++i) {
    REQUIRE(testing::apply(*provider, kBucket, test_put(i, 1, text)).status.is_ok());
  }
  const std::uint64_t held = provider->stats().held_bytes;
  REQUIRE(held > kLimit);
  provider.reset();
  SECTION("it writes no slotfiles if everything fits") {
    provider = SlotfileProvider::open(disk, options).value();
    CHECK(provider->stats().held_bytes == held);
    CHECK(provider->stats().flushes == 0);
  }
  SECTION("it writes slotfiles when the limit is exceeded") {
    options.limits.held_bytes_max = kLimit;
    provider = SlotfileProvider::open(disk, options).value();
    CHECK(provider->stats().held_bytes <= kLimit);
    // There are flushes, but few: a run has about as many documents as fit into memory.
    CHECK(provider->stats().flushes > 0);
    CHECK(provider->stats().flushes < kDocuments / 4);
  }
  for (int i = 0; i < kDocuments; ++i) CHECK(provider->get(kBucket, test_put(i, 1).gid, spi::Parts::All).has_value());
}

}  // namespace fjord
