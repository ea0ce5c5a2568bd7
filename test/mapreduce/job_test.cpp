#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "mapreduce/job_world.h"

namespace fjord {
namespace {

using test::JobWorld;

constexpr const char* kSchema = R"(document place {
  field city type string { header }
  field size type int { header }
  field big type long { header }
  field price type double { body }
  field tags type array<string> { body }
}
document other { field city type string { header } }
)";

struct Place {
  std::optional<std::string> city;
  std::optional<int> size;
  std::optional<double> price;
};

void put_place(JobWorld& jobs, int n, const Place& place) {
  Document document(*jobs.world.types().find("place"),
                    *DocumentId::parse("id:t:place:n=" + std::to_string(n) + ":" + std::to_string(n)));
  if (place.city) REQUIRE(document.set("city", *place.city).is_ok());
  if (place.size) {
    REQUIRE(document.set("size", *place.size).is_ok());
    REQUIRE(document.set("big", std::int64_t{9'000'000'000'000'000'000} + *place.size).is_ok());
  }
  if (place.price) REQUIRE(document.set("price", *place.price).is_ok());
  jobs.world.put(document);
}

std::map<std::string, std::string> put_places(JobWorld& jobs, int count) {
  std::map<std::string, int> counts;
  for (int i = 0; i < count; ++i) {
    const std::string city = "city " + std::to_string(i * i % 37);
    if (i % 11 == 0) {
      put_place(jobs, i, {std::nullopt, i, 0.5});
      continue;
    }
    put_place(jobs, i, {city, i, 0.1 * i});
    ++counts[city];
  }
  std::map<std::string, std::string> expected;
  for (const auto& [city, n] : counts) expected[city] = std::to_string(n);
  return expected;
}

rpc::JobSpec spec_of(const std::string& application, std::vector<rpc::Parameter> parameters = {}) {
  rpc::JobSpec spec;
  spec.application = application;
  spec.document_type = "place";
  spec.parameters = std::move(parameters);
  return spec;
}

std::map<std::string, std::string> as_map(const Result<std::vector<mapreduce::KeyedResult>>& results) {
  INFO(results.status().to_string());
  REQUIRE(results.has_value());
  return {results->begin(), results->end()};
}

/// An application whose program has to be loaded: how often that was done, and what was wrong with it.
struct Program {
  int loads = 0;
  Status problem;

  void add_to(mapreduce::ApplicationRegistry& registry) {
    struct Loaded final : public mapreduce::Application {
      explicit Loaded(Program& its) : program(its) {}
      Status configure(const mapreduce::ApplicationParameters&, const DocumentType&) override { return Status::ok(); }
      Status load() override {
        ++program.loads;
        return program.problem;
      }
      Status map(const DocumentView&, mapreduce::Emitter&) override { return Status::ok(); }
      Status reduce(std::string_view, std::span<const std::string_view>, mapreduce::ResultEmitter&) override {
        return Status::ok();
      }
      Program& program;
    };
    registry.add({"program", "", {}, [this] { return std::make_unique<Loaded>(*this); }, "", true});
  }
};

TEST_CASE("the program of a job is loaded once, however often the job is submitted meanwhile") {
  JobWorld jobs(1, 3, kSchema);
  Program program;
  program.add_to(jobs.applications);
  std::vector<Status> answers;
  const auto submit = [&](const std::string& id, const std::string& selection) {
    rpc::SubmitJob request{.job_id = id, .spec = spec_of("program")};
    request.spec.selection = selection;
    rpc::call(jobs.world.transport, "distributor", std::move(request), seconds(10), *jobs.world.executor,
              [&](Result<rpc::SubmitJobReply> reply) { answers.push_back(reply ? reply->status : reply.error()); });
  };
  submit("one", "place");
  submit("one", "place");
  submit("one", "other");  // Another job of this name.
  REQUIRE(jobs.world.run_until([&] { return answers.size() == 3; }));
  CHECK(std::count(answers.begin(), answers.end(), Status::ok()) == 2);
  CHECK(program.loads == 1);
  const auto refused = std::find_if(answers.begin(), answers.end(), [](const Status& status) { return !status; });
  REQUIRE(refused != answers.end());
  CHECK(refused->code() == StatusCode::AlreadyExists);
}

TEST_CASE("a job whose program does not load is refused with the reason, and too many wait for no turn") {
  JobWorld jobs(1, 3, kSchema);
  Program program;
  program.problem = Status(StatusCode::InvalidArgument, "script:3: wrong");
  program.add_to(jobs.applications);
  CHECK(jobs.submit("bad", spec_of("program")) == program.problem);
  CHECK(jobs.ask(rpc::ListJobs{.job_id = "bad"}).jobs.empty());
  std::map<StatusCode, int> codes;
  int answers = 0;
  for (int i = 0; i < 40; ++i) {
    rpc::call(jobs.world.transport, "distributor",
              rpc::SubmitJob{.job_id = "j" + std::to_string(i), .spec = spec_of("program")}, seconds(10),
              *jobs.world.executor, [&](Result<rpc::SubmitJobReply> reply) {
                ++codes[reply ? reply->status.code() : reply.error().code()];
                ++answers;
              });
  }
  REQUIRE(jobs.world.run_until([&] { return answers == 40; }));
  CHECK(codes[StatusCode::InvalidArgument] + codes[StatusCode::Busy] == 40);
  CHECK(codes[StatusCode::InvalidArgument] >= 1);
  CHECK(program.loads == 1 + codes[StatusCode::InvalidArgument]);
}

TEST_CASE("citycount counts exactly, leaves nothing behind but results, and says what it did") {
  JobWorld jobs(1, 3, kSchema);
  const auto expected = put_places(jobs, 500);
  REQUIRE(jobs.submit("job1", spec_of("citycount")).is_ok());
  const auto status = jobs.finish("job1");
  INFO(status.error);
  REQUIRE(status.phase == rpc::JobPhase::Done);
  CHECK(as_map(jobs.results(status)) == expected);
  CHECK(status.documents_read == 500);
  CHECK(status.tuples == 454);
  CHECK(status.map_tasks == 16);
  CHECK(status.map_tasks_done == 16);
  CHECK(status.reduce_tasks_done == status.reduce_tasks);
  CHECK(status.results == expected.size());
  CHECK(status.tuple_documents > 0);
  CHECK(status.finished_unix_us > status.submitted_unix_us);
  CHECK(jobs.world.stored("fjord_tuples").empty());
  CHECK(jobs.sink.under_way_max > 1);
}

TEST_CASE("a selection limits the input, and documents of other types are none") {
  JobWorld jobs(2, 2, kSchema);
  put_places(jobs, 100);
  Document other(*jobs.world.types().find("other"), *DocumentId::parse("id:t:other:n=1:x"));
  REQUIRE(other.set("city", "elsewhere").is_ok());
  jobs.world.put(other);
  auto spec = spec_of("citycount");
  spec.selection = "place.size < 10 or place.size == 20";
  REQUIRE(jobs.submit("job", spec).is_ok());
  const auto status = jobs.finish("job");
  CHECK(status.documents_read == 11);
  CHECK_FALSE(as_map(jobs.results(status)).contains("elsewhere"));
}

TEST_CASE("keys that are not plain text have results of their own") {
  JobWorld jobs(3, 1, kSchema);
  put_place(jobs, 1, {"50%", 1, 1.0});
  put_place(jobs, 2, {"50%25", 1, 1.0});
  put_place(jobs, 3, {"", 1, 1.0});
  put_place(jobs, 4, {"Tromsø/Nord:1", 1, 1.0});
  put_place(jobs, 5, {std::string(5000, 'a'), 1, 1.0});
  put_place(jobs, 6, {std::string(5001, 'a'), 1, 1.0});
  REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
  const auto status = jobs.finish("job");
  INFO(status.error);
  const auto results = as_map(jobs.results(status));
  CHECK(results.size() == 6);
  CHECK(results.contains("50%"));
  CHECK(results.contains(""));
  CHECK(results.contains("Tromsø/Nord:1"));
}

TEST_CASE("fieldstats is exact for integers beyond 64 bits and for floating-point numbers in any order") {
  JobWorld jobs(4, 2, kSchema);
  for (int i = 1; i <= 200; ++i) {
    const std::string group = i % 2 == 0 ? "even" : "odd";
    put_place(jobs, i, {group, i, i == 3 ? 1e100 : i == 5 ? -1e100 : 0.1});
  }
  put_place(jobs, 1000, {"nothing", std::nullopt, std::nullopt});
  REQUIRE(jobs.submit("ints", spec_of("fieldstats", {{"group", "city"}, {"value", "big"}})).is_ok());
  REQUIRE(jobs.submit("doubles", spec_of("fieldstats", {{"group", "city"}, {"value", "price"}})).is_ok());
  const auto ints = as_map(jobs.results(jobs.finish("ints")));
  // 100 * 9e18 + (2 + 4 + ... + 200) = 9e20 + 10100
  CHECK(
      ints.at("even") ==
      R"({"count":100,"sum":900000000000000010100,"min":9000000000000000002,"max":9000000000000000200,"avg":9000000000000000000.0})");
  CHECK_FALSE(ints.contains("nothing"));
  const auto doubles = as_map(jobs.results(jobs.finish("doubles")));
  // math.fsum([0.1] * 98) == 9.8 and math.fsum([0.1] * 100) == 10.0
  CHECK(doubles.at("odd") == R"({"count":100,"sum":9.8,"min":-1e100,"max":1e100,"avg":0.098})");
  CHECK(doubles.at("even") == R"({"count":100,"sum":10.0,"min":0.1,"max":0.1,"avg":0.1})");
}

TEST_CASE("noop and heavycpu read everything and give no results") {
  JobWorld jobs(5, 1, kSchema);
  put_places(jobs, 30);
  REQUIRE(jobs.submit("a", spec_of("noop")).is_ok());
  REQUIRE(jobs.submit("b", spec_of("heavycpu", {{"iterations", "1000"}})).is_ok());
  REQUIRE(jobs.submit("c", spec_of("heavycity", {{"iterations", "1000"}})).is_ok());
  for (const char* id : {"a", "b"}) {
    const auto status = jobs.finish(id);
    CHECK(status.phase == rpc::JobPhase::Done);
    CHECK(status.documents_read == 30);
    CHECK(status.results == 0);
    CHECK(as_map(jobs.results(status)).empty());
  }
  CHECK_FALSE(as_map(jobs.results(jobs.finish("c"))).empty());
}

TEST_CASE("the tuple documents are the same bytes whatever order the documents were put in, on whatever nodes") {
  const auto tuples_of = [](std::uint64_t seed, bool backwards) {
    JobWorld jobs(seed, backwards ? 3 : 2, kSchema, {.tuple_document_bytes = 300});
    std::map<std::string, std::string> seen;
    jobs.sink.on_put = [&](const std::string& id, const EncodedDocument& document) {
      if (id.find("fjord_tuples") == std::string::npos) return;
      const std::size_t location = id.find(":n=");  // Only the rest is compared: the beginning depends on the nodes.
      seen[id.substr(id.find(':', location + 1))] = document.body;
    };
    for (int i = 0; i < 300; ++i) {
      const int n = backwards ? 299 - i : i;
      put_place(jobs, n, {"city " + std::to_string(n % 50), n, 0.1 * n});
    }
    auto spec = spec_of("fieldstats", {{"group", "city"}, {"value", "price"}});
    spec.output_buckets = 5;
    REQUIRE(jobs.submit("job", spec).is_ok());
    REQUIRE(jobs.finish("job").phase == rpc::JobPhase::Done);
    return seen;
  };
  const auto first = tuples_of(6, false);
  CHECK(first.size() > 16);
  CHECK(first == tuples_of(7, true));
}

TEST_CASE("a job survives the crash of a node, with an exact result") {
  JobWorld jobs(8, 3, kSchema);
  const auto expected = put_places(jobs, 500);
  const int when = GENERATE(1, 20, 45, 60, 90);
  const bool noticed = GENERATE(true, false);
  bool killed = false;
  jobs.sink.on_put = [&](const std::string&, const EncodedDocument&) {
    if (jobs.sink.puts >= when && !killed) {
      killed = true;
      jobs.world.scheduler.outside().post([&] { jobs.world.kill_node(1, noticed); });
    }
  };
  REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
  const auto status = jobs.finish("job");
  INFO(status.error);
  REQUIRE(killed);
  REQUIRE(status.phase == rpc::JobPhase::Done);
  CHECK(as_map(jobs.results(status)) == expected);
  CHECK(status.documents_read == 500);
}

TEST_CASE("failed writes are repeated with their task; too many fail the job and say why") {
  JobWorld jobs(9, 2, kSchema);
  const auto expected = put_places(jobs, 200);
  SECTION("a few") {
    jobs.sink.failures = 3;
    REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
    const auto status = jobs.finish("job");
    REQUIRE(status.phase == rpc::JobPhase::Done);
    CHECK(status.tasks_repeated > 0);
    CHECK(as_map(jobs.results(status)) == expected);
  }
  SECTION("all") {
    jobs.sink.failures = 1'000'000;
    REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
    const auto status = jobs.finish("job");
    CHECK(status.phase == rpc::JobPhase::Failed);
    CHECK(status.error.message().find("the disk is broken") != std::string::npos);
    CHECK_FALSE(jobs.results(status).has_value());
  }
}

TEST_CASE("a job whose tuple documents are not all there fails instead of giving a part") {
  JobWorld jobs(10, 2, kSchema);
  put_places(jobs, 200);
  bool tampered = false;
  jobs.sink.on_put = [&](const std::string& id, const EncodedDocument&) {
    if (id.find("fjord_tuples") == std::string::npos || tampered) return;
    tampered = true;
    jobs.world.scheduler.outside().post([&, id] { jobs.world.remove(id); });
  };
  REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
  const auto status = jobs.finish("job");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.message().find("failed 5 times, the last time on storage.") != std::string::npos);
  CHECK(jobs.world.stored("fjord_tuples").empty());
}

TEST_CASE("a job one of whose tuple documents lacks a field fails instead of leaving it out") {
  const std::string missing = GENERATE("destination", "tuples");
  JobWorld jobs(15, 2, kSchema);
  put_places(jobs, 200);
  bool tampered = false;
  jobs.sink.on_put = [&](const std::string& id, const EncodedDocument&) {
    if (id.find("fjord_tuples") == std::string::npos || tampered) return;
    tampered = true;
    Document document(*jobs.world.types().find("fjord_tuples"), *DocumentId::parse(id));
    REQUIRE(document.set("job", "job").is_ok());
    if (missing != "destination") REQUIRE(document.set("destination", 0).is_ok());
    if (missing != "tuples") REQUIRE(document.set("tuples", RawValue{}).is_ok());
    jobs.world.scheduler.outside().post([&jobs, document] { jobs.world.put(document); });
  };
  REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
  const auto status = jobs.finish("job");
  REQUIRE(tampered);
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.code() == StatusCode::Corruption);
  CHECK(status.error.message().find("no tuples in it") != std::string::npos);
}

TEST_CASE("results of which one lacks its key or its value are an error") {
  const std::string missing = GENERATE("key", "value");
  JobWorld jobs(16, 1, kSchema);
  const auto expected = put_places(jobs, 50);
  REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
  const auto status = jobs.finish("job");
  REQUIRE(as_map(jobs.results(status)) == expected);
  const auto results = jobs.world.stored("fjord_result");
  const auto& [id, content] = *results.begin();
  const auto whole = DocumentView::open(jobs.world.types(), content.first, content.second);
  REQUIRE(whole);
  Document damaged(*whole->type(), *DocumentId::parse(id));
  for (const std::string field : {"job", "key", "value"}) {
    if (field != missing) REQUIRE(damaged.set(field, std::string(whole->field(field)->as_string_view())).is_ok());
  }
  jobs.world.put(damaged);
  const auto read = jobs.results(status);
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code() == StatusCode::Corruption);
  CHECK(read.error().message() == "malformed result documents");
}

TEST_CASE("results can be read in windows, which have each key once and in order") {
  JobWorld jobs(17, 3, kSchema);
  const auto expected = put_places(jobs, 500);
  auto spec = spec_of("citycount");
  spec.shuffle = GENERATE(rpc::Shuffle::Store, rpc::Shuffle::Direct);
  REQUIRE(jobs.submit("job", spec).is_ok());
  const auto status = jobs.finish("job");
  REQUIRE(status.phase == rpc::JobPhase::Done);
  // A key and its count have up to ten bytes; pages of a distributor count some more for each.
  const std::uint64_t bytes = GENERATE(1, 60, 1'000'000);
  std::vector<mapreduce::KeyedResult> all;
  std::size_t windows = 0;
  for (const auto& window : jobs.windows(status, bytes)) {
    INFO(window.status().to_string());
    REQUIRE(window.has_value());
    if (!window->empty()) ++windows;
    all.insert(all.end(), window->begin(), window->end());
  }
  CHECK(all == std::vector<mapreduce::KeyedResult>(expected.begin(), expected.end()));
  if (bytes == 1) CHECK(windows == expected.size());
  if (bytes == 60) CHECK(windows > 2);
  if (bytes == 1'000'000) CHECK(windows == 1);
}

TEST_CASE("the last window says that results are missing") {
  JobWorld jobs(18, 1, kSchema);
  put_places(jobs, 100);
  REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
  auto status = jobs.finish("job");
  ++status.results;
  const auto windows = jobs.windows(status, 60);
  CHECK(windows.size() > 2);
  REQUIRE_FALSE(windows.back().has_value());
  CHECK(windows.back().error().code() == StatusCode::Corruption);
}

TEST_CASE("a task that needs too much memory fails the job and names the setting") {
  JobWorld jobs(11, 1, kSchema);
  REQUIRE(jobs.world.nodes[0].runtime->tunables.set("mapreduce.task_memory_bytes", 64 << 10).is_ok());
  for (int i = 0; i < 2000; ++i) put_place(jobs, i * 16, {"city number " + std::to_string(i), i, 0.0});
  REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
  const auto status = jobs.finish("job");
  CHECK(status.phase == rpc::JobPhase::Failed);
  CHECK(status.error.code() == StatusCode::TooLarge);
  CHECK(status.error.message().find("mapreduce.task_memory_bytes") != std::string::npos);
}

TEST_CASE("a cancelled job ends within a second and leaves nothing between map and reduce") {
  JobWorld jobs(12, 2, kSchema);
  put_places(jobs, 500);
  bool asked = false;
  jobs.sink.on_put = [&](const std::string&, const EncodedDocument&) {
    if (jobs.sink.puts < 10 || asked) return;
    asked = true;
    rpc::call(jobs.world.transport, "distributor", rpc::CancelJob{.job_id = "job"}, seconds(5), *jobs.world.executor,
              [](const Result<rpc::CancelJobReply>&) {});
  };
  REQUIRE(jobs.submit("job", spec_of("citycount")).is_ok());
  const auto status = jobs.finish("job", seconds(1));
  REQUIRE(asked);
  CHECK(status.phase == rpc::JobPhase::Cancelled);
  CHECK(status.error.code() == StatusCode::Cancelled);
  jobs.world.scheduler.run_for(seconds(1));
  CHECK(jobs.world.stored("fjord_tuples").empty());
  CHECK(jobs.ask(rpc::CancelJob{.job_id = "nonsense"}).status.code() == StatusCode::NotFound);
}

TEST_CASE("jobs beyond the limit wait; submitting again is fine; the oldest finished ones are forgotten") {
  JobWorld jobs(13, 1, kSchema, {}, {.running_max = 1, .finished_kept = 2});
  put_places(jobs, 50);
  for (const char* id : {"a", "b", "c"}) REQUIRE(jobs.submit(id, spec_of("citycount")).is_ok());
  CHECK(jobs.status("c").phase == rpc::JobPhase::Queued);
  CHECK(jobs.submit("c", spec_of("citycount")).is_ok());
  CHECK(jobs.submit("c", spec_of("noop")).code() == StatusCode::AlreadyExists);
  CHECK(jobs.ask(rpc::CancelJob{.job_id = "c"}).status.is_ok());
  CHECK(jobs.status("c").phase == rpc::JobPhase::Cancelled);
  CHECK(jobs.finish("b").phase == rpc::JobPhase::Done);
  const auto left = jobs.ask(rpc::ListJobs{}).jobs;
  CHECK(left.size() == 2);
}

TEST_CASE("what cannot be run is refused when it is submitted, with what is known") {
  JobWorld jobs(14, 1, kSchema);
  const auto refused = [&](const rpc::JobSpec& spec, StatusCode code, const std::string& part) {
    const Status status = jobs.submit("job", spec);
    INFO(status);
    CHECK(status.code() == code);
    CHECK(status.message().find(part) != std::string::npos);
  };
  refused(spec_of("nonsense"), StatusCode::InvalidArgument,
          "aggregate, citycount, fieldstats, heavycity, heavycpu, noop");
  refused(spec_of("citycount", {{"feld", "city"}}), StatusCode::InvalidArgument, "citycount takes field");
  refused(spec_of("citycount", {{"field", "town"}}), StatusCode::InvalidField, "city (string)");
  refused(spec_of("citycount", {{"field", "tags"}}), StatusCode::InvalidField, "array<string>");
  refused(spec_of("fieldstats", {{"group", "city"}}), StatusCode::InvalidArgument, "\"value\" is missing");
  refused(spec_of("fieldstats", {{"group", "city"}, {"value", "city"}}), StatusCode::InvalidField, "price (double)");
  refused(spec_of("heavycpu", {{"iterations", "many"}}), StatusCode::InvalidArgument, "many");
  auto spec = spec_of("citycount");
  spec.selection = "place.nonsense == 1";
  refused(spec, StatusCode::InvalidSelection, "");
  spec = spec_of("citycount");
  spec.document_type = "plaice";
  refused(spec, StatusCode::UnknownType, "place");
  CHECK(jobs.submit("no/name", spec_of("noop")).code() == StatusCode::InvalidArgument);
  CHECK(jobs.ask(rpc::ListJobs{}).jobs.empty());
}

}  // namespace
}  // namespace fjord
