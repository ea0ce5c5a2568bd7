// Real libraries of applications in real processes, with the engine's accumulators but without a cluster.

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "fjord/common/log.h"
#include "fjord/document/document_format.h"
#include "fjord/document/json.h"
#include "fjord/mapreduce/passes.h"
#include "fjord/plugins/plugin_directory.h"
#include "task/accumulator.h"
#include "task/key_reducer.h"
#include "task/task.h"

namespace fjord::plugins {
namespace {

using mapreduce::Accumulator;
using mapreduce::Application;
using mapreduce::MappedDocuments;
using Rows = std::map<std::string, std::string>;
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

/// Documents with counts from 0.
class Documents {
 public:
  Documents(const World& world, int count, int text_bytes = 10) : Documents(*world.types, "item", count, text_bytes) {}
  Documents(const DocumentTypeRepo& types, const std::string& type, int count, int text_bytes = 10) {
    for (int i = 0; i < count; ++i) {
      const auto id = DocumentId::parse("id:t:" + type + "::" + std::to_string(i));
      auto encoded = fields_from_json(*types.find(type), *id,
                                      "{\"count\": " + std::to_string(i) + ", \"text\": \"" +
                                          std::string(static_cast<std::size_t>(text_bytes), 'x') + "\"}");
      if (!encoded) FAIL(encoded.error().message());
      encoded_.push_back(std::move(*encoded));
    }
    for (const EncodedDocument& document : encoded_) {
      auto view = DocumentView::open(types, document.header, document.body);
      REQUIRE(view);
      views.push_back(*view);
    }
  }
  std::vector<DocumentView> views;

 private:
  std::vector<EncodedDocument> encoded_;
};

/// Maps the documents as the engine does in a task. Returns number and error of the failed ones.
Result<std::map<std::size_t, std::string>> map_all(Accumulator& table, std::span<const DocumentView> documents) {
  REQUIRE(table.takes_many());
  std::map<std::size_t, std::string> failed;
  std::size_t done = 0;
  while (done < documents.size()) {
    FJORD_TRY_ASSIGN(const MappedDocuments mapped, table.map_many(documents.subspan(done)));
    for (const auto& [document, why] : mapped.failed) failed[done + document] = why.message();
    REQUIRE(mapped.documents > 0);
    done += mapped.documents;
  }
  return failed;
}

/// Checks that each document emits the same tuples alone and together with others.
void check_apart(Application& application, std::span<const DocumentView> documents, std::size_t failed_expected) {
  const auto table = make_accumulator(application);
  std::size_t failed = 0;
  std::size_t most = 0;
  for (std::size_t done = 0; done < documents.size();) {
    const auto mapped = table->map_many_alone(documents.subspan(done));
    REQUIRE(mapped);
    REQUIRE(mapped->ends.size() == mapped->documents);
    failed += mapped->failed.size();
    most = std::max(most, mapped->documents);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < mapped->documents; ++i) {
      std::string alone;
      const bool is_fine = table->map_alone(documents[done + i], alone).is_ok();
      CHECK(mapped->emitted.substr(begin, mapped->ends[i] - begin) == alone);
      CHECK(is_fine == std::none_of(mapped->failed.begin(), mapped->failed.end(),
                                    [&](const auto& one) { return one.document == i; }));
      begin = mapped->ends[i];
    }
    CHECK(begin == mapped->emitted.size());
    done += mapped->documents;
  }
  CHECK(failed == failed_expected);
  CHECK(most > 10);
  CHECK(table->drain(0) != nullptr);
  CHECK(table->groups() == 0);
}

Result<Rows> reduce_all(Application& application, Accumulator& table) {
  Rows rows;
  const auto source = table.drain(0);
  mapreduce::KeyReducer reducer(application, *source);
  std::string key, json;
  for (;;) {
    FJORD_TRY_ASSIGN(const bool more, reducer.next(key, json));
    if (!more) return rows;
    rows[key] = json;
  }
}

Rows expected(int count, int without = -1) {
  std::map<int, long long> sums;
  for (int i = 0; i < count; ++i) {
    if (i != without) sums[i % 10] += i;
  }
  Rows rows;
  for (const auto& [digit, sum] : sums) rows[std::to_string(digit)] = std::to_string(sum);
  return rows;
}

Rows rows_of(const Result<Rows>& result) {
  if (!result) FAIL(result.error().to_string());
  return *result;
}

/// Returns the bytes of all tuples of a table.
std::string tuples_of(Accumulator& table) {
  std::string all;
  mapreduce::Tuple tuple;
  const auto source = table.drain(4);
  for (;;) {
    const auto more = source->next(tuple);
    REQUIRE(more);
    if (!*more) return all;
    all += std::to_string(tuple.destination) + " " + std::string(tuple.key);
    for (const std::string_view value : tuple.values) all += " " + std::string(value);
    all += "\n";
  }
}

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
  CHECK(rows_of(reduce_all(*application, *table)) == expected(20'000));
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
  CHECK(rows_of(reduce_all(**application, *table)) == expected(500));
}

TEST_CASE("plugin application: the tuples of a task are the same bytes, however its documents came together") {
  World world;
  const Documents documents(world, 3000);
  const std::span<const DocumentView> all(documents.views);
  const std::string combines = GENERATE("1", "0");
  const auto application = world.make({{"combines", combines}});
  const auto whole = make_accumulator(*application);
  REQUIRE(map_all(*whole, all));
  const auto pieces = make_accumulator(*application);
  for (std::size_t i = 0; i < all.size(); i += 7) {
    REQUIRE(map_all(*pieces,
                    all.subspan(all.size() - std::min(all.size(), i + 7), std::min<std::size_t>(7, all.size() - i))));
  }
  const std::string tuples = tuples_of(*whole);
  CHECK(tuples_of(*pieces) == tuples);
  if (combines == "1") CHECK(std::count(tuples.begin(), tuples.end(), '\n') == 10);
}

TEST_CASE("plugin application: values that wait to be combined do not pile up") {
  World world;
  const Documents documents(world, 100);
  const auto application = world.make({});
  const auto table = make_accumulator(*application);
  std::size_t most = 0;
  for (int i = 0; i < 60'000; ++i) {
    REQUIRE(table->merge(std::to_string(i % 3), "1"));
    most = std::max(most, table->bytes());
  }
  CHECK(most < std::size_t{512} << 10);
  CHECK(rows_of(reduce_all(*application, *table)) == Rows{{"0", "20000"}, {"1", "20000"}, {"2", "20000"}});
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
  CHECK(rows_of(reduce_all(*application, *table)) == expected(200, 123));
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
  // Ten keys with two values each: 1.5 s.
  for (const DocumentView& document : documents.views) REQUIRE(table->map_many({&document, 1}));
  CHECK(rows_of(reduce_all(*application, *table)) == expected(20));
  CHECK(world.started() == 1);
}

TEST_CASE("plugin application: tuples of documents that go over together can be told from each other") {
  World world;
  const Documents documents(world, 100);
  const auto [how, failed] = GENERATE(table<std::string, std::size_t>({{"", 0}, {"throws", 1}, {"crashes", 1}}));
  const auto application = world.make({{"how", how}, {"at", "37"}});
  check_apart(*application, documents.views, failed);
}

TEST_CASE("plugin application: a task that nobody wants any more ends, whatever map does") {
  World world;
  const Documents documents(world, 10);
  const auto application = world.make({{"how", "loops"}, {"at", "3"}});
  const auto table = make_accumulator(*application, [] { return true; });
  CHECK(map_all(*table, documents.views).status().code() == StatusCode::Cancelled);
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
  // One by one, so that combine() is called only when the tuples are read.
  for (const DocumentView& document : documents.views) REQUIRE(table->map_many({&document, 1}));
  const auto rows = reduce_all(*application, *table);
  CAPTURE(how);
  REQUIRE_FALSE(rows);
  CHECK_THAT(rows.error().message(), Catch::Contains(said));
}

TEST_CASE("plugin application: keys without results have none, and headers are enough for who says so") {
  PluginOptions options;
  options.applications_start_at_once = true;
  World world(options);
  const Documents documents(world, 20);
  const auto application = world.make({{"how", "no result"}});
  const auto table = make_accumulator(*application);
  REQUIRE(map_all(*table, documents.views));
  CHECK(rows_of(reduce_all(*application, *table)).empty());
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
    CHECK(rows_of(reduce_all(*application, *table)) == expected(50));
    return application;
  };
  auto first = run({});
  CHECK(world.started() == 1);
  run({});
  run({});
  CHECK(world.started() == 2);  // One after the other.
  run({{"combines", "0"}});
  CHECK(world.started() == 3);
  // The process that a task was lost with is not used again.
  {
    const auto bad = world.make({{"how", "exits"}, {"at", "7"}});
    const auto table = make_accumulator(*bad);
    REQUIRE(map_all(*table, std::span(documents.views).subspan(7, 1)));
    CHECK(world.started() == 4);
  }
  // The processes of a job end with its last task.
  first.reset();
  run({});
  CHECK(world.started() == 5);
}

TEST_CASE("plugin application: one document or key at a time is the same") {
  World world;
  const Documents documents(world, 30);
  const auto application = world.make({{"how", "throws"}, {"at", "20"}});
  const auto table = make_accumulator(*application);
  int failed = 0;
  for (const DocumentView& document : documents.views) {
    const Status status = table->map(document);
    if (!status) ++failed;
  }
  CHECK(failed == 1);
  Rows rows;
  mapreduce::Tuple tuple;
  const auto source = table->drain(0);
  while (source->next(tuple).value()) {
    const auto row = mapreduce::reduce_key(*application, tuple);
    REQUIRE(row);
    rows[std::string(tuple.key)] = row->value();
  }
  CHECK(rows == expected(30, 20));
}

}  // namespace fjord::plugins
