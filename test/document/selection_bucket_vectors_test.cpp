#include <algorithm>
#include <catch2/catch.hpp>

#include "fjord/document/selection.h"
#include "selection_vectors.h"
#include "support/project_files.h"
#include "support/tsv.h"

namespace fjord {
namespace {

using test::TsvRow;

/// True if the selection has the buckets of the row.
bool has_buckets(const Selection& selection, const TsvRow& row) {
  const auto* buckets = selection.possible_buckets();
  if (row.at("bucket_count") == "0") return buckets == nullptr;
  if (buckets == nullptr) return false;
  const bool has_count = row.at("bucket_count").empty() || buckets->size() == std::stoul(row.at("bucket_count"));
  if (row.at("buckets").empty()) return has_count;
  const BucketId member(std::stoull(row.at("buckets"), nullptr, 16));
  return has_count && std::find(buckets->begin(), buckets->end(), member) != buckets->end();
}

}  // namespace

TEST_CASE("selection vectors: the buckets that a selection needs", "[selection][vectors]") {
  const auto path = test::vector_file("selection/bucket_selection.tsv");
  const auto types = test::selection_types("cpp2026");
  test::LeftOut left_out_rows("bucket_selection.tsv");
  for (const TsvRow& row : test::read_tsv(path)) {
    const std::string& text = row.at("expression");
    INFO(row.at("suite") << ": " << text);
    const auto selection = Selection::parse(text, *types);
    if (selection && has_buckets(*selection, row)) continue;
    if (text.starts_with("searchcolumn.")) {
      left_out_rows.add("search columns");
      continue;
    }
    REQUIRE(selection);
    // The row has 58 bits of the location alone, a bucket that does not contain the named document.
    const bool is_wrong = row.at("buckets") == "0xe80000000000007b";
    CHECK(is_wrong);
    const BucketId right = DocumentId::parse("id:ns:testdoc:n=123:foobar")->bucket(BucketId::kUsedBitsMax);
    CHECK(*selection->possible_buckets() == std::vector<BucketId>{right});
    left_out_rows.add("a bucket that the document is not in");
  }
  left_out_rows.check();
}

TEST_CASE("selection vectors: what the name of a document says about a match", "[selection][vectors]") {
  const auto path = test::vector_file("selection/gid_filter.tsv");
  const auto types = test::selection_types("cpp2026");
  test::LeftOut left_out_rows("gid_filter.tsv");
  for (const TsvRow& row : test::read_tsv(path)) {
    INFO(row.at("expression") << " on " << row.at("document_id"));
    const auto selection = Selection::parse(row.at("expression"), *types);
    const auto id = DocumentId::parse(row.at("document_id"));
    REQUIRE(selection);
    REQUIRE(id);
    const bool may_match = selection->may_match(id->gid());
    if (!may_match) CHECK_FALSE(selection->matches_id(id->str()));
    if (may_match == (row.at("might_match") == "yes")) continue;
    // The selection may not miss a match, but Fjord may exclude more buckets than the row does.
    CHECK_FALSE(may_match);
    left_out_rows.add("selections that it does not look into");
  }
  left_out_rows.check();
}

TEST_CASE("selection vectors: selections with the time", "[selection][vectors]") {
  const auto path = test::vector_file("selection/now_conversion.tsv");
  const auto types = test::selection_types("java2026");
  test::LeftOut left_out_rows("now_conversion.tsv");
  for (const TsvRow& row : test::read_tsv(path)) {
    const std::string& text = row.at("expression");
    INFO(text);
    const auto selection = Selection::parse(text, *types);
    REQUIRE(selection);
    CHECK(selection->needs_now() == (text.find("now()") != std::string::npos));
    const bool needs_none = row.at("outcome") == "no now() comparison, needs no conversion";
    CHECK(selection->needs_now() != needs_none);
    if (!needs_none) left_out_rows.add("conversion into queries");
  }
  left_out_rows.check();
}

TEST_CASE("selection vectors: where ordered visits start", "[selection][vectors]") {
  const auto path = test::vector_file("selection/ordering.tsv");
  const auto types = test::selection_types("cpp2016");
  test::LeftOut left_out_rows("ordering.tsv");
  for (const TsvRow& row : test::read_tsv(path)) {
    INFO(row.at("expression"));
    CHECK_FALSE(Selection::parse(row.at("expression"), *types));
    left_out_rows.add("ordered ids");
  }
  left_out_rows.check();
}

}  // namespace fjord
