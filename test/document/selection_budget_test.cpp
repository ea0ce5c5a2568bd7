// Selections that are made to cost as much as possible: what is refused, and what an evaluation may take.

#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <fnmatch.h>
#include <random>

#include "fjord/document/garbage_rules.h"
#include "fjord/document/selection.h"
#include "fjord/document/value_expression.h"
#include "selection/selection_pattern.h"

namespace fjord {
namespace {

std::shared_ptr<const DocumentTypeRepo> repo_of(const std::string& keep_while = {}) {
  const std::string schema =
      "document d {\n  field t type string { header }\n  field p type string { header }\n"
      "  field a type array<string> { header }\n  field m type map<string, int> { header }\n" +
      (keep_while.empty() ? "" : "  keep_while: \"" + keep_while + "\"\n") + "}\n";
  return DocumentTypeRepo::build(std::span(&schema, 1)).value();
}

std::string repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string error_of(const std::string& text) {
  const Result<Selection> selection = Selection::parse(text, *repo_of());
  INFO(text.substr(0, 200));
  REQUIRE_FALSE(selection);
  CHECK(selection.error().code() == StatusCode::InvalidSelection);
  return selection.error().message();
}

/// Processor time of this thread: what else runs on the machine does not count.
double seconds_of_thread() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A bound with room for sanitizers and slow machines; what it stands for is about a millisecond.
constexpr double kSecondsMax = 0.2;

/// A document of the type `d` and what a selection says of it.
class Subject {
 public:
  explicit Subject(const std::function<void(Document&)>& fill) : types_(repo_of()) {
    Document document(*types_->find("d"), DocumentId::parse("id:n:d::1").value());
    fill(document);
    encoded_ = encode(document);
  }
  static Subject with_text(const std::string& text) {
    return Subject([&](Document& document) { REQUIRE(document.set("t", text).is_ok()); });
  }
  DocumentView view() const { return DocumentView::open(*types_, encoded_.header, encoded_.body).value(); }
  const DocumentTypeRepo& types() const { return *types_; }

  Result<Match> ask(const std::string& selection) const {
    const Result<Selection> parsed = Selection::parse(selection, *types_);
    INFO(selection.substr(0, 200) << ": " << parsed.status());
    REQUIRE(parsed);
    Result<Match> answer = Match::Invalid;
    for (int i = 0; i < 3; ++i) {  // Later evaluations find the automaton that earlier ones have filled.
      std::uint64_t steps = 0;
      const double begun = seconds_of_thread();
      answer = parsed->try_evaluate(view(), &steps);
      CHECK(seconds_of_thread() - begun < kSecondsMax);
      if (answer) CHECK(steps <= Selection::kStepsMax);
      if (!answer) CHECK(parsed->evaluate(view()) == Match::Invalid);
    }
    return answer;
  }
  /// The answer may be a refusal.
  void takes_no_longer(const std::string& selection) const { static_cast<void>(ask(selection)); }
  Match must(const std::string& selection) const {
    const Result<Match> answer = ask(selection);
    INFO(answer.status());
    REQUIRE(answer);
    return *answer;
  }
  std::string refusal(const std::string& selection) const {
    const Result<Match> answer = ask(selection);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code() == StatusCode::InvalidSelection);
    return answer.error().message();
  }

 private:
  std::shared_ptr<const DocumentTypeRepo> types_;
  EncodedDocument encoded_;
};

std::string random_text(std::size_t bytes, const std::string& letters, std::uint_fast32_t seed) {
  std::mt19937 random(seed);
  std::string text(bytes, ' ');
  for (char& c : text) c = letters[random() % letters.size()];
  return text;
}

}  // namespace

TEST_CASE("selection budget: regular expressions of large programs are refused", "[selection]") {
  for (const std::string regex :
       {"(a?){900}a{900}b", "(a?){200}a{200}b", "x{600}", "(x{25}){25}", "(ab|cd){150}", "\\\\pL+", "a.{80}c"}) {
    CHECK_THAT(error_of("d.t =~ '" + regex + "'"), Catch::Contains("too large") && Catch::Contains("column 8"));
  }
  CHECK_THAT(error_of("d.t =~ '" + std::string(20'000, 'x') + "'"), Catch::Contains("20000 bytes"));
  CHECK_THAT(error_of("d.t =~ '" + repeat("a{1000}", 2000) + "'"), Catch::Contains("not a regular expression"));
  CHECK_THAT(error_of("d.t =~ 'x'" + repeat(" or d.t =~ 'a{400}'", 5)), Catch::Contains("too large together"));
  // What is useful is taken.
  for (const std::string regex :
       {"^(Blue|Red) ", "a{400}", "\\\\p{Greek}+", "(?i)\\\\bstra(ss|ß)e\\\\b", "\\\\w+@\\\\w+\\\\.com$"}) {
    CHECK(Selection::parse("d.t =~ '" + regex + "'", *repo_of()));
  }
  CHECK(Selection::parse("d.t =~ 'x.*y'" + repeat(" or d.t =~ 'ab*c'", 31), *repo_of()));
}

TEST_CASE("selection budget: parsing what is refused takes little time", "[selection]") {
  const double begun = seconds_of_thread();
  error_of("d.t =~ '" + repeat("a{1000}", 2000) + "'");
  error_of("d.t =~ '" + repeat("(((a{9}){9}){9})", 1000) + "'");
  error_of("d.t =~ 'x'" + repeat(" or d.t =~ 'a{400}'", 31));
  CHECK(seconds_of_thread() - begun < kSecondsMax);
}

TEST_CASE("selection budget: a schema with too large an expression in keep_while is refused", "[selection]") {
  const auto status = GarbageRules::check(*repo_of("d.t =~ '(a?){900}a{900}b'"));
  CHECK(status.code() == StatusCode::InvalidArgument);
  CHECK_THAT(status.message(), Catch::Contains("keep_while") && Catch::Contains("too large"));
  CHECK_FALSE(GarbageRules::check(*repo_of("d.t = '*" + std::string(2000, 'a') + "'")));
}

TEST_CASE("selection budget: a document for which keep_while takes too long is kept", "[selection]") {
  const auto types = repo_of("d.t =~ 'a[ab]{200}c'");
  REQUIRE(GarbageRules::check(*types));
  Document document(*types->find("d"), DocumentId::parse("id:n:d::1").value());
  REQUIRE(document.set("t", random_text(1 << 20, "ab", 1)).is_ok());
  const EncodedDocument encoded = encode(document);
  const DocumentView view = DocumentView::open(*types, encoded.header, encoded.body).value();
  std::uint64_t steps = 0;
  const double begun = seconds_of_thread();
  CHECK_FALSE(GarbageRules(*types, 0).is_garbage(view, &steps));
  CHECK(seconds_of_thread() - begun < kSecondsMax);
  CHECK(steps > Selection::kStepsMax);
}

TEST_CASE("selection budget: regular expressions are right, or refuse the document in about a millisecond",
          "[selection]") {
  const Subject letters = Subject::with_text(random_text(1 << 20, "ab", 2));
  // Each needs more states than the automaton may have.
  for (const std::string regex :
       {"a[ab]{200}c", "a[ab]{400}c", "a[ab]{20}c", "(a|b)*a[ab]{12}c", "a.{40}c", "(a[ab]{15}|b[ab]{17})c"}) {
    CHECK_THAT(letters.refusal("d.t =~ '" + regex + "'"), Catch::Contains("steps for the document id:n:d::1"));
  }
  CHECK(letters.must("d.t =~ 'abab*a'") == Match::True);
  CHECK(letters.must("d.t =~ '(?i)[^ab]|c$'") == Match::False);
  CHECK(Subject::with_text(std::string(1 << 20, 'a')).must("d.t =~ '(a|aa)*(a|a?)*$b'") == Match::False);
  // The fallback of RE2 is there for short texts.
  const std::string short_text = random_text(60, "ab", 3);
  CHECK(Subject::with_text(short_text + "aab").must("d.t =~ 'a[ab]{20}c'") == Match::False);
  CHECK(Subject::with_text("a" + random_text(20, "ab", 4) + "c").must("d.t =~ 'a[ab]{20}c'") == Match::True);
  // A longer text is not looked at.
  const Subject large = Subject::with_text(std::string((1 << 20) + 1, 'a'));
  CHECK_THAT(large.refusal("d.t =~ 'a'"), Catch::Contains("steps"));
  CHECK(large.must("d.t = 'a*a' and d.t = '*' and not d.t = '*b*'") == Match::True);
}

TEST_CASE("selection budget: many expressions cost no more than one", "[selection]") {
  const Subject letters = Subject::with_text(random_text(40'000, "ab", 5));
  std::string all = "d.t =~ 'x'";
  for (int i = 1; i < Selection::kRegexesMax; ++i) all += " or d.t =~ 'a[ab]{" + std::to_string(i) + "}c'";
  letters.takes_no_longer(all);
  std::vector<FieldValue> texts;
  for (std::uint32_t i = 0; i < 20'000; ++i) texts.emplace_back(random_text(50, "ab", i));
  const Subject array([&](Document& document) { REQUIRE(document.set("a", ArrayValue{texts}).is_ok()); });
  array.takes_no_longer("d.a =~ 'a[ab]{30}c'");
  array.takes_no_longer("d.a =~ 'x'");
}

TEST_CASE("selection budget: globs are limited to a kibibyte, texts without wildcards are not", "[selection]") {
  const std::string long_text(100'000, 'a');
  for (const std::string& glob : {"*" + long_text + "?b", "*" + std::string(1024, 'a'), std::string(1025, '?')}) {
    CHECK_THAT(error_of("d.t = '" + glob + "'"), Catch::Contains("expected at most 1024"));
  }
  const Subject subject = Subject::with_text(long_text);
  CHECK(subject.must("d.t = '" + long_text + "'") == Match::True);
  CHECK(subject.must("d.t = '" + long_text + "b'") == Match::False);
  CHECK(subject.must("d.t = '*" + std::string(1023, 'a') + "'") == Match::True);
}

TEST_CASE("selection budget: a search by a glob takes time in proportion to the text", "[selection]") {
  const Subject letters = Subject::with_text(std::string(400'000, 'a'));
  // Each took (text) x (glob) before.
  CHECK(letters.must("d.t = '*" + std::string(1000, 'a') + "b*'") == Match::False);
  CHECK(letters.must("d.t = '" + repeat("*aaab", 200) + "*'") == Match::False);
  CHECK(letters.must("d.t = '" + repeat("*a", 500) + "*'") == Match::True);
  CHECK(letters.must("d.t = '*aaaaaaaaaaaaaaaaaaaaaaaaaa?b'") == Match::False);
  CHECK(letters.must("d.t = '*aaaaaaaaaaaaaaaaaaaaaaaaaa?a'") == Match::True);
  letters.takes_no_longer("d.t = '*" + std::string(1000, 'a') + "?b'");
  letters.takes_no_longer("d.t = '" + std::string(1000, '?') + "*'");
  // A glob in another field is no constant.
  const Subject both([](Document& document) {
    REQUIRE(document.set("t", std::string(400'000, 'a')).is_ok());
    REQUIRE(document.set("p", "*" + std::string(100'000, 'a') + "?b").is_ok());
  });
  CHECK_THAT(both.refusal("d.t = d.p"), Catch::Contains("steps"));
  CHECK(both.must("d.t = d.t") == Match::True);
}

TEST_CASE("selection budget: globs match what fnmatch() of the C library matches", "[selection]") {
  std::mt19937 random(7);
  int matching = 0;
  for (int i = 0; i < 30'000; ++i) {
    const std::string text = random_text(random() % 12, "ab", random());
    std::string glob = random_text(random() % 8, "ab*?", random());
    if (i % 10 == 0) glob = "*" + random_text(70, "ab?", random()) + "*" + glob;
    const std::string padded = i % 10 == 0 ? glob.substr(1, 70) + text : text;
    std::string shown = padded;
    std::replace(shown.begin(), shown.end(), '?', 'a');
    const bool expected = ::fnmatch(glob.c_str(), shown.c_str(), 0) == 0;
    matching += expected ? 1 : 0;
    INFO(glob << " on " << shown);
    selection::Budget budget(1'000'000);
    REQUIRE(selection::glob_matches(shown, glob, budget) == expected);
    REQUIRE_FALSE(budget.is_exceeded());
  }
  CHECK(matching > 3000);
}

TEST_CASE("selection budget: the question mark is one character, whatever its bytes", "[selection]") {
  selection::Budget budget(1'000'000);
  for (const auto& [text, glob, expected] : std::vector<std::tuple<std::string, std::string, bool>>{
           {"为什", "??", true},   {"为什", "???", false}, {"为什", "?", false},      {"为", "?", true},
           {"a为b", "a?b", true},  {"a为b", "*?b", true},  {"为", "*??", false},      {"为什么", "*??", true},
           {"为什", "?什*", true}, {"xä", "*?", true},     {"ää", "*???", false},     {"ä", "?*", true},
           {"\xc3", "?", true},    {"\xa4", "?", true},    {"\xa4\xa4", "??", false}, {"", "?", false},
           {"äöü", "??ü", true},   {"äöü", "?ü", false},   {"€uro", "?uro", true},    {"🎈", "?", true}}) {
    INFO(glob << " on " << text);
    CHECK(selection::glob_matches(text, glob, budget) == expected);
  }
}

TEST_CASE("selection budget: other work counts, too", "[selection]") {
  const Subject large = Subject::with_text(std::string(4 << 20, 'x'));
  CHECK(large.must("d.t.hash() != 1") == Match::True);
  CHECK_THAT(large.refusal("d.t.hash() == 1" + repeat(" or d.t.hash() == 1", 3000)), Catch::Contains("steps"));
  CHECK_THAT(large.refusal("d.t == 'y'" + repeat(" or d.t + d.t == 'y'", 3000)), Catch::Contains("steps"));
  CHECK_THAT(large.refusal("d.t = '*y*'" + repeat(" or d.t = '*y*'", 3000)), Catch::Contains("steps"));
  const Subject keys([](Document& document) {
    MapValue map;
    for (int i = 0; i < 100'000; ++i) map.entries.emplace_back(FieldValue("k" + std::to_string(i)), FieldValue(i));
    REQUIRE(document.set("m", map).is_ok());
  });
  CHECK(keys.must("d.m{k99999} == 99999") == Match::True);
  CHECK_THAT(keys.refusal("d.m{none} == 1" + repeat(" or d.m{none} == 1", 3000)), Catch::Contains("steps"));
  CHECK_THAT(keys.refusal("d.m.value == -1" + repeat(" or d.m.value == -1", 3000)), Catch::Contains("steps"));
  CHECK_THAT(keys.refusal("d.m != d.m" + repeat(" or d.m != d.m", 3000)), Catch::Contains("steps"));
}

TEST_CASE("selection budget: an id is a text like others", "[selection]") {
  const Selection selection = Selection::parse("id.specific =~ 'a[ab]{200}c'", *repo_of()).value();
  std::uint64_t steps = 0;
  const double begun = seconds_of_thread();
  CHECK(selection.evaluate_id("id:n:d::" + random_text(60'000, "ab", 9), 0, &steps) == Match::Invalid);
  CHECK(seconds_of_thread() - begun < kSecondsMax);
  CHECK(steps > 60'000);
}

TEST_CASE("selection budget: the value of an expression that takes too long is absent", "[selection]") {
  const Subject large = Subject::with_text(std::string(8 << 20, 'x'));
  const auto value_of = [&](const std::string& text) {
    const auto value = ValueExpression::compile(text, large.types(), *large.types().find("d")).value();
    ValueExpression::Scratch scratch;
    return value.evaluate(large.view(), scratch).kind;
  };
  CHECK(value_of("t.hash()") == ScalarView::Kind::Integer);
  const double begun = seconds_of_thread();
  CHECK(value_of("t.hash()" + repeat(" + t.hash()", 5000)) == ScalarView::Kind::Absent);
  CHECK(seconds_of_thread() - begun < 10);
}

}  // namespace fjord
