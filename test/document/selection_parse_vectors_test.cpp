#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <fmt/format.h>
#include <limits>

#include "fjord/document/selection.h"
#include "selection/selection_lexer.h"
#include "selection/selection_node.h"
#include "selection/selection_parser.h"
#include "selection/selection_pattern.h"
#include "selection_vectors.h"
#include "support/project_files.h"
#include "support/tsv.h"

namespace fjord {
namespace {

using test::TsvRow;

/// Reads the operator tree of a row, e.g. "(AND true (NOT (DOCTYPE user)))", and returns it in the explicit form of
/// Printer.
class TreeReader {
 public:
  explicit TreeReader(std::string_view text) : rest_(text) {}

  std::string read() {
    skip_space();
    if (!rest_.starts_with('(')) return read_atom();
    rest_.remove_prefix(1);
    const std::string head = read_atom();
    std::vector<std::string> parts;
    for (skip_space(); !rest_.starts_with(')'); skip_space()) {
      REQUIRE_FALSE(rest_.empty());
      parts.push_back(read());
    }
    rest_.remove_prefix(1);
    return join(head, parts);
  }

 private:
  static std::string join(const std::string& head, const std::vector<std::string>& parts) {
    if (parts.empty()) return head;  // "(x)" stands for the name x.
    if (head == "NOT") return "(not " + parts.at(0) + ")";
    if (head == "DOCTYPE" || head == "ID") return parts.at(0);
    if (head == "FIELD") return parts.at(0) + "." + parts.at(1);
    if (head == "hash" || head == "abs") return parts.at(0) + "." + head + "()";
    const std::string op = head == "AND" ? "and" : head == "OR" ? "or" : head;
    return "(" + parts.at(0) + " " + op + " " + parts.at(1) + ")";
  }
  std::string read_atom() {
    const std::size_t end = std::min(rest_.find_first_of(" )"), rest_.size());
    const std::string atom(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return atom;
  }
  void skip_space() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

std::string explicit_form(const std::string& text, const DocumentTypeRepo& types) {
  const auto root = selection::parse(text, types);
  REQUIRE(root);
  selection::Printer printer;
  printer.is_explicit = true;
  (*root)->print(printer);
  return printer.text;
}

/// Returns the feature of a row that need not pass; empty if the row has to pass.
std::string left_out(const TsvRow& row) {
  const std::string& text = row.at("expression");
  const bool is_java = row.at("suite").starts_with("java");
  if (text.starts_with("$")) return "variables";
  if (text.find("id.order(") != std::string::npos) return "ordered ids";
  if (text.starts_with("searchcolumn.")) return "search columns";
  if (is_java && text.find(".version()") != std::string::npos) return "versions of types";
  if (is_java && text == "music.hmm < aaa") return "the name of a type as a value";
  if (is_java && text.find('\\') != std::string::npos) return "other escapes in strings";
  return {};
}

bool passes(const TsvRow& row, const Result<Selection>& selection) {
  if (selection.has_value() != (row.at("outcome") == "ok")) return false;
  const std::string& canonical = row.at("canonical");
  if (!selection || canonical.empty()) return true;
  const std::string printed = selection->to_string();
  // The suite of 2016 prints keywords in their original case.
  const bool ignores_case = row.at("suite") == "cpp2016";
  return std::equal(printed.begin(), printed.end(), canonical.begin(), canonical.end(),
                    [&](char a, char b) { return a == b || (ignores_case && std::tolower(a) == std::tolower(b)); });
}

std::string repeat(const std::string& unit, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += unit;
  return text;
}

/// A condition that records when it is evaluated.
class Leaf final : public selection::Condition {
 public:
  Leaf(bool value, std::size_t number, std::vector<std::size_t>& asked)
      : value_(value), number_(number), asked_(asked) {}
  Match evaluate(const selection::Context&) const override {
    asked_.push_back(number_);
    return selection::to_match(value_);
  }
  void print(selection::Printer& out) const override { out.text += "leaf"; }

 private:
  bool value_;
  std::size_t number_;
  std::vector<std::size_t>& asked_;
};

/// Parses a text such as "T&F|T", where & binds stronger.
std::unique_ptr<selection::Condition> tree_of(const std::string& text, std::vector<std::size_t>& asked) {
  std::size_t number = 0;
  std::vector<std::unique_ptr<selection::Condition>> alternatives;
  for (const std::string& alternative : test::split(text, '|')) {
    std::vector<std::unique_ptr<selection::Condition>> parts;
    for (const std::string& leaf : test::split(alternative, '&')) {
      parts.push_back(std::make_unique<Leaf>(leaf == "T", number++, asked));
    }
    alternatives.push_back(parts.size() == 1 ? std::move(parts[0]) : selection::make_and(std::move(parts)));
  }
  return alternatives.size() == 1 ? std::move(alternatives[0]) : selection::make_or(std::move(alternatives));
}

}  // namespace

TEST_CASE("selection vectors: what parses, how it is understood and printed", "[selection][vectors]") {
  const auto path = test::vector_file("selection/parse.tsv");
  test::LeftOut left_out_rows("parse.tsv");
  for (const TsvRow& row : test::read_tsv(path)) {
    const std::string& suite = row.at("suite");
    const std::string& text = row.at("expression");
    const auto types = test::selection_types(suite);
    const auto selection = Selection::parse(text, *types);
    INFO(suite << ": " << text << " -> " << selection.status());
    if (passes(row, selection)) {
      if (!row.at("tree").empty()) CHECK(explicit_form(text, *types) == TreeReader(row.at("tree")).read());
      continue;
    }
    const std::string what = left_out(row);
    if (what.empty()) {
      REQUIRE(selection.has_value() == (row.at("outcome") == "ok"));
      CHECK(selection->to_string() == row.at("canonical"));
    }
    left_out_rows.add(what);
  }
  left_out_rows.check();
}

TEST_CASE("selection vectors: number literals", "[selection][vectors]") {
  const auto path = test::vector_file("selection/number_literals.tsv");
  const std::map<std::string, std::int64_t> integers = {
      {"0", 0}, {"INT64_MAX", std::numeric_limits<std::int64_t>::max()}, {"UINT32_MAX", 0xffffffff}};
  for (const TsvRow& row : test::read_tsv(path)) {
    INFO(row.at("kind") << " " << row.at("text"));
    const bool ok = row.at("ok") == "true";
    if (row.at("kind") == "double") {
      const auto value = selection::parse_double(row.at("text"));
      REQUIRE(value.has_value() == ok);
      if (ok)
        CHECK(*value ==
              (row.at("value").starts_with("-std") ? -std::numeric_limits<double>::infinity() : 1.79769e+308));
      continue;
    }
    const auto value = row.at("kind") == "i64" ? selection::parse_integer(row.at("text"))
                                               : selection::parse_hex_integer(row.at("text"));
    REQUIRE(value.has_value() == ok);
    if (ok) CHECK(*value == integers.at(row.at("value")));
  }
}

TEST_CASE("selection vectors: globs match what their regular expressions match", "[selection][vectors]") {
  const auto path = test::vector_file("selection/glob.tsv");
  const std::map<std::string, std::pair<std::vector<std::string>, std::vector<std::string>>> examples = {
      {"foo$", {{"foo", "xfoo"}, {"foox", "", "fo"}}},
      {"", {{"", "a", "ab"}, {}}},
      {"foo", {{"foo", "xfoo", "foox", "xfooy"}, {"", "fo", "xfo"}}},
      {"foo.*bar", {{"foobar", "xfooybarz"}, {"barfoo", "foo", "fobar"}}},
      {"..*..*.", {{"abc", "abcd"}, {"", "a", "ab"}}}};
  for (const TsvRow& row : test::read_tsv(path)) {
    const auto glob = selection::Pattern::glob(row.at("glob"));
    const auto regex = selection::Regex::compile(row.at("regex"));
    REQUIRE((glob && regex));
    selection::Budget budget(1'000'000);
    const auto& [matching, others] = examples.at(row.at("regex"));
    for (const std::string& text : matching) {
      INFO(row.at("glob") << " on " << text);
      CHECK((*glob)->matches(text, budget));
      CHECK((*regex)->matches(text, budget));
      CHECK(selection::glob_matches(text, row.at("glob"), budget));
    }
    for (const std::string& text : others) {
      INFO(row.at("glob") << " on " << text);
      CHECK_FALSE((*glob)->matches(text, budget));
      CHECK_FALSE((*regex)->matches(text, budget));
      CHECK_FALSE(selection::glob_matches(text, row.at("glob"), budget));
    }
  }
}

TEST_CASE("selection vectors: arithmetic", "[selection][vectors]") {
  const auto path = test::vector_file("selection/arithmetic.tsv");
  const auto types = test::selection_types("cpp2026");
  for (const TsvRow& row : test::read_tsv(path)) {
    const bool is_invalid = row.at("result") == "Invalid";
    const std::string right = row.at("right") == "Invalid" ? "('x' * 1)" : row.at("right");
    const std::string text =
        fmt::format("{} {} {} == {}", row.at("left"), row.at("op"), right, is_invalid ? "0" : row.at("result"));
    INFO(text);
    const auto selection = Selection::parse(text, *types);
    REQUIRE(selection);
    CHECK(selection->evaluate_id("id:a:user::b") == (is_invalid ? Match::Invalid : Match::True));
  }
}

TEST_CASE("selection vectors: nesting and size are limited", "[selection][vectors]") {
  const auto path = test::vector_file("selection/limits.tsv");
  const auto suites = test::read_suites(path.parent_path() / "documents.jsonl");
  for (const TsvRow& row : test::read_tsv(path)) {
    INFO(row.at("test"));
    const test::Suite& suite = suites.at(row.at("suite"));
    const std::string text = row.at("prefix") + repeat(row.at("unit"), std::stoi(row.at("count"))) + row.at("suffix");
    const auto selection = Selection::parse(text, *suite.types);
    if (row.at("outcome") == "parse error") {
      REQUIRE_FALSE(selection);
      // A deep path names a member that its type lacks. Other deep input exceeds a limit: "more than", "deeper than".
      const bool is_path = row.at("test") == "recursion_depth_is_bounded_for_field_exprs";
      CHECK_THAT(selection.error().message(), Catch::Contains(is_path ? "has no member 'foo'" : "than"));
      continue;
    }
    REQUIRE(selection);
    const test::Subject& subject = suite.subjects.at(row.at("doc"));
    const auto view = DocumentView::open(*suite.types, subject.encoded->header, subject.encoded->body);
    REQUIRE(view);
    CHECK(std::string(to_string(selection->evaluate(*view))) == row.at("outcome"));
  }
}

TEST_CASE("selection vectors: and, or ask their parts in order and no more than needed", "[selection][vectors]") {
  const auto path = test::vector_file("selection/short_circuit.tsv");
  for (const TsvRow& row : test::read_tsv(path)) {
    INFO(row.at("expression"));
    std::vector<std::size_t> asked;
    const auto root = tree_of(row.at("expression"), asked);
    selection::Scratch scratch;
    CHECK(std::string(to_string(root->evaluate({{}, 0, nullptr, {}, scratch}))) == row.at("result"));
    const auto order = test::split(row.at("order"), ',');
    std::vector<std::size_t> expected(order.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] == "-") continue;
      expected.at(static_cast<std::size_t>(std::stoi(order[i]))) = i;
      ++count;
    }
    expected.resize(count);
    CHECK(asked == expected);
  }
}

}  // namespace fjord
