// Tasks over many documents and keys: real programs in real processes, the engine's groups, no cluster. What scripts
// have in common with plugins: test/conformance/batch_application.

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fjord/scripting/script_application.h"
#include "fjord/sim/sim_env.h"
#include "mapreduce/batch_tasks.h"
#include "task/group_store.h"

namespace fjord::scripting {
namespace {

using mapreduce::Application;
using mapreduce::GroupStore;
using test::map_all;
using test::reduce_all;
using test::Rows;
using test::rows_of;
using Clock = std::chrono::steady_clock;

class World {
 public:
  World() {
    const std::vector<std::string> schemas{
        "document item { field n type int { header } field city type string { header }"
        " field price type double { header } field text type string { body } }"};
    auto built = DocumentTypeRepo::build(schemas);
    REQUIRE(built);
    types = *built;
    add_script_application(registry, {.host = FJORD_SCRIPT_HOST});
  }

  std::unique_ptr<Application> make(const std::string& script, std::vector<rpc::Parameter> parameters = {}) {
    parameters.push_back({"script", script});
    auto made = registry.create("script", parameters, *types->find("item"));
    if (!made) FAIL(made.error().to_string());
    return std::move(*made);
  }

  mapreduce::ApplicationRegistry registry;
  std::shared_ptr<const DocumentTypeRepo> types;
};

/// Documents with n from 0 to `count` - 1, of a hundred cities.
class Documents : public test::BatchDocuments {
 public:
  Documents(const World& world, int count, std::size_t text_bytes = 0)
      : BatchDocuments(*world.types, "item", count, [text_bytes](int i) {
          return fmt::format(R"({{"n": {}, "city": "city {}", "price": {}, "text": "{}"}})", i, i % 100, i * 0.1,
                             std::string(text_bytes, 'x'));
        }) {}
};

const std::string kCount =
    "function reduce(key, values) local n = 0 for _, v in ipairs(values) do n = n + v end return n end\n";
const std::string kAdd = "function combine(key, a, b) return a + b end\n" + kCount;

}  // namespace

TEST_CASE("script task: documents go to the program many at a time, and the result is that of each alone") {
  World world;
  const Documents documents(world, 5000, 10);
  const bool combines = GENERATE(true, false);
  const auto application =
      world.make("function map(doc, emit) emit(doc.fields.city, doc.fields.n) end\n" + (combines ? kAdd : kCount));
  const auto first = application->batches()->map(documents.views, {});
  REQUIRE(first);
  CHECK(first->documents == 5000);
  const auto table = make_accumulator(*application);
  const auto failed = map_all(*table, documents.views);
  REQUIRE(failed);
  CHECK(failed->empty());
  CHECK(table->tuples() == 5000);
  Rows expected;
  for (int city = 0; city < 100; ++city) expected[fmt::format("city {}", city)] = std::to_string(50 * city + 122'500);
  CHECK(rows_of(reduce_all(*application, *table->drain(0))) == expected);
}

TEST_CASE("script task: a repeated task puts the same bytes, though combine depends on the order") {
  World world;
  const Documents documents(world, 20'000);
  // The documents in another order, as another replica has them.
  std::vector<DocumentView> others;
  for (std::size_t i = 0; i < documents.views.size(); ++i) others.push_back(documents.views[(i * 7919 + 1) % 20'000]);
  const std::string combine =
      // A sum such as 0.1 + 0.2 + 0.3 depends on the order.
      GENERATE("function combine(city, a, b) return {n = a.n + b.n, price = a.price + b.price} end",
               "function combine(city, a, b) return {n = a.n .. ' ' .. b.n, price = a.price} end", "");
  const auto application =
      world.make("function map(doc, emit) emit(doc.fields.city, {n = doc.fields.n, price = doc.fields.price}) end\n" +
                 combine + "\nfunction reduce(city, values) return values end");
  sim::SimEnv env;
  mapreduce::SpillArea area(env, "/spill");
  const mapreduce::GroupStoreOptions options{.memory_bytes = 64 << 20, .spill_bytes = 1 << 30, .destinations = 5};
  std::string tuples;
  for (const auto& [given, block] : {std::pair(&documents.views, 20'000u), {&others, 777u}}) {
    GroupStore store(*application, area, options);
    const std::span<const DocumentView> all(*given);
    for (std::size_t at = 0; at < all.size(); at += block) {
      REQUIRE(map_all(store.table(), all.subspan(at, std::min<std::size_t>(block, all.size() - at))));
      REQUIRE(store.keep_within_memory());
    }
    CHECK(store.spilled_bytes() == 0);
    const auto source = store.finish();
    REQUIRE(source);
    const std::string found = test::tuples_of(**source);
    if (tuples.empty()) tuples = found;
    CHECK(found == tuples);
  }
  CHECK(std::count(tuples.begin(), tuples.end(), '\n') == 100);
}

TEST_CASE("script task: a key with a million values is reduced in little memory, exactly") {
  World world;
  const auto application = world.make("function map() end\n" + kAdd);
  sim::SimEnv env;
  mapreduce::SpillArea area(env, "/spill");
  GroupStore store(*application, area, {.memory_bytes = 1 << 20, .spill_bytes = 1 << 30});
  constexpr std::int64_t kValues = 1'000'000;
  std::size_t most = 0;
  std::string value;
  for (std::int64_t i = 0; i < kValues; ++i) {
    value.clear();
    put_string(value, std::to_string(i));
    REQUIRE(store.table().merge("hot", value));
    REQUIRE(store.keep_within_memory());
    most = std::max(most, store.table().bytes());
  }
  CHECK(most <= std::size_t{1} << 20);
  CHECK(store.spilled_bytes() == 0);
  const auto source = store.finish();
  REQUIRE(source);
  CHECK(rows_of(reduce_all(*application, **source)) == Rows{{"hot", std::to_string(kValues * (kValues - 1) / 2)}});
}

TEST_CASE("script task: a document on which the program fails is named with its line, and no other one fails") {
  World world;
  const Documents documents(world, 300);
  const auto [body, said] = GENERATE(table<std::string, std::string>({
      {"error('a bad day')", "script:3: a bad day"},
      {"while true do end", "script:3: took longer than 300 ms"},
      {"local t = {} while true do t[#t + 1] = {} end", "not enough memory: the limit is 16 MB"},
      {"while true do pcall(function() while true do end end) end", "did not return in time; its process was ended"},
      {"('a'):rep(100000):find(('.-'):rep(50) .. 'b')", "did not return in time; its process was ended"},
  }));
  const bool is_memory = said.starts_with("not enough");
  const auto application = world.make(
      "function map(doc, emit) emit(doc.fields.city, 1)\n if doc.fields.n == 7 then\n " + body + "\n end end\n" + kAdd,
      {{"timeout_ms", is_memory ? "60000" : "300"}, {"memory_mb", "16"}});
  const auto table = make_accumulator(*application);
  const auto failed = map_all(*table, documents.views);
  CAPTURE(body);
  REQUIRE(failed);
  REQUIRE(failed->size() == 1);
  CHECK(failed->begin()->first == 7);
  CHECK_THAT(failed->begin()->second, Catch::Contains(said) && Catch::StartsWith("script:"));
  // The tuples of a document that fails later do not count.
  CHECK(table->tuples() == 299);
  const Rows rows = rows_of(reduce_all(*application, *table->drain(0)));
  REQUIRE(rows.size() == 100);
  for (const auto& [city, count] : rows) CHECK(count == (city == "city 7" ? "2" : "3"));
}

TEST_CASE("script task: the limit on time is one on a call of a function, not on how many come together") {
  World world;
  constexpr int kCalls = 100;
  const Documents documents(world, kCalls);
  const std::string loop = "local function take_time(n) for i = 1, n do end end\n";
  // All calls together take three times the limit and the grace; a single one takes a tenth of the limit.
  constexpr std::int64_t kLimitMs = 400, kCallUs = 40'000, kTimedTurns = 1'000'000;
  const auto timed = world.make(fmt::format("{}function map() take_time({}) end\n{}", loop, kTimedTurns, kCount));
  std::int64_t turns_us = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 10; ++i) {
    const auto begin = Clock::now();
    REQUIRE(timed->batches()->map({&documents.views[0], 1}, {}));
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    turns_us = std::min<std::int64_t>(turns_us, std::max<std::int64_t>(took.count(), 1));
  }
  const std::int64_t turns = kTimedTurns * kCallUs / turns_us;
  const std::string slow = GENERATE("map", "combine", "reduce");
  const auto body = [&](const std::string& name) {
    return slow == name ? fmt::format("take_time({}) ", turns) : std::string();
  };
  const auto application =
      world.make(loop + "calls = 0 function map(doc, emit) calls = calls + 1 " + body("map") + "emit(" +
                     (slow == "combine" ? "'k', 1" : "doc.id, calls") + ") end\n" + "function combine(key, a, b) " +
                     body("combine") + "return a + b end\n" + "function reduce(key, values) " + body("reduce") +
                     "return #values == 1 and values[1] end",
                 {{"timeout_ms", std::to_string(kLimitMs)}});
  const auto table = make_accumulator(*application);
  const std::span<const DocumentView> all(documents.views);
  REQUIRE(map_all(*table, all.first(1)));
  const auto failed = map_all(*table, all.subspan(1));
  REQUIRE(failed);
  CHECK(failed->empty());
  const Rows rows = rows_of(reduce_all(*application, *table->drain(0)));
  if (slow == "combine") {
    CHECK(rows == Rows{{"k", std::to_string(kCalls)}});
  } else {
    // One process got all documents: none was ended, which would pass its documents to a new one.
    std::set<int> calls;
    for (const auto& [id, number] : rows) calls.insert(std::stoi(number));
    CHECK(calls.size() == kCalls);
    CHECK(*calls.rbegin() == kCalls);
  }
}

TEST_CASE("script task: an error of combine or reduce fails the task, with the line and the key") {
  World world;
  const Documents documents(world, 300);
  const std::string function = GENERATE("combine", "reduce");
  const auto body = [&](const std::string& name) {
    return name == function ? "if city == 'city 7' then error('no') end\n" : "\n";
  };
  const auto application =
      world.make("function map(doc, emit) emit(doc.fields.city, 1) end\nfunction combine(city, a, b) " +
                 std::string(body("combine")) + "return a + b end function reduce(city, values) " + body("reduce") +
                 "return values end");
  const auto table = make_accumulator(*application);
  REQUIRE(map_all(*table, documents.views));
  const auto rows = reduce_all(*application, *table->drain(0));
  REQUIRE_FALSE(rows);
  CHECK(rows.error().code() == StatusCode::InvalidArgument);
  CHECK_THAT(rows.error().message(), Catch::Contains(function == "combine" ? "script:2: no" : "script:3: no"));
  CHECK_THAT(rows.error().message(), Catch::Contains("key city 7"));
}

TEST_CASE("script task: the limit of CPU time is one of the task, however many processes it takes") {
  World world;
  const Documents documents(world, 3);
  const auto application = world.make(
      "function map(doc) if doc.fields.n == 0 then while true do pcall(function() while true do end end) end end "
      "end\n" +
          kCount,
      {{"timeout_ms", "60000"}, {"cpu_seconds", "1"}});
  const auto table = make_accumulator(*application);
  const auto failed = map_all(*table, documents.views);
  REQUIRE_FALSE(failed);
  CHECK_THAT(failed.error().message(), Catch::Contains("cpu_seconds"));
}

TEST_CASE("script task: the process needs no more memory for many documents than for one") {
  World world;
  const Documents documents(world, 4, std::size_t{1} << 20);
  // The process gets half a gigabyte of address space.
  const auto application =
      world.make("function map(doc, emit) emit('bytes', #doc.fields.text) end\n" + kAdd, {{"memory_mb", "16"}});
  const auto table = make_accumulator(*application);
  for (int i = 0; i < 200; ++i) {
    const auto failed = map_all(*table, documents.views);
    REQUIRE(failed);
    REQUIRE(failed->empty());
  }
  CHECK(rows_of(reduce_all(*application, *table->drain(0))) == Rows{{"bytes", std::to_string(800 << 20)}});
}

}  // namespace fjord::scripting
