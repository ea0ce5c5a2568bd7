#pragma once

#include <algorithm>
#include <cstddef>

namespace fjord {

/// A limit on operations in flight (additive increase, multiplicative decrease). It halves after BUSY, at most once for
/// each window of results, and grows a little after each window without BUSY.
class AimdWindow {
 public:
  AimdWindow(std::size_t min, std::size_t max)
      : max_(std::max<std::size_t>(max, 1)), min_(std::clamp<std::size_t>(min, 1, max_)), size_(max_) {}

  std::size_t size() const { return size_; }

  /// Halves the window at once. For callers that know themselves which operations were sent before an earlier cut;
  /// others call on_result().
  void cut() {
    size_ = std::max(min_, size_ / 2);
    results_ = 0;
    cut_ = true;
  }
  void on_result(bool was_busy) {
    ++results_;
    if (was_busy) {
      // The further results of this window belong to operations that were sent before the cut, so they cause no other
      // cut.
      if (cut_ && results_ < size_) return;
      cut();
    } else if (results_ >= size_) {
      size_ = std::min(max_, size_ + std::max<std::size_t>(1, max_ / 64));
      results_ = 0;
      cut_ = false;
    }
  }

 private:
  std::size_t max_;
  std::size_t min_;
  std::size_t size_;
  std::size_t results_ = 0;  // number of results since the last change of the window
  bool cut_ = false;         // whether the last change of the window was a cut
};

}  // namespace fjord
