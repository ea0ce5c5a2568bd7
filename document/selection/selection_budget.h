#pragma once

#include <cstdint>

namespace fjord::selection {

/// The work that one evaluation may do, in steps of about a nanosecond: each byte and element that is looked at counts.
/// An evaluation that has spent its budget ends soon, and its result means nothing. Threading: confined to the
/// evaluation.
class Budget {
 public:
  explicit Budget(std::uint64_t steps_max) : steps_max_(steps_max) {}

  /// Counts steps that are about to be done. Returns false if they are too many.
  bool spend(std::uint64_t steps) {
    spent_ += steps;
    return !is_exceeded();
  }
  /// Used where the work that is left is not known, only that it is too much.
  void exceed() { spent_ = steps_max_ + 1; }
  bool is_exceeded() const { return spent_ > steps_max_; }
  std::uint64_t left() const { return is_exceeded() ? 0 : steps_max_ - spent_; }
  std::uint64_t spent() const { return spent_; }

 private:
  std::uint64_t steps_max_;
  std::uint64_t spent_ = 0;
};

/// Steps for texts of `bytes` that are compared, copied or searched with instructions that take many bytes at once.
constexpr std::uint64_t steps_of_bytes(std::uint64_t bytes) { return 1 + bytes / 8; }

}  // namespace fjord::selection
