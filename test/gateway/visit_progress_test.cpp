#include "http/visit_progress.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "fjord/common/random.h"

namespace fjord::gateway {
namespace {

using visitors::kLastPosition;
using visitors::PositionRange;

constexpr std::uint64_t kQuestion = 77;

std::string cursor_of(std::initializer_list<PositionRange> done) {
  VisitCursor cursor{{{kQuestion, {}}}, {}};
  for (const PositionRange& range : done) cursor.slices[0].done.add(range);
  return cursor.to_text();
}

VisitProgress begun(const std::optional<VisitSlice>& slice = {}) {
  VisitProgress progress(slice);
  REQUIRE(progress.begin(cursor_of({})));
  return progress;
}

}  // namespace

TEST_CASE("visit progress: ranges of any width cover the slice, one after the other") {
  for (const std::uint64_t width : {kAllPositions, kAllPositions / 2, kAllPositions / 7 + 1}) {
    for (const std::optional<VisitSlice>& slice : {std::optional<VisitSlice>(), std::optional(VisitSlice{1, 3})}) {
      VisitProgress progress = begun(slice);
      progress.set_width(static_cast<double>(width));
      visitors::PositionSet covered;
      while (const auto range = progress.next_range()) {
        CHECK(range->last - range->first <= width - 1);
        CHECK_FALSE(covered.overlaps(*range));
        covered.add(*range);
        progress.complete(*range);
      }
      const PositionRange whole = slice ? PositionRange::slice(1, 3) : PositionRange();
      CHECK(covered.ranges() == std::vector{whole});
    }
  }
}

TEST_CASE("visit progress: the token keeps what is done and the width") {
  VisitProgress progress = begun();
  progress.set_width(1000);
  progress.complete(*progress.next_range());
  VisitProgress again({});
  REQUIRE(again.parse(progress.to_text()));
  CHECK(again.next_range() == PositionRange{1000, 1999});
  CHECK(again.resume_text(*again.next_range()) == cursor_of({{0, 999}, {2000, kLastPosition}}));
}

TEST_CASE("visit progress: malformed tokens are refused") {
  VisitProgress progress({});
  const std::string good = begun().to_text();
  REQUIRE(progress.parse(good));
  for (const std::string& text : {std::string(), std::string("\n"), good.substr(1), "0" + good.substr(good.find('\n')),
                                  good.substr(0, good.find('\n')), "x" + good, good + cursor_of({})}) {
    INFO(text);
    CHECK(VisitProgress({}).parse(text).code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("visit progress: of a visit that was cut only the buckets in its range count") {
  VisitProgress progress = begun();
  progress.set_width(1000);
  const PositionRange range = *progress.next_range();
  CHECK_FALSE(progress.advance(range, cursor_of({{1000, kLastPosition}})));
  CHECK(progress.advance(range, cursor_of({{0, 499}, {1000, kLastPosition}})));
  CHECK(progress.next_range() == PositionRange{500, 1499});
}

TEST_CASE("visit progress: holes in what is done are read before what is behind them") {
  VisitProgress progress = begun();
  CHECK(progress.advance({}, cursor_of({{0, 9}, {20, 29}})));
  CHECK(progress.next_range() == PositionRange{10, 19});
  progress.complete({10, 19});
  CHECK(progress.next_range() == PositionRange{30, kLastPosition});
}

TEST_CASE("visit progress: a token with very many parts keeps the largest") {
  visitors::PositionSet done;
  for (std::uint64_t i = 0; i < 1000; ++i) done.add({i * 1000, i * 1000 + i});
  const visitors::PositionSet largest = largest_ranges(done);
  CHECK(largest.ranges().size() == 128);
  CHECK(largest.contains(PositionRange{999'000, 999'999}));
  CHECK_FALSE(largest.contains(0));
  VisitProgress progress = begun();
  for (const PositionRange& range : done.ranges()) progress.complete(range);
  CHECK(progress.to_text().size() < 8'000);
}

TEST_CASE("visit progress: chunks of any size reach the end of any space within a bound") {
  // The least number of requests is that of the documents divided by what a chunk may have.
  struct Space {
    const char* what;
    std::size_t documents;
    std::uint64_t last;  ///< Documents are at positions from 0 to this.
  };
  Random random(3);
  for (const Space& space : {Space{"empty", 0, 0}, Space{"one", 1, kLastPosition}, Space{"sparse", 40, kLastPosition},
                             Space{"full", 20'000, kLastPosition}, Space{"in one place", 20'000, 1 << 20}}) {
    for (const std::int64_t wanted : {1, 2, 3, 1000}) {
      for (const std::optional<VisitSlice>& slice : {std::optional<VisitSlice>(), std::optional(VisitSlice{2, 3})}) {
        INFO(space.what << ", " << wanted << " wanted, a slice: " << slice.has_value());
        std::vector<std::uint64_t> documents;
        for (std::size_t i = 0; i < space.documents; ++i) documents.push_back(random.below(space.last) + 1);
        std::sort(documents.begin(), documents.end());
        const auto between = [&](std::uint64_t first, std::uint64_t last) {
          return std::upper_bound(documents.begin(), documents.end(), last) -
                 std::lower_bound(documents.begin(), documents.end(), first);
        };
        VisitProgress progress = begun(slice);
        const std::int64_t limit = wanted + wanted / 4 + 16;
        std::int64_t given = 0;
        std::size_t ranges = 0;
        const std::size_t bound = 60 + 6 * space.documents / static_cast<std::size_t>(wanted);
        while (const auto range = progress.next_range()) {
          REQUIRE(++ranges < bound);
          const std::int64_t count = between(range->first, range->last);
          const double width = static_cast<double>(range->last - range->first) + 1;
          if (count > limit && range->first < range->last) {
            progress.set_width(width / 4);
            continue;
          }
          given += count;
          progress.complete(*range);
          progress.set_width(width * widening(wanted, count));
        }
        const PositionRange whole = slice ? PositionRange::slice(2, 3) : PositionRange();
        CHECK(given == between(whole.first, whole.last));
      }
    }
  }
}

}  // namespace fjord::gateway
