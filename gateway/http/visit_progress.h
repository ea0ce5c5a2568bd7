#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fjord/library/detail/given_documents.h"
#include "fjord/library/visit.h"

namespace fjord::gateway {

constexpr std::uint64_t kAllPositions = visitors::kLastPosition + 1;

/// Returns only the largest ranges of the set, so that their text fits into a request line.
visitors::PositionSet largest_ranges(const visitors::PositionSet& set);

/// Returns by what to multiply the width of a range that held `count` documents, so that the next one holds about
/// `wanted` of them. An empty range says nothing about the next one, which is as much wider as possible: a visit of any
/// space reaches its end in few ranges.
double widening(std::int64_t wanted, std::int64_t count);

/// How far a visit over HTTP is: the content of its continuation tokens. A token stays small however many buckets the
/// cluster has. It may count less as done than is done; those documents are then sent again.
///
/// Chunks read ranges of the bucket tree from first to last, each to its end, so their tokens have a range and a
/// number.
class VisitProgress {
 public:
  /// `slice` is the slice of the visit.
  explicit VisitProgress(const std::optional<VisitSlice>& slice)
      : slice_(slice ? visitors::PositionRange::slice(slice->index, slice->count) : visitors::PositionRange()) {}

  /// Reads what to_text() wrote. Errors: InvalidArgument for any other text.
  Status parse(std::string_view text);
  std::string to_text() const;

  /// Returns the VisitOptions::resume that reads the rest of `range`; empty at the beginning of a whole visit.
  std::string resume_text(const visitors::PositionRange& range) const;
  /// Sets the visit to which tokens belong. `cursor` is the cursor of a visit that was opened with these options.
  Status begin(const std::string& cursor);

  /// Returns the next range that is not done, of at most width() positions; absent if everything is done.
  std::optional<visitors::PositionRange> next_range() const;
  /// Counts a range as done.
  void complete(const visitors::PositionRange& range);
  /// Counts what a visit of `range` with this `cursor` has completed as done. Returns false if that is nothing.
  bool advance(const visitors::PositionRange& range, const std::string& cursor);
  bool is_over() const { return !next_range().has_value(); }

  std::uint64_t width() const { return width_; }
  void set_width(double positions);

 private:
  visitors::PositionRange slice_;
  std::uint64_t question_ = 0;
  visitors::PositionSet done_;
  GivenDocuments given_;                 ///< Documents of incomplete buckets that were sent.
  std::uint64_t width_ = kAllPositions;  ///< Size of the next range, at most.
};

}  // namespace fjord::gateway
