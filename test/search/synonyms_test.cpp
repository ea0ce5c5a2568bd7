#include "fjord/search/synonyms.h"

#include <catch2/catch.hpp>
#include <set>

namespace fjord::search {
namespace {

using Texts = std::vector<std::string>;

Texts forms_of(const Synonyms& synonyms, const std::string& query) {
  std::vector<QueryVariant> forms = *parse_query(query);
  synonyms.add_forms(forms);
  Texts texts;
  for (const QueryVariant& form : forms) texts.push_back(form.text());
  return texts;
}

TEST_CASE("terms of a line stand for each other, whole words only, of any length") {
  const auto synonyms = Synonyms::parse("# terms\n\nCheap, low cost , inexpensive # three\r\nhotel, motel\n");
  REQUIRE(synonyms);
  CHECK(synonyms->terms() == 5);
  CHECK(forms_of(*synonyms, "motels") == Texts{"motels"});
  CHECK(forms_of(*synonyms, "a MOTEL") == Texts{"a motel", "a hotel"});
  CHECK(forms_of(*synonyms, "low cost bed") == Texts{"low cost bed", "cheap bed", "inexpensive bed"});
  CHECK(forms_of(*synonyms, "low bed cost") == Texts{"low bed cost"});
}

TEST_CASE("several terms of a query are replaced together, fewer first, and each form is there once") {
  const auto synonyms = Synonyms::parse("cheap, low cost\nhotel, motel\n");
  REQUIRE(synonyms);
  CHECK(forms_of(*synonyms, "cheap hotel") == Texts{"cheap hotel", "low cost hotel", "cheap motel", "low cost motel"});
}

TEST_CASE("synonyms are found without diacritics too, and have forms without them") {
  const auto synonyms = Synonyms::parse("kun, oř\n");
  REQUIRE(synonyms);
  CHECK(forms_of(*synonyms, "bílý kůň") == Texts{"bílý kůň", "bily kun", "bily oř", "bily or"});
}

TEST_CASE("a query has a bounded number of forms, and its own come first") {
  std::string line = "w";
  for (int i = 0; i < 40; ++i) line += ", v" + std::to_string(i);
  const auto synonyms = Synonyms::parse(line);
  REQUIRE(synonyms);
  const Texts forms = forms_of(*synonyms, "w w w");
  REQUIRE(forms.size() == kQueryFormsMax);
  CHECK(forms[0] == "w w w");
  CHECK(std::set<std::string>(forms.begin(), forms.end()).size() == kQueryFormsMax);
  std::string long_query;
  for (std::size_t i = 0; i < kQueryWordsMax; ++i) long_query += "low ";
  const auto longer = Synonyms::parse("low, at a small");
  CHECK(forms_of(*longer, long_query).size() == 1);  // A form with too many words is left out.
}

TEST_CASE("a broken list is refused with the line") {
  for (const char* text : {"a, b\nc\n", "a, b\nc, --\n", "a, b\nc, one two three four five\n"}) {
    const auto broken = Synonyms::parse(text);
    INFO(text);
    REQUIRE_FALSE(broken);
    CHECK(broken.error().code() == StatusCode::InvalidArgument);
    CHECK(broken.error().message().find("line 2") != std::string::npos);
  }
  CHECK_FALSE(Synonyms::parse(std::string(kSynonymsBytesMax + 1, 'a')));
  CHECK(Synonyms::parse("")->terms() == 0);
}

}  // namespace
}  // namespace fjord::search
