// One suite for all ways to run an application in another process: plugins and scripts.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "batch_application_fixture.h"
#include "mapreduce/batch_tasks.h"

namespace fjord::mapreduce::test {
namespace {

using fjord::test::BatchDocuments;
using fjord::test::check_apart;
using fjord::test::map_all;
using fjord::test::reduce_all;
using fjord::test::Rows;
using fjord::test::rows_of;
using fjord::test::sums_by_digit;
using fjord::test::tuples_of;

/// An application, and documents with `count` from 0.
struct World {
  explicit World(std::unique_ptr<BatchApplicationFixture> chosen, int documents, const SumsOptions& options = {})
      : fixture(std::move(chosen)),
        types(*DocumentTypeRepo::build(std::vector<std::string>{
            "document item { field count type int { header } field text type string { body } }"})),
        items(*types, "item", documents,
              [](int i) { return "{\"count\": " + std::to_string(i) + R"(, "text": "xxxxxxxxxx"})"; }),
        application(fixture->make_sums(options, *types)),
        table(make_accumulator(*application)) {}

  std::span<const DocumentView> all() const { return items.views; }
  Result<Rows> reduce() { return reduce_all(*application, *table->drain(0)); }

  std::unique_ptr<BatchApplicationFixture> fixture;
  std::shared_ptr<const DocumentTypeRepo> types;
  BatchDocuments items;
  std::unique_ptr<Application> application;
  std::unique_ptr<Accumulator> table;
};

}  // namespace

TEST_CASE("batch application: what it computes of many documents is what one would compute of each") {
  const auto fixture = GENERATE(make_plugin_fixture, make_script_fixture);
  World world(fixture(), 5000, {.combines = GENERATE(true, false)});
  const auto failed = map_all(*world.table, world.all());
  REQUIRE(failed);
  CHECK(failed->empty());
  CHECK(world.table->tuples() == 5000);
  CHECK(rows_of(world.reduce()) == sums_by_digit(5000));
}

TEST_CASE("batch application: the tuples of a task are the same bytes, however its documents came together") {
  const auto fixture = GENERATE(make_plugin_fixture, make_script_fixture);
  World world(fixture(), 3000, {.combines = GENERATE(true, false)});
  const std::span<const DocumentView> all = world.all();
  REQUIRE(map_all(*world.table, all));
  const auto pieces = make_accumulator(*world.application);
  for (std::size_t i = 0; i < all.size(); i += 7) {
    const std::size_t size = std::min<std::size_t>(7, all.size() - i);
    REQUIRE(map_all(*pieces, all.subspan(all.size() - i - size, size)));
  }
  CHECK(tuples_of(*pieces->drain(4)) == tuples_of(*world.table->drain(4)));
}

TEST_CASE("batch application: values that wait to be combined do not pile up") {
  const auto fixture = GENERATE(make_plugin_fixture, make_script_fixture);
  World world(fixture(), 1);
  std::size_t most = 0;
  for (int i = 0; i < 60'000; ++i) {
    REQUIRE(world.table->merge(std::to_string(i % 3), world.fixture->value_of(1)));
    most = std::max(most, world.table->bytes());
  }
  CHECK(most < std::size_t{512} << 10);
  CHECK(rows_of(world.reduce()) == Rows{{"0", "20000"}, {"1", "20000"}, {"2", "20000"}});
}

TEST_CASE("batch application: a document on which map goes wrong fails, and no other one does") {
  const auto fixture = GENERATE(make_plugin_fixture, make_script_fixture);
  const Wrong wrong = GENERATE(Wrong::MapFails, Wrong::MapLoops, Wrong::MapGrows);
  World world(fixture(), 200, {.wrong = wrong, .at = 123});
  const auto failed = map_all(*world.table, world.all());
  CAPTURE(static_cast<int>(wrong));
  REQUIRE(failed);
  REQUIRE(failed->size() == 1);
  CHECK(failed->begin()->first == 123);
  if (wrong == Wrong::MapFails) CHECK_THAT(failed->begin()->second, Catch::Contains("a bad day"));
  // No tuple of the failed document counts, not even the one emitted before the failure.
  CHECK(rows_of(world.reduce()) == sums_by_digit(200, 123));
  CHECK(world.table->tuples() == 199);
}

TEST_CASE("batch application: tuples of documents that go over together can be told from each other") {
  const auto fixture = GENERATE(make_plugin_fixture, make_script_fixture);
  const Wrong wrong = GENERATE(Wrong::Nothing, Wrong::MapFails, Wrong::MapLoops);
  World world(fixture(), 100, {.wrong = wrong, .at = 37});
  check_apart(*world.application, world.all(), wrong == Wrong::Nothing ? 0 : 1);
}

TEST_CASE("batch application: an error of combine or reduce fails the task") {
  const auto fixture = GENERATE(make_plugin_fixture, make_script_fixture);
  const Wrong wrong = GENERATE(Wrong::CombineFails, Wrong::ReduceFails);
  World world(fixture(), 20, {.wrong = wrong});
  // Maps the documents one by one, so that combine() is called only when the tuples are read.
  for (const DocumentView& document : world.all()) REQUIRE(world.table->map_many({&document, 1}));
  const auto rows = world.reduce();
  REQUIRE_FALSE(rows);
  if (wrong == Wrong::ReduceFails) CHECK_THAT(rows.error().message(), Catch::Contains("a bad key"));
}

TEST_CASE("batch application: one document or key at a time is the same") {
  const auto fixture = GENERATE(make_plugin_fixture, make_script_fixture);
  World world(fixture(), 30, {.wrong = Wrong::MapFails, .at = 20});
  int failed = 0;
  for (const DocumentView& document : world.all()) {
    if (!world.table->map(document)) ++failed;
  }
  CHECK(failed == 1);
  Rows rows;
  Tuple tuple;
  const auto source = world.table->drain(0);
  while (source->next(tuple).value()) {
    const auto row = reduce_key(*world.application, tuple);
    REQUIRE(row);
    rows[std::string(tuple.key)] = row->value();
  }
  CHECK(rows == sums_by_digit(30, 20));
}

TEST_CASE("batch application: a task that nobody wants any more ends, whatever map does") {
  const auto fixture = GENERATE(make_plugin_fixture, make_script_fixture);
  World world(fixture(), 10, {.wrong = Wrong::MapLoops, .at = 3});
  const auto table = make_accumulator(*world.application, [] { return true; });
  CHECK(map_all(*table, world.all()).status().code() == StatusCode::Cancelled);
}

}  // namespace fjord::mapreduce::test
