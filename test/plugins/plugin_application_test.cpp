// Real libraries of applications in real processes, with the engine's accumulators but without a cluster. What plugins
// have in common with scripts: test/conformance/batch_application.

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "fjord/common/log.h"
#include "fjord/mapreduce/passes.h"
#include "fjord/plugins/plugin_directory.h"
#include "mapreduce/batch_tasks.h"

namespace fjord::plugins {
namespace {

using mapreduce::Application;
using test::map_all;
using test::reduce_all;
using test::Rows;
using test::rows_of;
using test::sums_by_digit;
using Parameters = std::vector<rpc::Parameter>;

class World {
 public:
  explicit World(PluginOptions options = {}) {
    log::set_level(log::Level::Off);
    options.directory = FJORD_PLUGIN_FOLDER;
    options.host = FJORD_PLUGIN_HOST;
    auto loaded = load_plugins(options, metrics, visitors, applications);
    REQUIRE(loaded);
    const std::vector<std::string> schemas = {
        "document item { field count type int { header } field text type string { body } }",
        "document other { field name type string { header } }"};
    auto built = DocumentTypeRepo::build(schemas);
    REQUIRE(built);
    types = std::move(*built);
  }

  Result<std::unique_ptr<Application>> create(const Parameters& parameters, const std::string& type = "item") {
    return applications.create("sums", parameters, *types->find(type), types.get());
  }
  std::unique_ptr<Application> make(const Parameters& parameters) {
    auto made = create(parameters);
    if (!made) FAIL(made.error().to_string());
    return std::move(*made);
  }
  std::uint64_t started() { return metrics.counter("fjord_plugin_processes_total", "").value(); }

  MetricRegistry metrics;
  visitors::VisitorRegistry visitors;
  mapreduce::ApplicationRegistry applications;
  std::shared_ptr<const DocumentTypeRepo> types;
};

/// Documents whose counts are 0, 1, 2, ...
class Documents : public test::BatchDocuments {
 public:
  Documents(const World& world, int count, int text_bytes = 10) : Documents(*world.types, "item", count, text_bytes) {}
  Documents(const DocumentTypeRepo& types, const std::string& type, int count, int text_bytes = 10)
      : BatchDocuments(types, type, count, [text_bytes](int i) {
          return "{\"count\": " + std::to_string(i) + ", \"text\": \"" +
                 std::string(static_cast<std::size_t>(text_bytes), 'x') + "\"}";
        }) {}
};

}  // namespace

TEST_CASE(
    "plugin application: what it computes of many documents is what one would compute of each, in a few messages") {
  World world;
  const Documents documents(world, 20'000, 100);
  const std::string combines = GENERATE("1", "0");
  const auto application = world.make({{"combines", combines}});
  const auto table = make_accumulator(*application);
  const auto failed = map_all(*table, documents.views);
  REQUIRE(failed);
  CHECK(failed->empty());
  CHECK(table->tuples() == 20'000);
  CHECK(rows_of(reduce_all(*application, *table->drain(0))) == sums_by_digit(20'000));
  CHECK(world.started() == 1);
}

TEST_CASE("plugin application: rows of the pass before are documents as any other") {
  World world;
  const auto rows = mapreduce::row_types(
      {{"text", mapreduce::ColumnKind::String, "text"}, {"count", mapreduce::ColumnKind::Integer, "count()"}});
  REQUIRE(rows);
  const Documents documents(**rows, "row", 500);
  const auto application = world.applications.create("sums", {}, *(*rows)->find("row"), rows->get());
  REQUIRE(application);
  const auto table = make_accumulator(**application);
  const auto failed = map_all(*table, documents.views);
  REQUIRE(failed);
  CHECK(failed->empty());
  CHECK(rows_of(reduce_all(**application, *table->drain(0))) == sums_by_digit(500));
}

TEST_CASE("plugin application: a document that is bad fails, says why, and no other one does") {
  const auto [how, said, processes] = GENERATE(table<std::string, std::string, std::uint64_t>({
      {"throws", "map() threw an exception: a bad day", 1},
      {"throws a number", "map() threw something", 1},
      {"refuses", "nothing here", 1},
      {"crashes", "ended by signal 6", 3},
      {"exits", "ended with code 7", 3},
      {"loops", "did not return in time", 3},
      {"leaks", "std::bad_alloc", 3},
  }));
  PluginOptions options;
  if (how == "loops") options.call_timeout = milliseconds(500);
  options.memory_bytes = std::uint64_t{512} << 20;
  World world(options);
  const Documents documents(world, 200);
  const auto application = world.make({{"how", how}, {"at", "123"}});
  const auto table = make_accumulator(*application);
  const auto failed = map_all(*table, documents.views);
  CAPTURE(how);
  REQUIRE(failed);
  REQUIRE(failed->size() == 1);
  CHECK(failed->begin()->first == 123);
  CHECK_THAT(failed->begin()->second, Catch::Contains(said));
  // No tuple of the failed document counts, not even those emitted before the failure.
  CHECK(rows_of(reduce_all(*application, *table->drain(0))) == sums_by_digit(200, 123));
  CHECK(table->tuples() == 199);
  // The batch and the document end one process each.
  CHECK(world.started() == processes);
}

TEST_CASE("plugin application: the limit on time is one on a document, not on how many come together") {
  PluginOptions options;
  options.call_timeout = milliseconds(1500);
  World world(options);
  const Documents documents(world, 20);
  // Each of 20 views of one document takes 150 ms.
  const std::vector<DocumentView> slow(20, documents.views[7]);
  const auto application = world.make({{"how", "sleeps"}, {"at", "7"}});
  const auto table = make_accumulator(*application);
  const auto failed = map_all(*table, slow);
  REQUIRE(failed);
  CHECK(failed->empty());
  CHECK(world.started() == 1);
}

TEST_CASE("plugin application: the limit on time is one on a key, not on how many come together") {
  PluginOptions options;
  options.call_timeout = milliseconds(1000);
  World world(options);
  const Documents documents(world, 20);
  const std::string how = GENERATE("combine sleeps", "reduce sleeps");
  const auto application = world.make({{"how", how}});
  const auto table = make_accumulator(*application);
  // The table gets ten keys of two values each. To reduce them takes 1.5 s, more than the limit of one call.
  for (const DocumentView& document : documents.views) REQUIRE(table->map_many({&document, 1}));
  CHECK(rows_of(reduce_all(*application, *table->drain(0))) == sums_by_digit(20));
  CHECK(world.started() == 1);
}

TEST_CASE("plugin application: what reduce and combine do wrong fails the task with the reason") {
  const auto [how, said] = GENERATE(table<std::string, std::string>({
      {"reduce throws", "key \"5\": reduce() threw an exception: a bad key"},
      {"reduce crashes", "ended by signal 6"},
      {"two results", "reduce() gave more than one result"},
      {"combine crashes", "ended by signal 6"},
  }));
  World world;
  const Documents documents(world, 20);
  const auto application = world.make({{"how", how}});
  const auto table = make_accumulator(*application);
  // Maps the documents one by one, so that combine() is called only when the tuples are read.
  for (const DocumentView& document : documents.views) REQUIRE(table->map_many({&document, 1}));
  const auto rows = reduce_all(*application, *table->drain(0));
  CAPTURE(how);
  REQUIRE_FALSE(rows);
  CHECK_THAT(rows.error().message(), Catch::Contains(said));
}

TEST_CASE("plugin application: a result is JSON of at most 64 levels, and any other fails the task and nothing else") {
  const auto [how, said] = GENERATE(table<std::string, std::string>({
      {"brackets", "more than 64 objects and arrays"},
      {"nested lists", "more than 64 objects and arrays"},
      {"nested objects", "more than 64 objects and arrays"},
      {"65 levels", "more than 64 objects and arrays"},
      {"zeros", "JSON, byte 0"},
      {"a zero behind", "a zero byte"},
      {"no UTF-8", "not UTF-8"},
      {"two values", "JSON, byte"},
      {"nothing", "JSON, byte"},
  }));
  World world;
  const Documents documents(world, 20);
  const auto application = world.make({{"how", how}});
  const auto table = make_accumulator(*application);
  REQUIRE(map_all(*table, documents.views));
  const auto rows = reduce_all(*application, *table->drain(0));
  CAPTURE(how);
  REQUIRE_FALSE(rows);
  CHECK(rows.error().code() == StatusCode::InvalidArgument);
  CHECK_THAT(rows.error().message(), Catch::Contains(said) && Catch::Contains("for the key 0"));
  CHECK(rows.error().message().size() < 1000);
}

TEST_CASE("plugin application: a result of 64 levels is taken") {
  World world;
  const Documents documents(world, 1);
  const auto application = world.make({{"how", "64 levels"}});
  const auto table = make_accumulator(*application);
  REQUIRE(map_all(*table, documents.views));
  CHECK(reduce_all(*application, *table->drain(0)));
}

TEST_CASE("plugin application: keys without results have none, and headers are enough for who says so") {
  PluginOptions options;
  options.applications_start_at_once = true;
  World world(options);
  const Documents documents(world, 20);
  const auto application = world.make({{"how", "no result"}});
  const auto table = make_accumulator(*application);
  REQUIRE(map_all(*table, documents.views));
  CHECK(rows_of(reduce_all(*application, *table->drain(0))).empty());
  CHECK(application->needs_body());
  CHECK_FALSE(world.make({{"how", "headers"}})->needs_body());
}

TEST_CASE("plugin application: parameters are checked, by the node and, where it starts at once, by the library") {
  PluginOptions options;
  options.applications_start_at_once = true;
  World world(options);
  const auto problem = [&](const Parameters& parameters, const std::string& type = "item") {
    const auto made = world.create(parameters, type);
    REQUIRE_FALSE(made);
    return made.error().message();
  };
  CHECK_THAT(problem({{"where", "1"}}), Catch::Contains("unknown parameter \"where\"; sums takes how, at, combines"));
  CHECK_THAT(problem({{"at", "x"}}), Catch::Contains("the parameter at is \"x\", not an integer"));
  CHECK_THAT(problem({}, "other"), Catch::Contains("the type other has no field count"));
  CHECK(world.started() == 2);
}

TEST_CASE(
    "plugin application: the tasks of a job use each other's processes, and those of another job have their own") {
  World world;
  const Documents documents(world, 50);
  const auto run = [&](const Parameters& parameters) {
    auto application = world.make(parameters);
    const auto table = make_accumulator(*application);
    REQUIRE(map_all(*table, documents.views));
    CHECK(rows_of(reduce_all(*application, *table->drain(0))) == sums_by_digit(50));
    return application;
  };
  auto first = run({});
  CHECK(world.started() == 1);
  run({});
  run({});
  CHECK(world.started() == 2);  // The last two tasks used one process, one after the other.
  run({{"combines", "0"}});
  CHECK(world.started() == 3);
  // A process in which a task was lost is not used again.
  {
    const auto bad = world.make({{"how", "exits"}, {"at", "7"}});
    const auto table = make_accumulator(*bad);
    REQUIRE(map_all(*table, std::span(documents.views).subspan(7, 1)));
    CHECK(world.started() == 4);
  }
  // The idle processes of a job end with its last task.
  first.reset();
  run({});
  CHECK(world.started() == 5);
}

}  // namespace fjord::plugins
