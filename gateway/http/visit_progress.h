#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fjord/library/detail/given_documents.h"
#include "fjord/library/visit.h"

namespace fjord::gateway {

constexpr std::uint64_t kAllPositions = visitors::kLastPosition + 1;

/// Returns the set without all but its largest ranges, so that a text of it fits into a request line.
visitors::PositionSet largest_ranges(const visitors::PositionSet& set);

/// How far a visit over HTTP is: the content of its continuation tokens. A token stays small, however many buckets the
/// cluster has: it may count less as done than is done, and those documents come again.
///
/// Chunks read ranges of the bucket tree from first to last, each to its end, so their tokens have a range and a
/// number.
class VisitProgress {
 public:
  /// `slice` is the slice of the visit.
  explicit VisitProgress(const std::optional<VisitSlice>& slice)
      : slice_(slice ? visitors::PositionRange::slice(slice->index, slice->count) : visitors::PositionRange()) {}

  /// Errors: InvalidArgument if the text is not one of to_text().
  Status parse(std::string_view text);
  std::string to_text() const;

  /// Returns what VisitOptions::resume needs to read the rest of `range`; empty at the beginning of a whole visit.
  std::string resume_text(const visitors::PositionRange& range) const;
  /// Sets the visit that tokens belong to. `cursor` is that of a visit that was opened with these options.
  Status begin(const std::string& cursor);

  /// Returns the next range that is not done, of at most width() positions; absent if everything is done.
  std::optional<visitors::PositionRange> next_range() const;
  /// Counts a range as done.
  void complete(const visitors::PositionRange& range);
  /// Counts what a visit of `range` has completed as done. `cursor` is its cursor. Returns false if that is nothing.
  bool advance(const visitors::PositionRange& range, const std::string& cursor);
  bool is_over() const { return !next_range().has_value(); }

  std::uint64_t width() const { return width_; }
  void set_width(double positions);

 private:
  visitors::PositionRange slice_;
  std::uint64_t question_ = 0;
  visitors::PositionSet done_;
  GivenDocuments given_;                 ///< Documents of incomplete buckets that were given.
  std::uint64_t width_ = kAllPositions;  ///< Size of the next range, at most.
};

}  // namespace fjord::gateway
