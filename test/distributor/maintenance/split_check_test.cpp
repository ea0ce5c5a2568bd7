#include "maintenance/split_check.h"

#include <catch2/catch.hpp>

namespace fjord::distributor {
namespace {

BucketInfo info(std::uint64_t entries, std::uint64_t bytes) {
  BucketInfo info;
  info.entries = entries;
  info.bytes = bytes;
  return info;
}

}  // namespace

TEST_CASE("split check: a large bucket is split if that helps, one-sided ones when they are huge, one group never") {
  const SizeLimits limits{100, 1000};
  const struct {
    BucketInfo held;
    bool divisible, one_sided;
  } kCases[] = {
      {info(100, 1000), false, false}, {info(101, 0), true, false},      {info(2, 1001), true, false},
      {info(1615, 0), true, false},    {info(1616, 0), true, true},      {info(2, 16'015), true, false},
      {info(2, 16'016), true, true},   {info(1'000'000, 0), true, true},
  };
  for (const auto& one : kCases) {
    INFO(one.held.entries << " entries, " << one.held.bytes << " bytes");
    CHECK(should_split(BucketShape::Divisible, one.held, limits) == one.divisible);
    CHECK(should_split(BucketShape::OneSided, one.held, limits) == one.one_sided);
    CHECK_FALSE(should_split(BucketShape::OneGroup, one.held, limits));
  }
}

TEST_CASE("split check: a bucket is looked into again when it has a fifth more or less") {
  CHECK_FALSE(has_changed(info(100, 1000), info(125, 1250)));
  CHECK(has_changed(info(100, 1000), info(126, 1000)));
  CHECK(has_changed(info(100, 1000), info(100, 1251)));
  CHECK_FALSE(has_changed(info(100, 1000), info(80, 800)));
  CHECK(has_changed(info(100, 1000), info(79, 1000)));
  CHECK_FALSE(has_changed(info(0, 0), info(0, 0)));
}

}  // namespace fjord::distributor
