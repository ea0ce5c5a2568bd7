// Columns must stand for the documents that were read, though the bucket may change while they are read, and between
// two readings.
#include "columns/column_reader.h"

#include <catch2/catch.hpp>

#include "fjord/storage/memory/memory_provider.h"

namespace fjord::mapreduce {
namespace {

constexpr int kDocuments = 40;

GlobalId gid_of(int n) { return DocumentId::parse("id:t:x::" + std::to_string(n))->gid(); }

/// A bucket in memory with kDocuments documents.
struct Bucket {
  Bucket() {
    REQUIRE(provider->create_bucket(id).is_ok());
    for (int n = 0; n < kDocuments; ++n) write(n, 10);
  }

  void write(int n, std::uint64_t timestamp_us, bool removed = false) {
    const std::string header(200, 'h');
    const spi::Write one{.bucket = id,
                         .gid = gid_of(n),
                         .timestamp = Timestamp{timestamp_us},
                         .remove = removed,
                         .id = "id",
                         .header = removed ? std::string_view() : std::string_view(header),
                         .body = {}};
    spi::WriteResult result;
    provider->apply({&one, 1}, {&result, 1}, spi::Durability::Process);
    REQUIRE(result.status.is_ok());
  }
  void remove(int n, std::uint64_t timestamp_us) { write(n, timestamp_us, true); }

  /// Reads the whole bucket in small blocks, with `change` after the first of them.
  std::optional<ColumnContent> read(const std::function<void()>& change) {
    ColumnReader reader(std::make_shared<ColumnLookup>(cache, ColumnQuery{}), id);
    const visitors::PositionRange all;
    const spi::IterateOptions options{.types = nullptr, .selection = nullptr};
    const visitors::BucketOnNode here{*provider, {&id, 1}, all, options};
    DocBlockBuilder first;
    const Result<bool> more = reader.next(here, first, 1000);
    REQUIRE(more);
    REQUIRE(*more);
    change();
    while (true) {
      DocBlockBuilder block;
      const Result<bool> again = reader.next(here, block, 1000);
      REQUIRE(again);
      if (!*again) break;
    }
    reader.close();
    CHECK_FALSE(reader.found());
    return reader.content();
  }

  const BucketId id{0};
  std::unique_ptr<spi::PersistenceProvider> provider = make_memory_provider();
  MetricRegistry metrics;
  ColumnCache cache{[] { return std::size_t{1} << 20; }, metrics};
};

TEST_CASE("column reader: a bucket that does not change while it is read may have columns", "[columns]") {
  Bucket bucket;
  const auto content = bucket.read([] {});
  REQUIRE(content);
  CHECK(content->version.entries == kDocuments);
}

TEST_CASE("column reader: a bucket that changes while it is read has no columns", "[columns]") {
  Bucket bucket;
  SECTION("a document is replaced, so that there are as many as before") {
    const int n = GENERATE(range(0, kDocuments));
    CHECK_FALSE(bucket.read([&] { bucket.write(n, 20); }));
  }
  SECTION("a document is removed: its entry stays") {
    const int n = GENERATE(range(0, kDocuments));
    CHECK_FALSE(bucket.read([&] { bucket.remove(n, 20); }));
  }
  SECTION("there is a new one") {
    CHECK_FALSE(bucket.read([&] { bucket.write(kDocuments, 20); }));
  }
  SECTION("one comes and the entry of another one is dropped") {
    bucket.remove(0, 12);
    CHECK_FALSE(bucket.read([&] {
      bucket.write(kDocuments, 20);
      REQUIRE(bucket.provider->forget_removes(bucket.id, Timestamp{15}).is_ok());
    }));
  }
}

}  // namespace
}  // namespace fjord::mapreduce
