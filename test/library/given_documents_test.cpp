#include "fjord/library/detail/given_documents.h"

#include <catch2/catch.hpp>
#include <utility>

namespace fjord {
namespace {

using visitors::PositionRange;
using visitors::SessionCursor;

GlobalId gid_of(int i) { return DocumentId::parse("id:t:item::" + std::to_string(i))->gid(); }

/// Returns a cursor in which the whole bucket of a document is done.
SessionCursor slice_of(const GlobalId& gid, unsigned bits) {
  SessionCursor slice{.question = 7, .done = {}};
  slice.done.add(PositionRange::of(bucket_of(gid, bits)));
  return slice;
}

TEST_CASE("given documents: each is given once, until its bucket is complete", "[visit]") {
  GivenDocuments given;
  for (int i = 0; i < 200; ++i) CHECK(given.add(gid_of(i)));
  for (int i = 0; i < 200; ++i) CHECK_FALSE(given.add(gid_of(i)));
  const PositionRange range = PositionRange::of(bucket_of(gid_of(1), 2));
  std::size_t inside = 0;
  for (int i = 0; i < 200; ++i) inside += range.contains(visitors::position_of(gid_of(i))) ? 1 : 0;
  REQUIRE(inside > 0);
  REQUIRE(inside < 200);
  given.complete(range);
  CHECK(given.size() == 200 - inside);
  CHECK(given.add(gid_of(1)));
}

TEST_CASE("given documents: a cursor says which documents of incomplete buckets were given", "[visit]") {
  VisitCursor cursor;
  for (int i = 0; i < 100; ++i) cursor.given.add(gid_of(i));
  cursor.slices = {slice_of(gid_of(1), 3)};
  const auto read = VisitCursor::parse(cursor.to_text());
  INFO(read.status());
  REQUIRE(read.has_value());
  CHECK(read->slices == cursor.slices);
  GivenDocuments given = read->given;
  CHECK(given.size() < 100);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t at = visitors::position_of(gid_of(i));
    // The parts that the cursor names as done are not visited again.
    CHECK(given.add(gid_of(i)) == cursor.slices[0].done.contains(at));
  }

  const VisitCursor none{cursor.slices, {}};
  CHECK(VisitCursor::parse(none.to_text())->given.size() == 0);
  const auto refused = [](const std::string& text) { return VisitCursor::parse(text).status(); };
  CHECK(refused("").code() == StatusCode::InvalidArgument);
  CHECK(refused("nonsense\n").code() == StatusCode::InvalidArgument);
  const Status bad = refused(cursor.slices[0].to_text() + "\nprinted: 0123\n");
  CHECK(bad.code() == StatusCode::InvalidArgument);
  CHECK(bad.message().find("line 2") != std::string::npos);
}

TEST_CASE("given documents: a cursor is refused if any character is changed or any line is missing", "[visit]") {
  VisitCursor cursor;
  for (int i = 0; i < 3; ++i) cursor.given.add(gid_of(i));
  cursor.slices = {{.question = 7, .done = {}}, {.question = 8, .done = {}}};
  const std::string text = cursor.to_text();
  const auto is_read = [](const std::string& changed) { return VisitCursor::parse(changed).has_value(); };
  REQUIRE(is_read(text));
  CHECK(is_read(text.substr(0, text.size() - 1)));
  for (std::size_t i = 0; i < text.size(); ++i) {
    INFO(i);
    // Without its last line end the text says the same.
    CHECK((i + 1 >= text.size() || !is_read(text.substr(0, i))));
    for (const char other : {'0', '7', 'a', '\n'}) {
      std::string changed = text;
      if (std::exchange(changed[i], other) == other) continue;
      CHECK_FALSE((is_read(changed) && i + 1 < text.size()));
    }
  }
  const std::size_t second = text.find('\n') + 1;
  const std::size_t third = text.find('\n', second) + 1;
  CHECK_FALSE(is_read(text.substr(0, second) + text.substr(third)));

  // The former form: the first line says nothing of the others.
  std::string former = cursor.slices[0].to_text() + '\n' + cursor.slices[1].to_text() + '\n';
  former += cursor.given.to_text(cursor.slices) + '\n';
  REQUIRE(former != text);
  CHECK(VisitCursor::parse(former)->slices == cursor.slices);
  CHECK(VisitCursor::parse(former)->given.size() == 3);
}

TEST_CASE("given documents: of a bucket that slices share, each has to do its own part", "[visit]") {
  // Three slices share the bucket of one bit. The second one has done its part of both halves.
  SessionCursor second{.question = 7, .done = {}};
  for (const std::uint64_t half : {0, 1}) second.done.add(PositionRange::of(BucketId(1, half)));
  const std::vector<SessionCursor> slices = {{.question = 7, .done = {}}, second, {.question = 7, .done = {}}};
  GivenDocuments given;
  for (int i = 0; i < 100; ++i) given.add(gid_of(i));
  auto again = GivenDocuments::parse(given.to_text(slices));
  REQUIRE(again.has_value());
  for (int i = 0; i < 100; ++i) {
    INFO(i);
    const bool is_in_second = PositionRange::slice(1, 3).contains(visitors::position_of(gid_of(i)));
    CHECK(again->add(gid_of(i)) == is_in_second);
  }
}

}  // namespace
}  // namespace fjord
