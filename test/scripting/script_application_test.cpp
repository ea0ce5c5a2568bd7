// Real programs in real processes, without a cluster.

#include "fjord/scripting/script_application.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include "fjord/common/processor_time.h"
#include "fjord/document/document_format.h"
#include "fjord/document/json.h"

namespace fjord::scripting {
namespace {

using mapreduce::Application;
using mapreduce::Emitter;
using mapreduce::KeyedValues;
using mapreduce::ResultEmitter;

class Tuples final : public Emitter {
 public:
  void emit(std::string_view key, std::string_view value) override { all.emplace_back(key, value); }
  bool cancelled() const override { return is_cancelled; }
  std::vector<std::pair<std::string, std::string>> all;
  bool is_cancelled = false;
};

class Only final : public ResultEmitter {
 public:
  void emit(std::string json) override {
    REQUIRE(text.empty());
    text = std::move(json);
  }
  std::string text;
};

class World {
 public:
  explicit World(ScriptOptions options = {}) {
    const std::vector<std::string> schemas{
        "document item { field city type string { header } field n type int { header }"
        " field price type double { body } field tags type array<string> { body } }"};
    auto built = DocumentTypeRepo::build(schemas);
    REQUIRE(built);
    types = *built;
    options.host = FJORD_SCRIPT_HOST;
    add_script_application(registry, options);
  }

  Result<std::unique_ptr<Application>> create(const std::string& script, std::vector<rpc::Parameter> more = {}) {
    more.push_back({"script", script});
    return registry.create("script", more, *types->find("item"));
  }
  std::unique_ptr<Application> make(const std::string& script, std::vector<rpc::Parameter> more = {}) {
    auto made = create(script, std::move(more));
    if (!made) FAIL(made.error().to_string());
    return std::move(*made);
  }

  Status map(Application& application, const std::string& fields, Tuples& tuples) {
    const auto id = DocumentId::parse("id:t:item::1");
    const auto encoded = fields_from_json(*types->find("item"), *id, fields);
    if (!encoded) FAIL(encoded.error().to_string());
    const auto view = DocumentView::open(*types, encoded->header, encoded->body);
    REQUIRE(view);
    return application.map(*view, tuples);
  }
  Status map(Application& application, const std::string& fields = R"({"n": 1})") {
    Tuples tuples;
    return map(application, fields, tuples);
  }

  mapreduce::ApplicationRegistry registry;
  std::shared_ptr<const DocumentTypeRepo> types;
};

std::string result_of(Application& application, const std::string& key, const std::vector<std::string>& values) {
  std::vector<std::string_view> views(values.begin(), values.end());
  Only only;
  const Status status = application.reduce(key, views, only);
  if (!status) FAIL(status.to_string());
  return only.text;
}

const std::string kReduce = "function reduce(key, values) return values end\n";

}  // namespace

TEST_CASE("script: map, combine and reduce compute what they say, however the values were put together") {
  World world;
  const auto application = world.make(R"(
    function map(doc, emit) emit(doc.fields.city, {n = 1, sum = doc.fields.price}) end
    function combine(key, a, b) return {n = a.n + b.n, sum = a.sum + b.sum} end
    function reduce(key, values)
      local all = {n = 0, sum = 0}
      for _, v in ipairs(values) do all = combine(key, all, v) end
      return {city = key, mean = all.sum / all.n, documents = all.n}
    end)");
  std::map<std::string, std::vector<std::string>> apart;
  std::map<std::string, std::string> together, packed;
  for (int i = 0; i < 1200; ++i) {
    Tuples tuples;
    REQUIRE(world.map(*application, fmt::format(R"({{"city": "c{}", "price": {}.5}})", i % 2, i), tuples));
    REQUIRE(tuples.all.size() == 1);
    const auto& [key, value] = tuples.all[0];
    apart[key].push_back(value);
    packed[key] += value;  // As storage nodes that combine without batches do.
  }
  for (const auto& [key, values] : apart) {
    for (const std::vector<std::string>& one_by_one : {values, {packed[key]}}) {
      const std::vector<std::string_view> views(one_by_one.begin(), one_by_one.end());
      const KeyedValues given{key, views};
      std::vector<std::string> combined;
      REQUIRE(application->batches()->combine(
          {&given, 1}, [&](std::size_t, std::string_view value) { combined.emplace_back(value); }));
      REQUIRE(combined.size() == 1);
      CHECK(combined[0].size() < 50);
      together[key] = combined[0];
    }
  }
  CHECK(result_of(*application, "c0", {together["c0"]}) == R"({"city":"c0","documents":600,"mean":599.5})");
  CHECK(result_of(*application, "c1", {together["c1"]}) == R"({"city":"c1","documents":600,"mean":600.5})");
  CHECK(result_of(*application, "c1", apart["c1"]) == R"({"city":"c1","documents":600,"mean":600.5})");
  CHECK(result_of(*application, "c1", {packed["c1"]}) == R"({"city":"c1","documents":600,"mean":600.5})");
}

TEST_CASE("script: values keep what they are, keys are text, and a key without a result has none") {
  World world;
  const auto application = world.make(R"(
    function map(doc, emit)
      emit(1, doc.fields.tags); emit(true, 1.0); emit("s", {b = {1, 2.5, "x"}, a = false}); emit(doc.id, doc.fields)
    end
    function reduce(key, values) if key ~= "none" then return values end end)");
  Tuples tuples;
  REQUIRE(world.map(*application, R"({"tags": ["ä", "b"], "price": 0.1, "n": -3})", tuples));
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : tuples.all) found[key] = result_of(*application, key, {value});
  CHECK(found["1"] == R"([["ä","b"]])");
  CHECK(found["true"] == "[1.0]");
  CHECK(found["s"] == R"([{"a":false,"b":[1,2.5,"x"]}])");
  CHECK(found["id:t:item::1"] == R"([{"n":-3,"price":0.1,"tags":["ä","b"]}])");
  CHECK(result_of(*application, "none", {tuples.all[0].second}).empty());
  for (const std::string number : {"0.11935319286735585", "0.8884203124557092", "0.9989203065008682",
                                   "1.7976931348623157e308", "2.2250738585072014e-308"}) {
    Tuples exact;
    REQUIRE(world.map(*application, R"({"price": )" + number + "}", exact));
    CHECK(result_of(*application, "k", {exact.all.back().second}) == R"([{"price":)" + number + "}]");
  }
  CHECK(application->needs_body());
  CHECK_FALSE(world.make("header_only = true function map() end " + kReduce)->needs_body());
}

TEST_CASE("script: what is wrong with a program is said with its line, when the job is submitted") {
  World world;
  const auto wrong = [&](const std::string& script) {
    const auto made = world.create(script);
    REQUIRE_FALSE(made);
    CHECK(made.error().code() == StatusCode::InvalidArgument);
    return made.error().message();
  };
  CHECK_THAT(wrong("x = 1\nfunction map(\n"), Catch::StartsWith("script:3:"));
  CHECK_THAT(wrong(kReduce), Catch::Contains("there is no function map"));
  CHECK_THAT(wrong("\n\nerror('no')"), Catch::Contains("script:3: no"));
  CHECK_THAT(wrong("\033Lua"), Catch::Contains("attempt to load a binary chunk"));
  CHECK_THAT(wrong("while true do end"), Catch::Contains("took longer than 1000 ms"));
}

TEST_CASE("script: an error fails its document, and the next one is computed") {
  World world;
  const auto application = world.make(
      "function map(doc, emit)\n if doc.fields.n == 7 then error('seven') end\n"
      " emit('k', doc.fields.n) end " +
      kReduce);
  const Status failed = world.map(*application, R"({"n": 7})");
  CHECK(failed.code() == StatusCode::InvalidArgument);
  CHECK_THAT(failed.message(), Catch::Contains("script:2: seven"));
  CHECK(world.map(*application, R"({"n": 8})"));
  for (const std::string value : {"print", "0/0", "{[{}] = 1}", "{1, x = 2}"}) {
    CAPTURE(value);
    CHECK_FALSE(
        world.map(*world.make("function map(doc, emit) emit('k', " + value + " or function() end) end " + kReduce)));
  }
  CHECK_FALSE(world.map(*world.make("function map(doc, emit) emit(nil, 1) end " + kReduce)));
  CHECK_FALSE(world.map(*world.make("function map(doc, emit) local t = {} t.t = t emit('k', t) end " + kReduce)));
}

TEST_CASE("script: a text cut within a character fails its document, and says why") {
  World world;
  for (const char* call : {"emit(doc.id, doc.fields.city:sub(1, 1))", "emit(doc.fields.city:sub(1, 1), 1)",
                           "emit('k', {doc.fields.city:sub(2)})", "emit('k', {[doc.fields.city:sub(2)] = 1})"}) {
    INFO(call);
    const auto application =
        world.make(std::string("function map(doc, emit)\n  ") + call + "\nend\nfunction reduce(k, v) return v[1] end");
    Tuples tuples;
    const Status cut = world.map(*application, "{\"city\": \"\xc3\xa9\"}", tuples);
    CHECK_FALSE(cut);
    CHECK_THAT(cut.message(), Catch::Contains("not UTF-8") && Catch::Contains(":2:"));
    CHECK(tuples.all.empty());
    CHECK(world.map(*application, R"({"city": "ab"})", tuples));
    CHECK(tuples.all.size() == 1);
  }
}

TEST_CASE("script: a program that loops or takes too much memory is ended, one that cannot be is killed") {
  World world;
  const std::vector<rpc::Parameter> short_time{{"timeout_ms", "50"}};
  const std::vector<rpc::Parameter> little{{"memory_mb", "16"}, {"timeout_ms", "60000"}};
  const auto message = [&](const std::vector<rpc::Parameter>& limits, const std::string& body) {
    const auto application = world.make("function map(doc, emit) " + body + " end " + kReduce, limits);
    const Status status = world.map(*application);
    CHECK(status.code() == StatusCode::InvalidArgument);
    return status.message();
  };
  CHECK_THAT(message(short_time, "while true do end"), Catch::StartsWith("script:1: took longer than 50 ms"));
  CHECK_THAT(message(short_time, "while true do pcall(function() while true do end end) end"),
             Catch::Contains("did not return in time"));
  CHECK_THAT(message(short_time, "('a'):rep(100000):find(('.-'):rep(50) .. 'b')"), Catch::Contains("in time"));
  CHECK_THAT(message(little, "local t = {} while true do t[#t + 1] = 'x' .. #t end"),
             Catch::Contains("not enough memory: the limit is 16 MB"));
  CHECK_THAT(message(little, "emit('k', ('x'):rep(1 << 40))"), Catch::StartsWith("script:"));
  CHECK_THAT(message(little, "for i = 1, 100 do emit('k', ('x'):rep(1 << 20)) end"),
             Catch::Contains("more than 16 MB for one document"));
}

TEST_CASE("script: what processors work for its program counts where it is waited for") {
  World world;
  const auto application = world.make("function map(doc)\n  for i = 1, 10000000 do end\nend\nfunction reduce() end",
                                      {{"timeout_ms", "60000"}});
  const Duration begin = processor_time();
  REQUIRE(world.map(*application).is_ok());
  CHECK(processor_time() - begin > milliseconds(5));  // The loop takes more than 5 ms, in which this thread only waits.
}

TEST_CASE("script: a cancelled job does not wait for its program") {
  World world;
  const auto application =
      world.make("function map(doc, emit) while true do end end " + kReduce, {{"timeout_ms", "3600000"}});
  Tuples tuples;
  tuples.is_cancelled = true;
  CHECK(world.map(*application, R"({"n": 1})", tuples).code() == StatusCode::Cancelled);
}

TEST_CASE("script: nothing is there by which a program could reach files, other programs, or chance") {
  World world;
  const auto application = world.make(
      "function map(doc, emit) for _, n in ipairs({'io', 'os', 'package', 'debug', 'coroutine', 'require', 'load', "
      "'dofile',"
      " 'loadfile', 'print'}) do if _ENV[n] ~= nil then emit(n, 1) end end"
      " if math.random or string.dump then emit('more', 1) end end " +
      kReduce);
  Tuples tuples;
  REQUIRE(world.map(*application, R"({"n": 1})", tuples));
  CHECK(tuples.all.empty());
}

TEST_CASE("script: the lines outside its functions have a second, whatever the submitter permits") {
  const auto begun = std::chrono::steady_clock::now();
  World world;
  const auto loops = world.create("while true do end\nfunction map(doc) end\n" + kReduce,
                                  {{"timeout_ms", "3600000"}, {"cpu_seconds", "1000"}});
  REQUIRE_FALSE(loops);
  CHECK(loops.error().message() == "script:1: took longer than 1000 ms");
  // Calls that Lua does not interrupt end with their process.
  CHECK_FALSE(world.create("string.rep('x', 1 << 24):find(string.rep('x?', 1 << 12) .. 'y')\n" + kReduce,
                           {{"timeout_ms", "3600000"}}));
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(30));
}

TEST_CASE("script: where others share the thread, configure() starts nothing, and load() says what is wrong") {
  World world({.starts_at_once = false, .call_max = seconds(2)});
  const auto wrong = world.make("while true do end");
  CHECK_THAT(wrong->load().message(), Catch::Contains("took longer than 1000 ms"));
  CHECK_THAT(world.make("function map(doc) end")->load().message(), Catch::Contains("no function reduce"));
  const auto right = world.make("function map(doc, emit) emit('k', 1) end\n" + kReduce);
  CHECK(right->load());
  CHECK(result_of(*world.make("function map(doc) end\n" + kReduce), "k", {}) == "{}");
  // A call of a function has at most call_max here.
  const auto slow = world.make("function map(doc) while true do end end\n" + kReduce, {{"timeout_ms", "3600000"}});
  CHECK_THAT(world.map(*slow).message(), Catch::Contains("took longer than 2000 ms"));
}

TEST_CASE("script: the scripts of a node have so much memory together as a setting says") {
  TunableRegistry tunables;
  Tunable& limit = tunables.declare("mapreduce.script_memory_bytes");
  World world({.memory_bytes = &limit});
  const std::string script = "function map(doc, emit) emit('k', 1) end\n" + kReduce;
  // The default of memory_mb is 64, and a process counts as 16 MiB.
  REQUIRE(limit.set(std::int64_t{200} << 20));
  auto first = world.make(script);
  const auto second = world.make(script);
  const auto third = world.create(script);
  REQUIRE_FALSE(third);
  CHECK(third.error().code() == StatusCode::Busy);
  CHECK(third.error().setting() == "mapreduce.script_memory_bytes");
  REQUIRE(world.map(*second));
  first.reset();
  CHECK(world.create(script));
  // A script that would not fit alone is refused for good.
  const auto large = world.create(script, {{"memory_mb", "500"}});
  REQUIRE_FALSE(large);
  CHECK(large.error().code() == StatusCode::InvalidArgument);
  CHECK_THAT(large.error().message(), Catch::Contains("memory_mb is 500"));
  REQUIRE(limit.set(0));
  CHECK_FALSE(world.create(script));
}

TEST_CASE("script: a process that is replaced keeps its share of the memory") {
  TunableRegistry tunables;
  Tunable& limit = tunables.declare("mapreduce.script_memory_bytes");
  REQUIRE(limit.set(std::int64_t{80} << 20));
  World world({.memory_bytes = &limit});
  const auto loops =
      world.make("function map(doc) string.rep('x', 1 << 24):find(string.rep('x?', 1 << 12) .. 'y') end\n" + kReduce,
                 {{"timeout_ms", "100"}});
  for (int i = 0; i < 2; ++i) CHECK_FALSE(world.map(*loops));
  CHECK_FALSE(world.create("function map(doc) end\n" + kReduce));
}

}  // namespace fjord::scripting
