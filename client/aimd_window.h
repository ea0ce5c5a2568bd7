#pragma once

#include <algorithm>
#include <cstddef>

namespace fjord {

/// A limit on operations in flight (additive increase, multiplicative decrease): halves after BUSY, at most once for
/// each window of results, and grows a little after each window without BUSY.
class AimdWindow {
 public:
  AimdWindow(std::size_t min, std::size_t max)
      : max_(std::max<std::size_t>(max, 1)), min_(std::clamp<std::size_t>(min, 1, max_)), size_(max_) {}

  std::size_t size() const { return size_; }

  /// Halves the window. For callers that themselves track which operations were sent before the last cut.
  void cut() {
    size_ = std::max(min_, size_ / 2);
    results_ = 0;
    cut_ = true;
  }
  void on_result(bool was_busy) {
    ++results_;
    if (was_busy) {
      // The other results of this window are of operations sent before the cut, so they cause no further cut.
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
  std::size_t results_ = 0;  // results since the last change
  bool cut_ = false;         // whether the last change was a cut
};

}  // namespace fjord
