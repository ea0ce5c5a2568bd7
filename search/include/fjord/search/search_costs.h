#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/storage/spi/bucket_access.h"

namespace fjord::search {

/// Divides the cost of a search in a stripe among the slices whose keywords caused it.
///
/// Threading: confined to the stripe's executor.
class SearchCosts {
 public:
  /// The cost of the whole search.
  struct Total {
    Duration scan{0};         ///< Time in which keywords were compared.
    Duration auction{0};      ///< Time of the auction of keywords that matched.
    std::uint64_t pages = 0;  ///< Pages read from files.
  };

  /// Begins a search in a stripe. `slices` is the number of all slices.
  void begin(std::size_t slices);
  /// Counts a keyword of the slice that was compared with the query.
  void add_scanned(std::size_t slice) {
    Count& count = counts_[slice];
    if (count.scanned++ == 0) touched_.push_back(slice);
    ++scanned_;
  }
  /// Counts that the keyword matched; call this after add_scanned().
  void add_candidate(std::size_t slice) {
    ++counts_[slice].candidates;
    ++candidates_;
  }
  std::uint64_t scanned() const { return scanned_; }

  /// Divides the time of comparing and the pages by the keywords compared, and the time of the auction by the keywords
  /// that matched. The parts add up to the whole. A search that compared nothing has no parts.
  std::vector<spi::SearchLoad> divide(unsigned bits, const Total& total) const;

 private:
  struct Count {
    std::uint64_t scanned = 0;
    std::uint64_t candidates = 0;
  };
  std::vector<Count> counts_;         ///< Counts of each slice.
  std::vector<std::size_t> touched_;  ///< Slices with a count.
  std::uint64_t scanned_ = 0;
  std::uint64_t candidates_ = 0;
};

}  // namespace fjord::search
