#include "forecast.h"

#include <algorithm>

namespace fjord::balancer {
namespace {

constexpr double kLevelWeight = 0.7;  // Weight of the newest load when the level is smoothed.
constexpr double kTrendWeight = 0.5;  // Weight of the newest change when the trend is smoothed.
constexpr double kMoveRounds = 2.0;   // Rounds that a move takes, and so the rounds ahead for which loads are forecast.

/// Computes the memory of a range from older entries: each contributes level and trend by the part of it inside of the
/// range.
SliceMemory recall(const std::vector<SliceMemory>& known, std::size_t& first, const BucketRange& range) {
  while (first < known.size() && known[first].range.end <= range.begin) ++first;
  SliceMemory found{.range = range};
  for (std::size_t i = first; i < known.size() && known[i].range.begin < range.end; ++i) {
    const SliceMemory& old = known[i];
    const std::uint32_t shared = std::min(old.range.end, range.end) - std::max(old.range.begin, range.begin);
    const double part = static_cast<double>(shared) / old.range.size();
    found.level += old.level * part;
    found.trend += old.trend * part;
    if (old.moved_round > found.moved_round) {
      found.moved_round = old.moved_round;
      found.moved_from = old.moved_from;
    }
  }
  return found;
}

}  // namespace

BalanceModel forecast(const BalanceModel& model, Memory& memory) {
  const bool is_first = memory.slices.empty();
  std::vector<SliceMemory> updated;
  updated.reserve(model.slices.size());
  BalanceModel expected = model;
  std::size_t first = 0;
  for (Slice& slice : expected.slices) {
    SliceMemory entry = recall(memory.slices, first, slice.range);
    const double load = slice.load();
    if (is_first) {
      entry.level = load;
    } else {
      const double level = kLevelWeight * load + (1.0 - kLevelWeight) * (entry.level + entry.trend);
      entry.trend = kTrendWeight * (level - entry.level) + (1.0 - kTrendWeight) * entry.trend;
      entry.level = level;
    }
    if (load > 0.0) {
      slice.scale_loads(std::max(0.0, entry.level + kMoveRounds * entry.trend) / load);
    }
    updated.push_back(entry);
  }
  memory.slices = std::move(updated);
  return expected;
}

void remember_moves(const Plan& plan, std::uint64_t round, Memory& memory) {
  for (const Move& move : plan.moves) {
    if (move.kind != MoveKind::Place || move.from == move.to) continue;
    auto it = std::upper_bound(memory.slices.begin(), memory.slices.end(), move.range.begin,
                               [](std::uint32_t begin, const SliceMemory& slice) { return begin < slice.range.end; });
    for (; it != memory.slices.end() && it->range.begin < move.range.end; ++it) {
      it->moved_round = round;
      it->moved_from = move.from;
    }
  }
}

bool is_cooling_down(const SliceMemory& memory, std::uint64_t round) {
  return memory.moved_round != 0 && round < memory.moved_round + kCoolDownRounds;
}

}  // namespace fjord::balancer
