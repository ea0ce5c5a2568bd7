#include "commands/job_passes.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "fjord/common/random.h"

namespace fjord::cli {
namespace {

std::shared_ptr<const DocumentTypeRepo> types() {
  const std::string schema = "document totals { field value type string { header } field rows type long { header } }";
  return DocumentTypeRepo::build(std::span(&schema, 1)).value();
}

Result<std::vector<rpc::JobPass>> chain(const std::vector<std::string>& then) {
  return chained_passes({"word_count", "page", "page.year > 2000", {{"field", "text"}}, {}}, then,
                        {{}, "reports", "words"}, types());
}

std::string error_of(const std::string& json) {
  const auto passes = chain({json});
  REQUIRE_FALSE(passes);
  return passes.error().message();
}

}  // namespace

TEST_CASE("chained passes: applications have what the text says, and read what the pass before results in") {
  const auto passes = chain(
      {R"json({"application": "word_count", "parameters": {"field": "key"}, "selection": "row.value == 1"})json"});
  REQUIRE(passes);
  REQUIRE(passes->size() == 2);
  CHECK(passes->at(0).document_type == "page");
  CHECK(passes->at(0).selection == "page.year > 2000");
  CHECK(passes->at(1) == rpc::JobPass{"word_count", "", "row.value == 1", {{"field", "key"}}, {}});
}

TEST_CASE("chained passes: aggregations are compiled against the columns before them, and their rows can be put") {
  const auto passes =
      chain({R"json({"group_by": "value", "aggregates": "count() AS rows", "into": "totals"})json",
             R"json({"aggregates": "sum(rows)"})json", R"json({"group_by": "sum_rows", "aggregates": "count()"})json",
             R"json({"application": "script"})json", R"json({"group_by": "key"})json"});
  REQUIRE(passes);
  REQUIRE(passes->size() == 6);
  CHECK(passes->at(1).application == "aggregate");
  CHECK(passes->at(1).document_type == "row");
  CHECK(passes->at(1).into == rpc::RowTarget{"totals", "reports", "words"});
  CHECK(passes->at(2).document_type == "totals");
  CHECK(passes->at(2).into == rpc::RowTarget{});
  CHECK(passes->at(3).document_type == "row");
  CHECK(passes->at(5).document_type == "row");
}

TEST_CASE("chained passes: a script is read from its file") {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("fjord-passes-" + std::to_string(Random::from_system().next()));
  std::ofstream(file) << "function map(row) emit(row.value, 1) end";
  const auto passes = chain({R"json({"application": "script", "script": ")json" + file.string() + R"json("})json"});
  std::filesystem::remove(file);
  REQUIRE(passes);
  CHECK(passes->at(1).parameters ==
        std::vector<rpc::Parameter>{{"script", "function map(row) emit(row.value, 1) end"}});
  CHECK_FALSE(chain({R"json({"application": "script", "script": "/nowhere.lua"})json"}));
}

TEST_CASE("chained passes: what is wrong is named") {
  CHECK_THAT(error_of("word_count"), Catch::Contains("--then: this is no JSON object: word_count"));
  CHECK_THAT(error_of(R"json({"application": "script", "select": "x"})json"),
             Catch::Contains("pass 2") && Catch::Contains("\"select\" is no member of a pass"));
  CHECK_THAT(error_of(R"json({"application": "script", "parameters": {"a": 1}})json"),
             Catch::Contains("\"parameters.a\" has to be a string"));
  CHECK_THAT(error_of(R"json({"type": "page", "aggregates": "count()"})json"), Catch::Contains("it has no \"type\""));
  CHECK_THAT(error_of(R"json({"group_by": "city"})json"), Catch::Contains("city"));
}

}  // namespace fjord::cli
