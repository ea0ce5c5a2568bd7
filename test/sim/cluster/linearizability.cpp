#include "linearizability.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "fjord/common/hash.h"

namespace fjord::sim {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
using Kind = RegisterOperation::Kind;

bool writes(const RegisterOperation& operation) {
  return operation.kind == Kind::Write || operation.kind == Kind::TestAndSet;
}

/// An optional operation whose value was seen took effect before the first operation that saw the value had ended.
void bound_optional(std::vector<RegisterOperation>& operations) {
  for (RegisterOperation& doubted : operations) {
    if (!doubted.optional || doubted.value == 0) continue;
    for (const RegisterOperation& other : operations) {
      const bool seen = (other.kind == Kind::Read && other.value == doubted.value) ||
                        (other.kind == Kind::TestAndSet && !other.optional && other.expected == doubted.value);
      if (!seen) continue;
      doubted.optional = false;
      doubted.end_us = std::min(doubted.end_us, other.end_us);
    }
  }
  // No operation saw the values of the remaining optional ones. They can matter only to operations that found another
  // value than the expected one.
  const bool others = std::any_of(operations.begin(), operations.end(),
                                  [](const auto& operation) { return operation.kind == Kind::ReadOther; });
  if (!others)
    std::erase_if(operations, [](const auto& operation) { return operation.optional && operation.value != 0; });
}

/// Depth-first search through the orders that remembers visited states (Wing and Gong; Lowe).
class Search {
 public:
  Search(std::vector<RegisterOperation> operations, std::uint64_t steps_max)
      : operations_(std::move(operations)), steps_left_(steps_max), taken_(operations_.size(), false) {
    std::sort(operations_.begin(), operations_.end(),
              [](const auto& a, const auto& b) { return a.begin_us < b.begin_us; });
    for (const RegisterOperation& operation : operations_) {
      left_ += operation.optional ? 0 : 1;
      if (operation.kind == Kind::Read) ++reads_left_[operation.value];
    }
  }

  Linearizability run() {
    struct Choice {
      std::size_t taken;
      std::uint32_t value_before;
      std::size_t first_before;
    };
    std::vector<Choice> path;
    std::size_t next = 0;
    while (left_ > 0) {
      if (steps_left_-- == 0) return Linearizability::Undecided;
      const std::size_t found = find_next(next);
      if (found < operations_.size()) {
        path.push_back({found, value_, first_});
        take(found);
        if (been_.insert(state()).second) {
          next = first_;
          continue;
        }
      }
      if (path.empty()) return Linearizability::No;
      const Choice back = path.back();
      path.pop_back();
      untake(back.taken);
      value_ = back.value_before;
      first_ = back.first_before;
      next = back.taken + 1;
    }
    return Linearizability::Yes;
  }

 private:
  /// Returns the first operation from `from` on that may come next and fits the value.
  std::size_t find_next(std::size_t from) const {
    std::size_t found = operations_.size();
    std::int64_t earliest_end = kNever;
    for (std::size_t i = first_; i < operations_.size(); ++i) {
      const RegisterOperation& operation = operations_[i];
      if (operation.begin_us > earliest_end) break;
      if (taken_[i]) continue;
      // An operation that only reads and fits the value can always come next: this excludes no order of the later ones.
      if (!writes(operation) && fits(operation)) return from <= first_ ? i : operations_.size();
      if (found == operations_.size() && i >= from && fits(operation)) found = i;
      if (!operation.optional) earliest_end = std::min(earliest_end, operation.end_us);
    }
    return found;
  }
  bool fits(const RegisterOperation& operation) const {
    // A value never returns once it is overwritten, so all its readers come before the overwriting operation.
    const auto reads = reads_left_.find(value_);
    if (writes(operation) && value_ != 0 && reads != reads_left_.end() && reads->second > 0) return false;
    switch (operation.kind) {
      case Kind::Read:
        return operation.value == value_;
      case Kind::ReadOther:
        return operation.expected != value_;
      case Kind::Write:
        return true;
      case Kind::TestAndSet:
        return operation.expected == value_;
    }
    return false;
  }
  void take(std::size_t i) {
    taken_[i] = true;
    hash_ ^= hash_of(i);
    left_ -= operations_[i].optional ? 0 : 1;
    if (operations_[i].kind == Kind::Read) --reads_left_[operations_[i].value];
    if (writes(operations_[i])) value_ = operations_[i].value;
    while (first_ < taken_.size() && taken_[first_]) ++first_;
  }
  void untake(std::size_t i) {
    taken_[i] = false;
    if (operations_[i].kind == Kind::Read) ++reads_left_[operations_[i].value];
    hash_ ^= hash_of(i);
    left_ += operations_[i].optional ? 0 : 1;
  }
  static std::uint64_t hash_of(std::size_t i) { return mix64(0x6c696e, i); }
  std::uint64_t state() const { return mix64(hash_, value_); }

  std::vector<RegisterOperation> operations_;
  std::uint64_t steps_left_;
  std::vector<bool> taken_;
  std::size_t first_ = 0;  ///< All operations before this index have a place in the order.
  std::size_t left_ = 0;
  std::unordered_map<std::uint32_t, std::size_t> reads_left_;  ///< By value: number of reads of it that are left.
  std::uint32_t value_ = 0;
  std::uint64_t hash_ = 0;
  std::unordered_set<std::uint64_t> been_;
};

}  // namespace

Linearizability check_register(std::vector<RegisterOperation> operations, std::uint64_t steps_max) {
  bound_optional(operations);
  return Search(std::move(operations), steps_max).run();
}

}  // namespace fjord::sim
