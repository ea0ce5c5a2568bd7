#include "maintenance/unhealthy_buckets.h"

#include <catch2/catch.hpp>
#include <set>

namespace fjord::distributor {
namespace {

using Kind = rpc::BucketProblem;

BucketEntry healthy() {
  BucketEntry entry;
  entry.activity = activity::Idle{};
  entry.set.nodes = {1, 2};
  return entry;
}
Kind kind_of(const BucketEntry& entry) {
  const auto unhealthy = problem_of(entry, 2);
  return unhealthy ? unhealthy->kind : Kind::Unknown;
}

}  // namespace

TEST_CASE("unhealthy buckets: the worst of what is wrong with a bucket is told, with its nodes") {
  BucketEntry entry = healthy();
  CHECK_FALSE(problem_of(entry, 2));
  entry.obsolete = {5};
  CHECK(kind_of(entry) == Kind::OutOfSync);
  entry.obsolete.clear();
  entry.dirty = true;
  CHECK(kind_of(entry) == Kind::OutOfSync);
  entry.catching_up = {3};
  CHECK(problem_of(entry, 2)->reason == "a replica is being filled");
  CHECK(problem_of(entry, 2)->catching_up == std::vector<std::uint16_t>{3});
  entry.damaged = {2};
  CHECK(kind_of(entry) == Kind::Damaged);
  entry.damaged = {1, 2};
  CHECK(kind_of(entry) == Kind::Lost);
  CHECK(problem_of(entry, 2)->members == std::vector<std::uint16_t>{1, 2});
  CHECK(problem_of(entry, 2)->damaged == std::vector<std::uint16_t>{1, 2});
  entry.activity = activity::Unavailable{"a node is down"};
  CHECK(kind_of(entry) == Kind::Unavailable);
  CHECK(problem_of(entry, 2)->reason == "a node is down");
}

TEST_CASE("unhealthy buckets: a bucket with too few replicas is told, and says what its next loss would take") {
  BucketEntry entry = healthy();
  CHECK_FALSE(has_too_few_replicas(entry, 2));
  CHECK(has_too_few_replicas(entry, 3));
  CHECK_THAT(problem_of(entry, 3)->reason, Catch::Contains("2 of 3 replicas are current; no node is there"));
  entry.set.nodes = {1};
  CHECK(kind_of(entry) == Kind::OutOfSync);
  CHECK_THAT(problem_of(entry, 2)->reason, Catch::Contains("1 of 2 replicas is current: if it is lost"));
  entry.catching_up = {2};
  CHECK_THAT(problem_of(entry, 2)->reason, Catch::Contains("a replica is being filled"));
  entry.activity = activity::Collecting{};
  CHECK_FALSE(has_too_few_replicas(entry, 2));
}

TEST_CASE("unhealthy buckets: a list comes in pages, each bucket once, without those that are not asked for") {
  BucketDatabase buckets;
  const std::vector<BucketId> unreported = {BucketId(5, 27), BucketId(5, 21), BucketId(5, 30)};
  for (std::uint64_t i = 0; i < 20; ++i) {
    BucketEntry& entry = buckets.add(BucketId(5, i));
    entry.activity = activity::Idle{};
    entry.set.nodes = {1};
    if (i % 2 == 0) entry.catching_up = {2};
    if (i % 4 == 0) entry.damaged = {1};
  }
  for (const auto& [at_least, expected] : {std::pair(Kind::OutOfSync, 13), std::pair(Kind::Lost, 8)}) {
    std::set<BucketId> seen;
    rpc::ListUnhealthyBuckets request;
    request.at_least = at_least;
    request.max = 3;
    int pages = 0;
    do {
      const rpc::ListUnhealthyBucketsReply reply = list_unhealthy(buckets, unreported, "away", 1, request);
      CHECK(reply.buckets.size() <= 3);
      for (const rpc::UnhealthyBucket& unhealthy : reply.buckets) CHECK(seen.insert(unhealthy.bucket).second);
      request.from_key = reply.next_key;
      ++pages;
    } while (request.from_key != 0);
    CHECK(seen.size() == static_cast<std::size_t>(expected));
    CHECK(pages == (expected + 2) / 3);
  }
}

}  // namespace fjord::distributor
