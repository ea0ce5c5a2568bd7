#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "selection_budget.h"

namespace fjord::selection {

/// Budget of one evaluation, and memory for the texts that it computes, freed with it. The first bytes need no
/// allocation. Threading: confined to the evaluation.
class Scratch {
 public:
  static constexpr std::size_t kBytesMax = 64 << 20;

  explicit Scratch(std::uint64_t steps_max = UINT64_MAX)
      : budget_(steps_max) {}  // NOLINT: leaves the inline bytes as they are
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Budget& budget() { return budget_; }

  /// Invalidates everything that take() returned, and begins a new budget.
  void clear(std::uint64_t steps_max) {
    budget_ = Budget(steps_max);
    inline_taken_ = 0;
    taken_ = 0;
    if (!blocks_.empty()) blocks_.clear();
  }

  /// Null if the evaluation would need more than kBytesMax in total.
  char* take(std::size_t bytes) {
    if (bytes > kBytesMax - taken_ || !budget_.spend(steps_of_bytes(bytes))) return nullptr;
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

  Budget budget_;
  char inline_[kInlineBytes];
  std::size_t inline_taken_ = 0;
  std::size_t taken_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
};

}  // namespace fjord::selection
