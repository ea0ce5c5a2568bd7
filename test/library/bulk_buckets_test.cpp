#include "bulk_buckets.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

using visitors::PositionRange;

constexpr std::uint64_t kLocation = 5;

const BucketId kWhole(3, kLocation);
const BucketId kHalf(4, kLocation);
const BucketId kOtherHalf(4, kLocation | 8);

bool is_done(const BulkBuckets& buckets, BucketId bucket) { return buckets.done().contains(PositionRange::of(bucket)); }

}  // namespace

TEST_CASE("bulk buckets: a bucket is done when it is visited and its last write has ended, in either order") {
  BulkBuckets buckets;
  buckets.begin_write(kHalf);
  buckets.begin_write(kHalf);
  buckets.end_write(kHalf, true);
  buckets.end_visit(kHalf);
  CHECK_FALSE(is_done(buckets, kHalf));
  buckets.end_write(kHalf, true);
  CHECK(is_done(buckets, kHalf));
  CHECK_FALSE(is_done(buckets, kOtherHalf));

  buckets.begin_write(kOtherHalf);
  buckets.end_write(kOtherHalf, true);
  CHECK_FALSE(is_done(buckets, kOtherHalf));
  buckets.end_visit(kOtherHalf);
  CHECK(is_done(buckets, kWhole));
}

TEST_CASE("bulk buckets: a bucket with a write that failed is not done, whatever ends later") {
  for (const bool is_last : {false, true}) {
    INFO("the failure is the last write: " << is_last);
    BulkBuckets buckets;
    buckets.begin_write(kHalf);
    buckets.begin_write(kHalf);
    buckets.end_visit(kHalf);
    buckets.end_write(kHalf, is_last);
    buckets.end_write(kHalf, !is_last);
    CHECK(buckets.done().empty());
  }
}

TEST_CASE("bulk buckets: halves of a bucket are done only if the writes before the split have all succeeded") {
  BulkBuckets buckets;
  buckets.begin_write(kWhole);

  SECTION("a write before the split failed before the half ended") {
    buckets.end_write(kWhole, false);
    buckets.end_visit(kHalf);
    buckets.end_visit(kOtherHalf);
    CHECK(buckets.done().empty());
  }
  SECTION("a write before the split is still in flight when the half ends") {
    buckets.end_visit(kHalf);
    CHECK(buckets.done().empty());
    buckets.end_write(kWhole, false);
    CHECK(buckets.done().empty());
    buckets.end_visit(kOtherHalf);
    CHECK(buckets.done().empty());
  }
  SECTION("a write before the split failed beside one that succeeded") {
    buckets.begin_write(kWhole);
    buckets.end_write(kWhole, false);
    buckets.end_write(kWhole, true);
    buckets.begin_write(kHalf);
    buckets.end_write(kHalf, true);
    buckets.end_visit(kHalf);
    CHECK(buckets.done().empty());
  }
  SECTION("all writes before the split succeeded") {
    buckets.end_write(kWhole, true);
    buckets.end_visit(kHalf);
    CHECK(is_done(buckets, kHalf));
    CHECK_FALSE(is_done(buckets, kOtherHalf));
    buckets.end_visit(kOtherHalf);
    CHECK(is_done(buckets, kWhole));
  }
}

TEST_CASE("bulk buckets: a resumed run keeps what was done") {
  BulkBuckets buckets;
  visitors::PositionSet done;
  done.add(PositionRange::of(kHalf));
  buckets.resume(done);
  CHECK(buckets.done() == done);
  buckets.end_visit(kOtherHalf);
  CHECK(is_done(buckets, kWhole));
}

}  // namespace fjord
