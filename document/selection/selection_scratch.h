#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace fjord::selection {

/// Memory for the texts that one evaluation computes, freed with it. The first bytes need no allocation. Threading:
/// confined to the evaluation.
class Scratch {
 public:
  static constexpr std::size_t kBytesMax = 64 << 20;

  Scratch() {}  // NOLINT: leaves the inline bytes as they are
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  /// Invalidates everything that take() returned.
  void clear() {
    inline_taken_ = 0;
    taken_ = 0;
    if (!blocks_.empty()) blocks_.clear();
  }

  /// Null if the evaluation would need more than kBytesMax in total.
  char* take(std::size_t bytes) {
    if (bytes > kBytesMax - taken_) return nullptr;
    taken_ += bytes;
    if (bytes <= kInlineBytes - inline_taken_) {
      char* const begin = inline_ + inline_taken_;
      inline_taken_ += bytes;
      return begin;
    }
    blocks_.push_back(std::make_unique<char[]>(bytes));
    return blocks_.back().get();
  }

 private:
  static constexpr std::size_t kInlineBytes = 512;

  char inline_[kInlineBytes];
  std::size_t inline_taken_ = 0;
  std::size_t taken_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
};

}  // namespace fjord::selection
