#include "http/visit_progress.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace fjord::gateway {
namespace {

using visitors::kLastPosition;
using visitors::PositionRange;
using visitors::PositionSet;

/// The next request has the token in its request line, for which HTTP/2 allows 64 KiB.
constexpr std::size_t kRangesMax = 128;
constexpr std::size_t kGivenMax = 700;

Status malformed() { return {StatusCode::InvalidArgument, "continuation: malformed token"}; }

std::uint64_t size_of(const PositionRange& range) { return range.last - range.first; }

void remove_outside(PositionSet& set, const PositionRange& range) {
  if (range.first > 0) set.remove({0, range.first - 1});
  if (range.last < kLastPosition) set.remove({range.last + 1, kLastPosition});
}

}  // namespace

double widening(std::int64_t wanted, std::int64_t count) {
  constexpr double kMost = 16;
  constexpr double kFilled = 0.8;
  if (count <= 0) return kMost;
  return std::clamp(kFilled * static_cast<double>(wanted) / static_cast<double>(count), 1 / kMost, kMost);
}

visitors::PositionSet largest_ranges(const PositionSet& set) {
  std::vector<PositionRange> ranges = set.ranges();
  if (ranges.size() <= kRangesMax) return set;
  std::nth_element(ranges.begin(), ranges.begin() + kRangesMax, ranges.end(),
                   [](const PositionRange& a, const PositionRange& b) { return size_of(a) > size_of(b); });
  PositionSet largest;
  for (std::size_t i = 0; i < kRangesMax; ++i) largest.add(ranges[i]);
  return largest;
}

Status VisitProgress::parse(std::string_view text) {
  const std::size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos) return malformed();
  constexpr int kHex = 16;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + line_end, width_, kHex);
  if (error != std::errc() || stop != text.data() + line_end || width_ == 0) return malformed();
  auto cursor = VisitCursor::parse(text.substr(line_end + 1));
  if (!cursor || cursor->slices.size() != 1) return malformed();
  question_ = cursor->slices[0].question;
  done_ = std::move(cursor->slices[0].done);
  given_ = std::move(cursor->given);
  return Status::ok();
}

std::string VisitProgress::to_text() const {
  VisitCursor cursor{{{question_, largest_ranges(done_)}}, {}};
  if (given_.size() <= kGivenMax) cursor.given = given_;
  return fmt::format("{:x}\n{}", width_, cursor.to_text());
}

std::string VisitProgress::resume_text(const PositionRange& range) const {
  VisitCursor cursor{{{question_, done_}}, given_};
  PositionSet& done = cursor.slices[0].done;
  if (range.first > 0) done.add({0, range.first - 1});
  if (range.last < kLastPosition) done.add({range.last + 1, kLastPosition});
  return question_ == 0 ? std::string() : cursor.to_text();
}

Status VisitProgress::begin(const std::string& cursor) {
  FJORD_TRY_ASSIGN(const VisitCursor opened, VisitCursor::parse(cursor));
  question_ = opened.slices[0].question;
  return Status::ok();
}

std::optional<PositionRange> VisitProgress::next_range() const {
  std::uint64_t first = slice_.first;
  std::uint64_t last = slice_.last;
  for (const PositionRange& range : done_.ranges()) {
    if (range.contains(first)) {
      if (range.last >= slice_.last) return {};
      first = range.last + 1;
    } else if (range.first > first) {
      last = std::min(last, range.first - 1);
      break;
    }
  }
  if (width_ - 1 < last - first) last = first + (width_ - 1);
  return PositionRange{first, last};
}

void VisitProgress::complete(const PositionRange& range) {
  done_.add(range);
  given_.complete(range);
}

bool VisitProgress::advance(const PositionRange& range, const std::string& cursor) {
  auto reached = VisitCursor::parse(cursor);
  if (!reached) return false;
  PositionSet& done = reached->slices[0].done;
  remove_outside(done, range);
  const std::vector<PositionRange> before = done_.ranges();
  for (const PositionRange& part : done.ranges()) complete(part);
  const bool has_given = reached->given.size() > given_.size();
  given_ = std::move(reached->given);
  return has_given || before != done_.ranges();
}

void VisitProgress::set_width(double positions) {
  width_ = static_cast<std::uint64_t>(std::clamp(positions, 1.0, static_cast<double>(kAllPositions)));
}

}  // namespace fjord::gateway
