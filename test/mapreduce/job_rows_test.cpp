#include "fjord/mapreduce/job_rows.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/bulk_executor.h"

namespace fjord::mapreduce {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs pairs_of(const JobRows& rows) {
  Pairs pairs;
  for (const auto& [key, value] : rows) pairs.emplace_back(key, value);
  return pairs;
}

Pairs unpacked(std::string_view packed) {
  const auto rows = JobRows::unpack(std::string(packed));
  REQUIRE(rows);
  return pairs_of(*rows);
}

/// Keys of all lengths, many with equal beginnings; some are twice there with different values.
Pairs random_pairs(std::size_t count) {
  std::mt19937 random(7);
  Pairs pairs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key = std::string(random() % 12, 'a') + std::to_string(random() % (2 * count));
    pairs.emplace_back(random() % 50 == 0 ? std::string("\0\xff", 2) + key : key, std::string(random() % 300, 'v'));
  }
  return pairs;
}

}  // namespace

TEST_CASE("rows come back as they were added") {
  JobRows rows{{"b", "1"}, {"", "2"}, {std::string_view("\0\xff", 2), ""}};
  CHECK(rows.size() == 3);
  CHECK(rows[2].key == std::string_view("\0\xff", 2));
  CHECK(pairs_of(rows) == Pairs{{"b", "1"}, {"", "2"}, {std::string("\0\xff", 2), ""}});
  CHECK(rows.bytes_while_sorted() > 2 * rows.bytes());
  CHECK(JobRows().empty());
  CHECK_FALSE(JobRows() == rows);
}

TEST_CASE("packed rows end where the next one would exceed the limit, and one row always fits") {
  const JobRows rows{{"a", "12"}, {"b", "34"}, {"c", std::string(200, 'x')}, {"d", "5"}};  // 5, 5, 204 and 4 bytes
  std::size_t end = 0;
  const auto page = [&](std::size_t first, std::size_t bytes) { return unpacked(rows.packed(first, bytes, end)); };
  CHECK(page(0, 0) == Pairs{{"a", "12"}});
  CHECK(end == 1);
  CHECK(page(0, 9) == Pairs{{"a", "12"}});
  CHECK(page(0, 10) == Pairs{{"a", "12"}, {"b", "34"}});
  CHECK(end == 2);
  CHECK(page(1, 100) == Pairs{{"b", "34"}});
  CHECK(page(2, 100).size() == 1);
  CHECK(end == 3);
  CHECK(page(0, 217).size() == 3);
  CHECK(page(0, 218).size() == 4);
  CHECK(end == 4);
  CHECK(page(3, std::size_t(-1)) == Pairs{{"d", "5"}});
  CHECK(page(4, 100).empty());
  CHECK(page(9, 100).empty());
  CHECK(end == 4);
}

TEST_CASE("packed rows that are damaged are refused") {
  std::size_t end = 0;
  const JobRows rows{{"a", "12"}, {"b", "34"}};
  const std::string packed(rows.packed(0, 100, end));
  CHECK(*JobRows::unpack(packed) == rows);
  for (std::size_t bytes = 1; bytes < packed.size(); ++bytes) {
    if (bytes != 5) CHECK(JobRows::unpack(packed.substr(0, bytes)).error().code() == StatusCode::Corruption);
  }
}

TEST_CASE("rows of many parts are merged by key") {
  const auto inline_bulk = make_inline_bulk_executor();
  const auto threads = make_tbb_bulk_executor();
  const std::string beginning = GENERATE(as<std::string>(), "", "all keys begin so: ");
  const std::size_t count = GENERATE(0u, 1u, 20u, 5000u);
  Pairs expected = random_pairs(count);
  for (auto& [key, value] : expected) key = beginning + key;
  if (!beginning.empty()) expected.emplace_back(beginning, "a key that is no longer than this");
  std::vector<JobRows> parts(7);
  for (std::size_t i = 0; i < expected.size(); ++i) parts[i % 6].add(expected[i].first, expected[i].second);
  std::vector<JobRows> again = parts;
  const JobRows merged = JobRows::merge(parts, *inline_bulk);
  CHECK(JobRows::merge(again, *threads) == merged);
  std::sort(expected.begin(), expected.end());
  CHECK(pairs_of(merged) == expected);
  CHECK(parts.empty());

  JobRows alone;
  for (auto pair = expected.rbegin(); pair != expected.rend(); ++pair) alone.add(pair->first, pair->second);
  alone.sort();
  CHECK(alone == merged);
}

}  // namespace fjord::mapreduce
