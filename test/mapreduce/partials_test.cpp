// The partial results of a bucket in an incremental job after some of its documents have disappeared.
#include "incremental/partials.h"

#include <catch2/catch.hpp>
#include <set>

#include "fjord/common/coding.h"
#include "fjord/document/docblock.h"
#include "fjord/storage/memory/memory_provider.h"
#include "fjord/visitors/bucket_space.h"
#include "incremental/partial_reader.h"

namespace fjord::mapreduce {
namespace {

using visitors::PositionRange;

GlobalId gid_of(int n) { return DocumentId::parse("id:t:x::" + std::to_string(n))->gid(); }

spi::EntryMeta meta_of(int n, std::uint64_t timestamp_us, bool removed = false) {
  return {.gid = gid_of(n), .timestamp = Timestamp{timestamp_us}, .removed = removed};
}

std::string tuple(const std::string& key) {
  std::string text;
  put_string(text, key);
  put_string(text, "1");
  return text;
}

std::multiset<std::string> tuples_in(const BucketPartial& partial) {
  std::multiset<std::string> found;
  const Status status = partial.for_each_tuples(nullptr, [&](std::string_view own) {
    found.emplace(own);
    return Status::ok();
  });
  REQUIRE(status.is_ok());
  return found;
}

/// Checks that `partial` equals `expected`, which was made of the remaining documents alone.
void check_is(const BucketPartial& partial, const BucketPartial& expected) {
  CHECK(partial.version() == expected.version());
  CHECK(partial.mapped() == expected.mapped());
  CHECK(partial.documents().size() == expected.documents().size());
  CHECK(tuples_in(partial) == tuples_in(expected));
  for (const PartialDocument& document : expected.documents()) {
    const std::uint32_t number = partial.find(document.gid);
    REQUIRE(number < partial.documents().size());
    const PartialDocument& found = partial.documents()[number];
    CHECK(found.meta() == document.meta());
    CHECK(partial.tuples_of(found) == expected.tuples_of(document));
  }
}

struct Received {
  std::multiset<std::string> retracted;
  std::multiset<std::string> added;
};

Received received_by(BucketPartial& partial, const DocumentChanges& changes) {
  Received received;
  partial.apply(
      changes, [&](std::string_view own) { received.retracted.emplace(own); },
      [&](std::string_view own) { received.added.emplace(own); });
  return received;
}

DocumentChange gone(const BucketPartial& partial, int n) {
  const std::uint32_t number = partial.find(gid_of(n));
  REQUIRE(number != DocumentChange::kNew);
  return {.meta = partial.documents()[number].meta(), .number = number, .gone = true};
}

TEST_CASE("partials: documents that are gone are not remembered, whatever they were") {
  BucketPartial partial;
  for (int n = 1; n <= 40; ++n) partial.add(meta_of(n, 10, n % 4 == 0), n % 4 != 0, n % 4 == 0 ? "" : tuple("k"));
  // Document 4 was a remove entry, which has been dropped. On document 5 map now fails.
  const Received received = received_by(partial, {{gid_of(4), gone(partial, 4)}, {gid_of(5), gone(partial, 5)}});
  CHECK(received.retracted == std::multiset<std::string>{tuple("k")});
  CHECK(received.added.empty());
  BucketPartial expected;
  for (int n = 1; n <= 40; ++n) {
    if (n != 4 && n != 5) expected.add(meta_of(n, 10, n % 4 == 0), n % 4 != 0, n % 4 == 0 ? "" : tuple("k"));
  }
  check_is(partial, expected);
  CHECK(partial.find(gid_of(4)) == DocumentChange::kNew);
  CHECK(partial.find(gid_of(5)) == DocumentChange::kNew);

  // The documents can come back as new documents.
  const std::string again = tuple("again");
  const DocumentChange back{.meta = meta_of(4, 20), .number = partial.find(gid_of(4)), .mapped = true, .tuples = again};
  CHECK(received_by(partial, {{gid_of(4), back}}).added == std::multiset<std::string>{again});
  expected.add(meta_of(4, 20), true, again);
  check_is(partial, expected);
}

/// A bucket in memory, some of whose entries a partial contains.
struct Bucket {
  Bucket() { REQUIRE(provider->create_bucket(id).is_ok()); }

  void write(const spi::EntryMeta& meta) {
    const std::string header = "h";
    const spi::Write one{.bucket = id,
                         .gid = meta.gid,
                         .timestamp = meta.timestamp,
                         .remove = meta.removed,
                         .id = "id",
                         .header = meta.removed ? std::string_view() : std::string_view(header),
                         .body = {}};
    spi::WriteResult result;
    provider->apply({&one, 1}, {&result, 1}, spi::Durability::Process);
    REQUIRE(result.status.is_ok());
  }

  const BucketId id{0};
  std::unique_ptr<spi::PersistenceProvider> provider = make_memory_provider();
};

TEST_CASE(
    "partials: a removed entry that was forgotten is reported as gone, and with it the content is the bucket's again") {
  Bucket bucket;
  auto known = std::make_shared<BucketPartial>();
  for (int n = 1; n <= 400; ++n) {
    const bool removed = n == 7 || n == 8;
    bucket.write(meta_of(n, 10, removed));
    known->add(meta_of(n, 10, removed), !removed, removed ? "" : tuple("k"));
  }
  bucket.write(meta_of(9, 20));
  bucket.write(meta_of(401, 21));
  REQUIRE(bucket.provider->forget_removes(bucket.id, Timestamp{15}).is_ok());

  PartialReader reader(known);
  const spi::IterateOptions options{.types = nullptr, .selection = nullptr};
  const PositionRange all;
  DocBlockBuilder block;
  const Result<bool> more = reader.next({*bucket.provider, {&bucket.id, 1}, all, options}, block, 1 << 20);
  REQUIRE(more);
  REQUIRE_FALSE(*more);
  REQUIRE(reader.found() == PartialReader::Found::Changed);
  CHECK(block.count() == 2);
  REQUIRE(reader.changes().size() == 4);
  CHECK(reader.changes().at(gid_of(7)).gone);
  CHECK(reader.changes().at(gid_of(8)).gone);
  CHECK_FALSE(reader.changes().at(gid_of(9)).gone);

  BucketPartial now = *known;
  received_by(now, reader.changes());
  CHECK(now.version() == reader.content());
  CHECK(now.find(gid_of(7)) == DocumentChange::kNew);
  // The next run finds the bucket unchanged and reads nothing.
  PartialReader next(std::make_shared<BucketPartial>(std::move(now)));
  REQUIRE(next.next({*bucket.provider, {&bucket.id, 1}, all, options}, block, 1 << 20));
  CHECK(next.found() == PartialReader::Found::Same);
}

TEST_CASE("partials: if a document is gone without a remove, the whole bucket is read again") {
  Bucket bucket;
  auto known = std::make_shared<BucketPartial>();
  for (int n = 1; n <= 400; ++n) {
    if (n != 7) bucket.write(meta_of(n, 10));
    known->add(meta_of(n, 10), true, tuple("k"));
  }
  PartialReader reader(known);
  const spi::IterateOptions options{.types = nullptr, .selection = nullptr};
  DocBlockBuilder block;
  const Result<bool> more = reader.next({*bucket.provider, {&bucket.id, 1}, PositionRange(), options}, block, 1 << 20);
  REQUIRE(more);
  REQUIRE_FALSE(*more);
  CHECK(reader.found() == PartialReader::Found::All);
  CHECK(block.count() == 399);
}

}  // namespace
}  // namespace fjord::mapreduce
