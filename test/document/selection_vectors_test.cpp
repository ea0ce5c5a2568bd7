#include "selection_vectors.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "fjord/document/selection.h"
#include "support/project_files.h"
#include "support/tsv.h"

namespace fjord {
namespace {

using test::Subject;
using test::Suite;
using test::TsvRow;

/// A time between the two that rows of the vector file compare now() with.
constexpr std::int64_t kNow = 1'500'000'000;

bool has(const TsvRow& row, const std::string& construct) {
  const auto parts = test::split(row.at("constructs"), ',');
  return std::find(parts.begin(), parts.end(), construct) != parts.end();
}

/// Returns the feature of a row that need not pass, with the reasons in the table of SELECTION.md; empty if the row has
/// to pass.
std::string left_out(const TsvRow& row, const Subject& subject) {
  const bool is_java = row.at("suite").starts_with("java");
  if (has(row, "imported-field")) return "imported fields";
  if (has(row, "tensor")) return "tensors";
  if (has(row, "variable")) return "variables";
  if (has(row, "searchcolumn")) return "search columns";
  if (has(row, "id.order") || subject.id.starts_with("orderdoc")) return "ordered ids";
  if (row.at("vespa_internal") == "hash-value") return "values of its hash function";
  if (row.at("expected") == "Error") return "errors while evaluating";
  if (is_java && row.at("expected") == "False" && !row.at("differs_in").empty()) return "False for what is Invalid";
  // For these expressions, too, Java returns False; the C++ suites do not have such rows.
  if (is_java && row.at("expression") == "test.mymap == \"a\"") return "False for what is Invalid";
  if (is_java && row.at("expression") == "nonexisting.reallynonexisting") return "False for what is Invalid";
  const std::string& expression = row.at("expression");
  const bool is_misfit = expression.starts_with("test.ia.foo ") || expression.starts_with("test.ia[2] ") ||
                         expression.starts_with("test.aa[2] ") || expression.starts_with("test.aa{4} ");
  if (is_misfit && row.at("expected") == "Invalid") return "paths that no value can take";
  if (row.at("suite") == "cpp2016" && row.at("differs_in") == "Invalid: cpp2026") return "a struct compared in 2016";
  return {};
}

/// Returns the expected result; rows that note a limitation also note the right result.
std::string expected_of(const TsvRow& row) {
  if (row.at("vespa_internal") != "known-limitation") return row.at("expected");
  const std::string marker = "the intended result would be ";
  const std::size_t at = row.at("note").find(marker);
  REQUIRE(at != std::string::npos);
  return row.at("note").substr(at + marker.size());
}

std::string evaluate(const Selection& selection, const TsvRow& row, const Suite& suite, const Subject& subject) {
  if (row.at("target") != "put") {
    return std::string(
        to_string(selection.evaluate_id(subject.id, subject.type.empty() ? 0 : stable_id(subject.type))));
  }
  if (!subject.encoded) return "no document of this id";
  const auto view = DocumentView::open(*suite.types, subject.encoded->header, subject.encoded->body);
  REQUIRE(view);
  const Match match = selection.evaluate(*view);
  // Printing and parsing the selection must not change its result.
  const auto again = Selection::parse(selection.to_string(), *suite.types);
  REQUIRE(again);
  CHECK(again->with_now(kNow).evaluate(*view) == match);
  if (match == Match::True) {
    const auto* types = selection.possible_types();
    if (types != nullptr) CHECK(std::binary_search(types->begin(), types->end(), view->type_id()));
    CHECK(selection.may_match(DocumentId::parse(subject.id)->gid()));
  }
  return std::string(to_string(match));
}

}  // namespace

TEST_CASE("selection vectors: conditions on documents", "[selection][vectors]") {
  const auto path = test::vector_file("selection/cases.tsv");
  const auto suites = test::read_suites(path.parent_path() / "documents.jsonl");
  test::LeftOut left_out_rows("cases.tsv");
  for (const TsvRow& row : test::read_tsv(path)) {
    const Suite& suite = suites.at(row.at("suite"));
    const Subject& subject = suite.subjects.at(row.at("doc"));
    const auto selection = Selection::parse(row.at("expression"), *suite.types);
    const std::string result =
        selection ? evaluate(selection->with_now(kNow), row, suite, subject) : selection.error().message();
    if (result == expected_of(row)) continue;
    INFO(row.at("suite") << " " << row.at("doc") << " " << row.at("target") << ": " << row.at("expression"));
    const std::string what = left_out(row, subject);
    if (what.empty()) CHECK(result == expected_of(row));
    left_out_rows.add(what);
  }
  left_out_rows.check();
}

}  // namespace fjord
