#include "fjord/document/document_limits.h"

#include "sample_schema.h"

namespace fjord {
namespace {

LimitCheck check(const DocumentLimits& limits, const EncodedDocument& document, std::string_view id = "id:m:song::x") {
  return check_limits(limits, id, document.header, document.body);
}

/// Returns thresholds that accept every document without a warning.
DocumentLimits unlimited() {
  DocumentLimits limits;
  limits.document_bytes = limits.id_bytes = limits.depth = limits.fields = LimitThreshold{};
  return limits;
}

EncodedDocument song_with(const DocumentTypeRepo& repo, std::string_view field, FieldValue value) {
  Document song(*repo.find("song"), test::id_of("id:m:song::x"));
  const Status status = song.set(field, std::move(value));
  INFO(status);
  REQUIRE(status);
  return encode(song);
}

/// Returns the measured value: one more than the largest limit that it exceeds.
std::uint64_t measured(LimitThreshold DocumentLimits::*which, const EncodedDocument& document) {
  std::uint64_t value = 0;
  while (true) {
    DocumentLimits limits = unlimited();
    (limits.*which).fail_above = value + 1;
    (limits.*which).warn_above = value == 0 ? 1 : value;
    const LimitCheck result = check(limits, document);
    if (result.status && result.warnings.empty()) return value == 0 ? 1 : value;
    ++value;
  }
}

}  // namespace

TEST_CASE("document limits: an ordinary document passes the defaults without a word") {
  const auto repo = test::sample_repo();
  const LimitCheck result = check(DocumentLimits(), encode(test::full_song(*repo)));
  CHECK(result.status);
  CHECK(result.warnings.empty());
}

TEST_CASE("document limits: beyond the first threshold it is reported, beyond the second refused") {
  const auto repo = test::sample_repo();
  const EncodedDocument song = song_with(*repo, "lyrics", std::string(1000, 'x'));
  DocumentLimits limits = unlimited();
  limits.document_bytes = {song.size(), song.size() + 1};
  CHECK(check(limits, song).warnings.empty());
  limits.document_bytes = {song.size() - 1, song.size()};
  const LimitCheck reported = check(limits, song);
  CHECK(reported.status);
  REQUIRE(reported.warnings.size() == 1);
  CHECK(reported.warnings[0].to_string() == "document bytes: " + std::to_string(song.size()) + "; more than " +
                                                std::to_string(song.size() - 1) + " are reported");
  limits.document_bytes = {1, song.size() - 1};
  const LimitCheck refused = check(limits, song);
  CHECK(refused.status.code() == StatusCode::TooLarge);
  CHECK(refused.status.message() == "document \"id:m:song::x\": document bytes: " + std::to_string(song.size()) +
                                        "; at most " + std::to_string(song.size() - 1) + " are allowed");
  CHECK(refused.warnings.empty());
}

TEST_CASE("document limits: long ids") {
  const auto repo = test::sample_repo();
  const EncodedDocument song = song_with(*repo, "year", std::int32_t{1});
  DocumentLimits limits;
  CHECK(check(limits, song, std::string(1024, 'i')).warnings.empty());
  CHECK(check(limits, song, std::string(1025, 'i')).warnings.size() == 1);
  limits.id_bytes.fail_above = 1024;
  CHECK(check(limits, song, std::string(1025, 'i')).status.code() == StatusCode::TooLarge);
}

TEST_CASE("document limits: depth counts collections and structs within one another") {
  const auto repo = test::sample_repo();
  const auto depth = [&](std::string_view field, FieldValue value) {
    return measured(&DocumentLimits::depth, song_with(*repo, field, std::move(value)));
  };
  CHECK(depth("tags", ArrayValue{{"a"}}) == 1);
  CHECK(depth("moods", WeightedSetValue{{{"a", 1}}}) == 1);
  CHECK(depth("grid", ArrayValue{{ArrayValue{{std::int64_t{1}}}}}) == 2);
  CHECK(depth("grid", ArrayValue{}) == 1);
  CHECK(depth("main_credit", test::credit("k", 1)) == 2);  // Depth 2: the struct, and the array of roles in it.
  CHECK(depth("credits", ArrayValue{{test::credit("k", 1)}}) == 3);
  CHECK(depth("by_country", MapValue{{{"no", ArrayValue{{test::credit("k", 1)}}}}}) == 4);
}

TEST_CASE("document limits: fields count with the members of structs in collections") {
  const auto repo = test::sample_repo();
  const auto fields = [&](std::string_view field, FieldValue value) {
    return measured(&DocumentLimits::fields, song_with(*repo, field, std::move(value)));
  };
  CHECK(fields("tags", ArrayValue{{"a", "b", "c"}}) == 1);
  CHECK(fields("main_credit", test::credit("k", 1)) == 4);
  CHECK(fields("credits", ArrayValue{{test::credit("k", 1), test::credit("l", 2)}}) == 7);
  CHECK(fields("by_country", MapValue{{{"no", ArrayValue{{test::credit("k", 1)}}}, {"dk", ArrayValue{}}}}) == 4);
}

TEST_CASE("document limits: malformed bytes do no harm") {
  const auto repo = test::sample_repo();
  const EncodedDocument song = encode(test::full_song(*repo));
  for (std::size_t n = 0; n <= song.body.size(); ++n) {
    const std::vector<char> exact(song.body.begin(), song.body.begin() + static_cast<std::ptrdiff_t>(n));
    CHECK(check_limits(DocumentLimits(), "id", song.header, {exact.data(), exact.size()}).status);
  }
  CHECK(check_limits(DocumentLimits(), "id", "", "").status);
}

}  // namespace fjord
