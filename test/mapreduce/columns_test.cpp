// Columns: the values that aggregations keep of the documents that they have read.

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "columns/bucket_columns.h"
#include "columns/column_cache.h"
#include "fjord/common/random.h"
#include "mapreduce/aggregate_world.h"

namespace fjord::mapreduce {
namespace {

ScalarView integer(std::int64_t value) { return {ScalarView::Kind::Integer, value, 0.0, {}}; }
ScalarView number(double value) { return canonical({ScalarView::Kind::Double, 0, value, {}}); }
ScalarView text(std::string_view value) { return {ScalarView::Kind::String, 0, 0.0, value}; }

std::string key_of(const ScalarView& value) {
  std::string key;
  put_scalar(key, value);
  return key;
}

/// Makes a column of the values and checks that it has them.
Column checked(const std::vector<ScalarView>& values) {
  ColumnBuilder builder;
  for (const ScalarView& value : values) builder.add(value);
  Column column = builder.finish();
  REQUIRE(column.rows() == values.size());
  for (std::size_t row = 0; row < values.size(); ++row) {
    INFO("row " << row);
    CHECK(key_of(column.at(row)) == key_of(values[row]));
    std::string key;
    column.append_key(row, key);
    CHECK(key == key_of(values[row]));
  }
  return column;
}

TEST_CASE("a column of integers is an array, also with values that are absent", "[columns]") {
  const Column all = checked({integer(3), integer(-7), integer(INT64_MAX), integer(INT64_MIN)});
  REQUIRE(all.integers() != nullptr);
  CHECK(all.integers()[1] == -7);
  CHECK_FALSE(all.has_dictionary());
  const Column some = checked({integer(3), {}, integer(0), {}});
  CHECK(some.integers() == nullptr);
  CHECK_FALSE(some.has_dictionary());
  checked({{}, {}, {}});
}

TEST_CASE("a column of numbers keeps each of them exactly, integers too", "[columns]") {
  const Column mixed = checked({integer(3), number(0.1), {}, number(-1e300), number(HUGE_VAL), integer(1LL << 53)});
  CHECK_FALSE(mixed.has_dictionary());
  CHECK(mixed.at(0).kind == ScalarView::Kind::Integer);
  // 2^53 + 1 is no floating-point number.
  CHECK(checked({number(0.5), integer((1LL << 53) + 1)}).has_dictionary());
  CHECK(checked({integer((1LL << 53) + 1), {}, number(0.5)}).has_dictionary());
}

TEST_CASE("a column of texts has each different text once", "[columns]") {
  const Column texts = checked({text("Bergen"), text(""), text("Bergen"), {}, text("Oslo"), {}});
  REQUIRE(texts.has_dictionary());
  CHECK(texts.dictionary().size() == 4);
  CHECK(texts.code(0) == texts.code(2));
  CHECK(texts.code(3) == texts.code(5));
  checked({integer(1), number(0.5), text("1"), integer(1), {}});
}

TEST_CASE("a column has the values that were added, whatever they are", "[columns]") {
  const std::vector<std::string> words = {"", "a", "b", std::string(300, 'x'), "\xc3\xa5"};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const auto kinds = random.below(16);
    std::vector<ScalarView> values;
    for (auto left = random.below(60); left > 0; --left) {
      switch (random.below(4)) {
        case 0:
          values.push_back({});
          break;
        case 1:
          if ((kinds & 2) != 0) values.push_back(integer(static_cast<std::int64_t>(random.next() >> random.below(64))));
          break;
        case 2:
          if ((kinds & 4) != 0)
            values.push_back(number(random.uniform() * std::ldexp(1.0, static_cast<int>(random.below(90)))));
          break;
        default:
          if ((kinds & 8) != 0) values.push_back(text(words[random.below(words.size())]));
      }
    }
    CHECK(checked(values).rows() == values.size());
  }
}

/// A cache, and columns of `bytes` bytes or a little more.
struct CacheWorld {
  std::size_t limit = 1 << 20;
  MetricRegistry registry;
  ColumnCache cache{[this] { return limit; }, registry};
  std::shared_ptr<const DocumentTypeRepo> types = test::sale_types();

  ColumnQuery query(std::vector<std::string> values, std::string selection = "") {
    return {types, "sale", std::move(selection), std::move(values)};
  }
  void put(const ColumnQuery& query, unsigned bucket, std::uint64_t version, std::size_t documents = 10) {
    ColumnsBuilder builder(query.values.size());
    for (std::size_t i = 0; i < documents; ++i) {
      for (std::size_t column = 0; column < query.values.size(); ++column) {
        builder.add(column, integer(static_cast<std::int64_t>(column)));
      }
    }
    BucketColumns columns = builder.finish(0);
    columns.content.version = {documents, version};
    cache.put(query, BucketId(8, bucket), std::make_shared<const BucketColumns>(std::move(columns)));
  }
  bool has(const ColumnQuery& query, unsigned bucket, std::uint64_t version, std::size_t documents = 10) {
    return cache.find(query, BucketId(8, bucket), {documents, version}).has_value();
  }
};

TEST_CASE("columns are found for the same content only", "[columns]") {
  CacheWorld world;
  const ColumnQuery query = world.query({"city", "year"});
  world.put(query, 1, 77);
  CHECK(world.has(query, 1, 77));
  CHECK_FALSE(world.has(query, 1, 78));
  CHECK_FALSE(world.has(query, 1, 77, 11));
  CHECK_FALSE(world.has(query, 2, 77));
  CHECK_FALSE(world.has(world.query({"city", "year"}, "sale.year > 2000"), 1, 77));
  world.put(query, 1, 78);
  CHECK(world.has(query, 1, 78));
  CHECK_FALSE(world.has(query, 1, 77));
}

TEST_CASE("a query finds its values among those of another one", "[columns]") {
  CacheWorld world;
  world.put(world.query({"city", "year", "amount"}), 1, 5);
  const auto found = world.cache.find(world.query({"amount", "city"}), BucketId(8, 1), {10, 5});
  REQUIRE(found.has_value());
  CHECK(found->of(0).at(0).integer == 2);
  CHECK(found->of(1).at(0).integer == 0);
  CHECK_FALSE(world.has(world.query({"amount", "country"}), 1, 5));
}

TEST_CASE("columns of former schemas are dropped", "[columns]") {
  CacheWorld world;
  const ColumnQuery before = world.query({"city"});
  world.put(before, 1, 5);
  world.types = test::sale_types();
  CHECK_FALSE(world.has(world.query({"city"}), 1, 5));
  world.put(world.query({"city"}), 2, 5);
  CHECK_FALSE(world.has(before, 1, 5));
  CHECK(world.has(world.query({"city"}), 2, 5));
}

TEST_CASE("columns stay within their memory, and those of the query used last stay", "[columns]") {
  CacheWorld world;
  world.limit = 100'000;
  const ColumnQuery old = world.query({"a"});
  const ColumnQuery used = world.query({"b"});
  constexpr std::size_t kDocuments = 1000;
  for (unsigned bucket = 0; bucket < 4; ++bucket) world.put(old, bucket, 1, kDocuments);
  for (unsigned bucket = 0; bucket < 40; ++bucket) {
    world.put(used, bucket, 1, kDocuments);
    REQUIRE(world.cache.bytes() <= world.limit);
  }
  CHECK_FALSE(world.has(old, 0, 1, kDocuments));
  // The buckets that came first stay, so that the next run finds as many as have room.
  unsigned kept = 0;
  while (world.has(used, kept, 1, kDocuments)) ++kept;
  CHECK(kept >= 8);
  CHECK(kept < 40);

  world.limit = 0;
  CHECK_FALSE(world.has(used, 0, 1, kDocuments));
  CHECK(world.cache.bytes() == 0);
  world.put(used, 0, 1, kDocuments);
  CHECK(world.cache.bytes() == 0);
}

}  // namespace
}  // namespace fjord::mapreduce
