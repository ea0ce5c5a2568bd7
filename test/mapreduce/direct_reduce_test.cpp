#include "runner/direct_reduce.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <map>

#include "mapreduce/aggregate_world.h"

namespace fjord::mapreduce {
namespace {

constexpr int kDocuments = 40'000;
constexpr int kCities = 9'000;  // More groups than the number from which several threads are used.

std::unique_ptr<Application> application_of(const AggregateSpec& spec) {
  static const auto types = test::sale_types();
  ApplicationRegistry registry;
  add_builtin_applications(registry);
  auto application = registry.create("aggregate", {{"spec", spec.to_json()}}, *types->find("sale"), types.get());
  INFO(application.status());
  REQUIRE(application);
  return std::move(*application);
}

AggregateSpec by_city() {
  AggregateSpec spec;
  spec.type = "sale";
  spec.group_by = {"city"};
  spec.aggregates = {"count()", "sum(cents)"};
  return spec;
}

/// Returns the city of document n. Keys have all lengths; many share a long prefix.
std::string city_of(int n) {
  const int city = static_cast<int>(std::int64_t{n} * 7919 % kCities);
  return city % 3 == 0 ? fmt::format("{}", city) : fmt::format("a city with a long name, number {}", city);
}

struct Group {
  int count = 0;
  std::int64_t cents = 0;
};

/// Returns the expected groups in order of their keys.
std::map<std::string, Group> expected_of(int begin, int end) {
  std::map<std::string, Group> groups;
  for (int n = begin; n < end; ++n) {
    Group& group = groups[fmt::format("[\"{}\"]", city_of(n))];
    ++group.count;
    group.cents += n;
  }
  return groups;
}

/// Returns the chunks that a task sends for the documents `begin` to `end` - 1.
std::vector<std::string> chunks_of(Application& application, std::uint64_t unit, int begin, int end) {
  static const auto types = test::sale_types();
  const auto table = make_accumulator(application);
  for (int n = begin; n < end; ++n) {
    const EncodedDocument bytes = encode(test::document_of(*types, n, {.city = city_of(n), .cents = n}));
    REQUIRE(table->map(*DocumentView::open(*types, bytes.header, bytes.body)).is_ok());
  }
  std::vector<std::string> chunks;
  TupleDocuments pieces(table->drain(0), 64 << 10);
  while (const auto piece = *pieces.next()) chunks.push_back(TupleChunk::encode(unit, piece->tuples));
  return chunks;
}

TaskReport report_of(std::uint64_t unit, std::size_t chunks) {
  TaskReport report;
  report.unit = unit;
  report.unit_buckets = 1;
  report.unit_chunks = chunks;
  return report;
}

void add_unit(DirectReduce& reduce, Application& application, std::uint64_t unit, int begin, int end) {
  const BucketId bucket(16, unit);
  const auto chunks = chunks_of(application, unit, begin, end);
  for (const std::string& chunk : chunks) REQUIRE(reduce.on_chunk(bucket, chunk).is_ok());
  REQUIRE(reduce.on_bucket(bucket, report_of(unit, chunks.size())).is_ok());
}

JobRows rows_of(DirectReduce& reduce) {
  auto rows = reduce.finish(std::size_t{1} << 30);
  INFO(rows.status());
  REQUIRE(rows);
  return std::move(*rows);
}

JobRows rows_of(const std::map<std::string, Group>& groups, int count_min = 0) {
  JobRows rows;
  for (const auto& [key, group] : groups) {
    if (group.count < count_min) continue;
    rows.add(key, fmt::format("{},{},{}]", key.substr(0, key.size() - 1), group.count, group.cents));
  }
  return rows;
}

TEST_CASE("rows of many units are there once, sorted by key, whatever number of threads makes them") {
  const auto application = application_of(by_city());
  const JobRows expected = rows_of(expected_of(0, kDocuments));
  REQUIRE(expected.size() == kCities);
  for (const bool is_parallel : {false, true}) {
    const auto bulk = is_parallel ? make_tbb_bulk_executor() : make_inline_bulk_executor();
    DirectReduce reduce(*application, *bulk);
    for (int unit = 0; unit < 5; ++unit) {
      add_unit(reduce, *application, static_cast<std::uint64_t>(unit + 1), unit * kDocuments / 5,
               (unit + 1) * kDocuments / 5);
    }
    CHECK(rows_of(reduce) == expected);
  }
}

TEST_CASE("groups that do not pass a condition leave no gaps between rows") {
  AggregateSpec spec = by_city();
  spec.having = "count > 4";  // About half of the groups meet this condition.
  const auto application = application_of(spec);
  const JobRows expected = rows_of(expected_of(0, kDocuments), 5);
  REQUIRE(expected.size() > 1000);
  REQUIRE(expected.size() < kCities - 1000);
  const auto bulk = make_tbb_bulk_executor();
  DirectReduce reduce(*application, *bulk);
  add_unit(reduce, *application, 1, 0, kDocuments);
  CHECK(rows_of(reduce) == expected);

  spec.having = "count > 1000000";
  const auto none = application_of(spec);
  DirectReduce nothing(*none, *bulk);
  add_unit(nothing, *none, 1, 0, kDocuments);
  CHECK(rows_of(nothing).empty());
}

TEST_CASE("rows that nobody waits for any more are not made") {
  const auto application = application_of(by_city());
  const auto bulk = make_inline_bulk_executor();
  DirectReduce reduce(*application, *bulk);
  add_unit(reduce, *application, 1, 0, kDocuments);
  std::stop_source stop;
  stop.request_stop();
  CHECK(reduce.finish(std::size_t{1} << 30, stop.get_token()).status().code() == StatusCode::Cancelled);
}

TEST_CASE("a unit that was not read to its end does not count") {
  const auto application = application_of(by_city());
  const auto bulk = make_tbb_bulk_executor();
  DirectReduce reduce(*application, *bulk);
  add_unit(reduce, *application, 1, 0, 10'000);
  for (const std::string& chunk : chunks_of(*application, 2, 10'000, 20'000)) {
    REQUIRE(reduce.on_chunk(BucketId(16, 2), chunk).is_ok());
  }
  CHECK(reduce.take_lost().empty());
  CHECK(reduce.buckets() == 1);
  CHECK(rows_of(reduce) == rows_of(expected_of(0, 10'000)));
}

TEST_CASE("buckets that were done in a unit that never ended are read again") {
  const auto application = application_of(by_city());
  const auto bulk = make_tbb_bulk_executor();
  DirectReduce reduce(*application, *bulk);
  const auto chunks = chunks_of(*application, 1, 0, 10'000);
  for (const std::string& chunk : chunks) REQUIRE(reduce.on_chunk(BucketId(16, 1), chunk).is_ok());
  TaskReport report = report_of(1, chunks.size());
  report.unit_buckets = 2;
  REQUIRE(reduce.on_bucket(BucketId(16, 7), report).is_ok());
  CHECK(reduce.take_lost() == std::vector<BucketId>{BucketId(16, 7)});
  CHECK(reduce.bytes() == 0);
  CHECK(reduce.buckets() == 0);
}

TEST_CASE("a unit of which a chunk has not come is an error") {
  const auto application = application_of(by_city());
  const auto bulk = make_tbb_bulk_executor();
  DirectReduce reduce(*application, *bulk);
  const auto chunks = chunks_of(*application, 1, 0, 10'000);
  REQUIRE(chunks.size() > 1);
  for (std::size_t i = 1; i < chunks.size(); ++i) REQUIRE(reduce.on_chunk(BucketId(16, 1), chunks[i]).is_ok());
  CHECK(reduce.on_bucket(BucketId(16, 1), report_of(1, chunks.size())).code() == StatusCode::Corruption);
}

TEST_CASE("chunks of a unit that was begun again are dropped at once") {
  const auto application = application_of(by_city());
  const auto bulk = make_tbb_bulk_executor();
  DirectReduce reduce(*application, *bulk);
  const BucketId bucket(16, 1);
  for (const std::string& chunk : chunks_of(*application, 1, 0, 10'000))
    REQUIRE(reduce.on_chunk(bucket, chunk).is_ok());
  const std::string again = chunks_of(*application, 2, 0, 10).front();
  REQUIRE(reduce.on_chunk(bucket, again).is_ok());
  CHECK(reduce.bytes() == again.size());
}

TEST_CASE("rows that need too much memory are an error, as is a damaged chunk") {
  const auto application = application_of(by_city());
  const auto bulk = make_tbb_bulk_executor();
  DirectReduce reduce(*application, *bulk);
  add_unit(reduce, *application, 1, 0, kDocuments);
  CHECK(reduce.bytes() > kCities * std::size_t{50});
  // Rows lie in memory twice while they are sorted.
  const std::size_t enough = rows_of(expected_of(0, kDocuments)).bytes_while_sorted();
  const auto rows = reduce.finish(enough - 1);
  REQUIRE(!rows);
  CHECK(rows.error().code() == StatusCode::TooLarge);
  DirectReduce fits(*application, *bulk);
  add_unit(fits, *application, 1, 0, kDocuments);
  CHECK(fits.finish(enough).has_value());

  DirectReduce other(*application, *bulk);
  std::vector<std::string> chunks = chunks_of(*application, 1, 0, 100);
  REQUIRE(chunks.size() == 1);
  chunks[0].resize(chunks[0].size() - 1);
  REQUIRE(other.on_chunk(BucketId(16, 1), chunks[0]).is_ok());
  CHECK(other.on_bucket(BucketId(16, 1), report_of(1, 1)).code() == StatusCode::Corruption);
}

}  // namespace
}  // namespace fjord::mapreduce
