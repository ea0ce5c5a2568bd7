#include "fjord/visitors/bucket_space.h"

#include <catch2/catch.hpp>

#include "fjord/common/random.h"
#include "fjord/visitors/session_cursor.h"

namespace fjord::visitors {
namespace {

TEST_CASE("the range of a bucket is made up of those of its halves") {
  const BucketId bucket(7, 0x55);
  const PositionRange whole = PositionRange::of(bucket);
  const auto [low, high] = halves_of(bucket);
  CHECK(PositionRange::of(low).first == whole.first);
  CHECK(PositionRange::of(low).last + 1 == PositionRange::of(high).first);
  CHECK(PositionRange::of(high).last == whole.last);
  CHECK(PositionRange::of(BucketId()).is_all());
  const BucketId narrowest(BucketId::kUsedBitsMax, 0x55);
  CHECK(PositionRange::of(narrowest).first == PositionRange::of(narrowest).last);
  CHECK(whole.contains(narrowest.position()));
}

TEST_CASE("slices of any number follow one another without gaps and are about equally wide") {
  const std::uint64_t count = GENERATE(1, 2, 3, 5, 16, 1000, 65537);
  std::uint64_t next = 0;
  const std::uint64_t width = (kLastPosition + 1) / count;
  for (std::uint64_t i = 0; i < count; ++i) {
    const PositionRange slice = PositionRange::slice(i, count);
    REQUIRE(slice.first == next);
    REQUIRE(slice.last >= slice.first);
    const std::uint64_t wide = slice.last - slice.first + 1;
    REQUIRE((wide == width || wide == width + 1));
    next = slice.last + 1;
  }
  CHECK(next == kLastPosition + 1);
}

TEST_CASE("a set of ranges holds what was added and not removed, in as few ranges as possible") {
  Random random(3);
  for (int run = 0; run < 200; ++run) {
    PositionSet set;
    std::vector<bool> model(64, false);
    for (int i = 0; i < 12; ++i) {
      const std::uint64_t first = random.below(64);
      const std::uint64_t last = std::min<std::uint64_t>(63, first + random.below(8));
      const bool is_added = i < 6 || random.chance(0.6);
      if (is_added) {
        set.add({first, last});
      } else {
        set.remove({first, last});
      }
      for (std::uint64_t at = first; at <= last; ++at) model[at] = is_added;
    }
    std::size_t runs = 0;
    for (std::uint64_t at = 0; at < 64; ++at) {
      REQUIRE(set.contains(at) == model[at]);
      if (model[at] && (at == 0 || !model[at - 1])) ++runs;
    }
    REQUIRE(set.ranges().size() == runs);
    const std::uint64_t first = random.below(60);
    REQUIRE(set.contains(PositionRange{first, first + 3}) ==
            (model[first] && model[first + 1] && model[first + 2] && model[first + 3]));
    REQUIRE(set.overlaps(PositionRange{first, first + 3}) ==
            (model[first] || model[first + 1] || model[first + 2] || model[first + 3]));
  }
  PositionSet ends;
  ends.add({kLastPosition, kLastPosition});
  ends.add({0, kLastPosition - 1});
  CHECK(ends.ranges() == std::vector<PositionRange>{{0, kLastPosition}});
  ends.remove({0, kLastPosition});
  CHECK(ends.empty());
}

TEST_CASE("a token says the same after it was text, and any change of the text is noticed") {
  SessionCursor token{.question = 0xfedcba9876543210, .done = {}};
  token.done.add(PositionRange::of(BucketId(4, 3)));
  token.done.add(PositionRange::of(BucketId(9, 0x100)));
  token.done.add({kLastPosition, kLastPosition});
  const std::string text = token.to_text();
  REQUIRE(SessionCursor::parse("  " + text + "\n").has_value());
  CHECK(*SessionCursor::parse(text) == token);
  CHECK(*SessionCursor::parse(SessionCursor{}.to_text()) == SessionCursor{});
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string wrong = text;
    wrong[i] = wrong[i] == '1' ? '2' : '1';
    CHECK_FALSE(SessionCursor::parse(wrong).has_value());
    CHECK_FALSE(SessionCursor::parse(text.substr(0, i)).has_value());
  }
  CHECK_FALSE(SessionCursor::parse("").has_value());
}

}  // namespace
}  // namespace fjord::visitors
