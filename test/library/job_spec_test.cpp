#include "fjord/library/detail/job_spec.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "fjord/common/random.h"

namespace fjord {
namespace {

std::shared_ptr<const DocumentTypeRepo> types() {
  const std::string schema =
      "document totals { field value type string { header } field rows type long { header } }"
      "document page { field text type string { header } field year type int { header } }";
  return DocumentTypeRepo::build(std::span(&schema, 1)).value();
}

Result<rpc::JobSpec> chain(const std::vector<std::string>& then) {
  JobRequest request;
  request.passes.push_back(JobPassRequest::of_application("word_count", "page", "page.year > 2000"));
  request.passes[0].parameters["field"] = "text";
  for (const std::string& json : then) {
    FJORD_TRY_ASSIGN(JobPassRequest pass, JobPassRequest::from_json(json));
    if (pass.aggregation) {
      pass.aggregation->into_namespace = "reports";
      pass.aggregation->name = "words";
    }
    request.passes.push_back(std::move(pass));
  }
  return job_spec_of(request, types());
}

std::string error_of(const std::string& json) {
  const auto spec = chain({json});
  REQUIRE_FALSE(spec);
  return spec.error().message();
}

}  // namespace

TEST_CASE("job request: one pass has the form that distributors of every version understand") {
  JobRequest request;
  request.passes = {JobPassRequest::of_script("function map(page) emit(page.text, 1) end", "page", "page.year > 2000")};
  request.settings = {{"cpu_max", "2"}};
  request.incremental = true;
  request.shuffle = JobShuffle::Direct;
  const auto spec = job_spec_of(request, types());
  REQUIRE(spec);
  CHECK(spec->passes.empty());
  CHECK(spec->application == "script");
  CHECK(spec->document_type == "page");
  CHECK(spec->selection == "page.year > 2000");
  CHECK(spec->parameters == std::vector<rpc::Parameter>{{"script", "function map(page) emit(page.text, 1) end"}});
  CHECK(spec->settings == std::vector<rpc::Parameter>{{"cpu_max", "2"}});
  CHECK(spec->incremental);
  CHECK(spec->shuffle == rpc::Shuffle::Direct);
  CHECK_FALSE(job_spec_of({}, types()));
}

TEST_CASE("job request: an aggregation alone is compiled against its type, and a pass that puts documents is a chain") {
  JobRequest request;
  request.passes = {JobPassRequest::of_aggregation({.type = "page", .group_by = {"year"}, .aggregates = {"count()"}})};
  const auto spec = job_spec_of(request, types());
  REQUIRE(spec);
  CHECK(spec->application == "aggregate");
  CHECK(spec->document_type == "page");
  request.passes[0].aggregation->aggregates = {"count() as rows"};
  request.passes[0].aggregation->group_by = {"text as value"};
  request.passes[0].aggregation->into = "totals";
  const auto putting = job_spec_of(request, types());
  REQUIRE(putting);
  REQUIRE(putting->passes.size() == 1);
  CHECK(putting->passes[0].into.type == "totals");
  CHECK_FALSE(putting->passes[0].into.name.empty());
  request.passes[0].aggregation->group_by = {"colour"};
  CHECK_THAT(job_spec_of(request, types()).error().message(), Catch::Contains("colour"));
  request.passes[0].aggregation->type.clear();
  CHECK(job_spec_of(request, types()).error().code() == StatusCode::InvalidArgument);
}

TEST_CASE("job request: applications have what the text says, and read what the pass before results in") {
  const auto spec = chain(
      {R"json({"application": "word_count", "parameters": {"field": "key"}, "selection": "row.value == 1"})json"});
  REQUIRE(spec);
  REQUIRE(spec->passes.size() == 2);
  CHECK(spec->application.empty());
  CHECK(spec->passes[0].document_type == "page");
  CHECK(spec->passes[0].selection == "page.year > 2000");
  CHECK(spec->passes[1] == rpc::JobPass{"word_count", "", "row.value == 1", {{"field", "key"}}, {}});
}

TEST_CASE("job request: aggregations are compiled against the columns before them, and their rows can be put") {
  const auto spec =
      chain({R"json({"group_by": "value", "aggregates": "count() AS rows", "into": "totals"})json",
             R"json({"aggregates": "sum(rows)"})json", R"json({"group_by": "sum_rows", "aggregates": "count()"})json",
             R"json({"application": "script"})json", R"json({"group_by": "key"})json"});
  REQUIRE(spec);
  REQUIRE(spec->passes.size() == 6);
  CHECK(spec->passes[1].application == "aggregate");
  CHECK(spec->passes[1].document_type == "row");
  CHECK(spec->passes[1].into == rpc::RowTarget{"totals", "reports", "words"});
  CHECK(spec->passes[2].document_type == "totals");
  CHECK(spec->passes[2].into == rpc::RowTarget{});
  CHECK(spec->passes[3].document_type == "row");
  CHECK(spec->passes[5].document_type == "row");
}

TEST_CASE("job request: a script is read from its file") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("fjord-passes-" + std::to_string(Random::from_system().next()));
  std::ofstream(file) << "function map(row) emit(row.value, 1) end";
  const auto spec = chain({R"json({"application": "script", "script": ")json" + file.string() + R"json("})json"});
  std::filesystem::remove(file);
  REQUIRE(spec);
  CHECK(spec->passes[1].parameters ==
        std::vector<rpc::Parameter>{{"script", "function map(row) emit(row.value, 1) end"}});
  CHECK_FALSE(chain({R"json({"application": "script", "script": "/nowhere.lua"})json"}));
}

TEST_CASE("job request: what is wrong is named") {
  CHECK_THAT(error_of("word_count"), Catch::Contains("not a JSON object: word_count"));
  CHECK_THAT(error_of(R"json({"application": "script", "select": "x"})json"),
             Catch::Contains("not a member of a pass, or not of that kind: \"select\""));
  CHECK_THAT(error_of(R"json({"application": "script", "parameters": {"a": 1}})json"),
             Catch::Contains("\"parameters.a\" has to be a string"));
  CHECK_THAT(error_of(R"json({"type": "page", "aggregates": "count()"})json"),
             Catch::Contains("pass 2") && Catch::Contains("it has no \"type\""));
  CHECK_THAT(error_of(R"json({"group_by": "city"})json"), Catch::Contains("city"));
}

TEST_CASE("job info: the figures of a chain are those of each pass, and dead letters are counted once") {
  rpc::JobStatus status;
  status.job_id = "job-1";
  status.spec.passes = {{"a", "page", "", {}, {}}, {"b", "", "", {}, {}}, {"c", "", "", {}, {}}};
  status.phase = rpc::JobPhase::Map;
  status.live = true;
  status.documents_read = 7;
  status.dead_letters = 5;
  status.passes_done.push_back({.documents_read = 10, .dead_letters = 3});
  const JobInfo info = job_info_of(status);
  CHECK(info.state == JobState::Running);
  CHECK(info.is_chain);
  REQUIRE(info.passes.size() == 3);
  CHECK(info.passes[0].state == "done");
  CHECK(info.passes[0].dead_letters == 3);
  CHECK(info.passes[1].state == "map");
  CHECK(info.passes[1].dead_letters == 2);
  CHECK(info.passes[2].state == "waiting");
  CHECK(info.documents_read() == 17);
  CHECK(&info.current() == &info.passes[1]);
  status.phase = rpc::JobPhase::Done;
  status.passes_done.resize(2);
  const JobInfo done = job_info_of(status);
  CHECK(done.state == JobState::Done);
  CHECK(&done.current() == &done.passes[2]);
}

}  // namespace fjord
