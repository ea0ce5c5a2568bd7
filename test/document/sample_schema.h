#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "fjord/document/document.h"

namespace fjord::test {

/// Has a type with a field of every kind, in header and body.
inline const std::string kSampleSchema = R"(
document song {
  struct credit {
    field name type string {}
    field share type float {}
    field roles type array<string> {}
  }
  field title type string { header }
  field year type int { header }
  field plays type long { header }
  field loudness type float { header }
  field seconds type double { header }
  field live type bool { header }
  field stars type byte { header }
  field cover type raw { body }
  field lyrics type string { body }
  field tags type array<string> { header }
  field moods type weightedset<string> { header }
  field charts type map<string, int> { body }
  field main_credit type credit { header }
  field credits type array<credit> { body }
  field by_country type map<string, array<credit>> { body }
  field ratings type weightedset<int> { body }
  field flags type array<bool> { body }
  field grid type array<array<long>> { body }
}
)";

inline std::shared_ptr<const DocumentTypeRepo> repo_of(const std::string& schema) {
  auto repo = DocumentTypeRepo::build(std::span(&schema, 1));
  INFO(repo.status());
  REQUIRE(repo);
  return *repo;
}

inline std::shared_ptr<const DocumentTypeRepo> sample_repo() { return repo_of(kSampleSchema); }

inline DocumentId id_of(std::string_view text) {
  auto id = DocumentId::parse(text);
  REQUIRE(id);
  return *id;
}

inline StructValue credit(std::string_view name, float share) {
  StructValue value;
  value.set(stable_id("name"), name);
  value.set(stable_id("share"), share);
  value.set(stable_id("roles"), ArrayValue{{"voice", "guitar"}});
  return value;
}

/// Returns a song with every field set.
inline Document full_song(const DocumentTypeRepo& repo) {
  Document song(*repo.find("song"), id_of("id:music:song:n=7:full"));
  const auto set = [&](std::string_view name, FieldValue value) {
    const Status status = song.set(name, std::move(value));
    INFO(status);
    REQUIRE(status);
  };
  set("title", "Fj\xc3\xa6re \xe2\x99\xab");
  set("year", std::int32_t{-1969});
  set("plays", std::int64_t{9000000000});
  set("loudness", -7.25f);
  set("seconds", 213.125);
  set("live", true);
  set("stars", std::int8_t{-5});
  set("cover", RawValue{std::string("\x00\xff\x10", 3)});
  set("lyrics", std::string(300, 'l'));
  set("tags", ArrayValue{{"a", "", "c"}});
  set("moods", WeightedSetValue{{{"calm", 10}, {"sad", -3}}});
  set("charts", MapValue{{{"no", std::int32_t{1}}, {"se", std::int32_t{40}}}});
  set("main_credit", credit("Kari", 0.5f));
  set("credits", ArrayValue{{credit("Kari", 0.5f), credit("Ola", 0.25f)}});
  set("by_country", MapValue{{{"no", ArrayValue{{credit("Kari", 1.0f)}}}, {"dk", ArrayValue{}}}});
  set("ratings", WeightedSetValue{{{std::int32_t{5}, 100}, {std::int32_t{1}, 2}}});
  set("flags", ArrayValue{{true, false, true}});
  set("grid", ArrayValue{{ArrayValue{{std::int64_t{1}, std::int64_t{2}}}, ArrayValue{}}});
  return song;
}

}  // namespace fjord::test
