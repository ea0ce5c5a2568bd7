#pragma once

#include <cstdint>
#include <deque>

#include "fjord/common/check.h"

namespace fjord {

/// Tracks the lowest sequence number that is not settled, that is, whose operation has not ended. Numbers are opened in
/// rising order without gaps.
class SettledWindow {
 public:
  /// Returns the lowest unsettled number; if none is open, the next one to be opened.
  std::uint64_t first_unsettled() const { return first_; }

  void open(std::uint64_t sequence) {
    FJORD_CHECK(sequence == first_ + settled_.size());
    settled_.push_back(false);
  }
  void settle(std::uint64_t sequence) {
    FJORD_CHECK(sequence >= first_ && sequence - first_ < settled_.size());
    settled_[static_cast<std::size_t>(sequence - first_)] = true;
    while (!settled_.empty() && settled_.front()) {
      settled_.pop_front();
      ++first_;
    }
  }

 private:
  std::uint64_t first_ = 1;
  std::deque<bool> settled_;  // whether first_ and each of the numbers after it are settled
};

}  // namespace fjord
