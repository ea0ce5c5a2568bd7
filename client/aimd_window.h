#pragma once

#include <algorithm>
#include <cstddef>

namespace fjord {

/// How many operations may be on their way: half as many after BUSY, at most once a window of results; a little more
/// after each window without (additive increase, multiplicative decrease).
class AimdWindow {
 public:
  AimdWindow(std::size_t min, std::size_t max)
      : max_(std::max<std::size_t>(max, 1)), min_(std::clamp<std::size_t>(min, 1, max_)), size_(max_) {}

  std::size_t size() const { return size_; }

  /// Half as many, for callers that know what was sent before the last cut.
  void cut() {
    size_ = std::max(min_, size_ / 2);
    results_ = 0;
    cut_ = true;
  }
  void on_result(bool was_busy) {
    ++results_;
    if (was_busy) {
      // The rest of the window was sent before the cut and says nothing about it.
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
  std::size_t results_ = 0;  // since the last change
  bool cut_ = false;         // the last change was a cut
};

}  // namespace fjord
