#include "forecast.h"

#include <algorithm>
#include <cmath>

namespace fjord::balancer {
namespace {

constexpr double kLevelWeight = 0.7;   // Weight of the newest load when the level is smoothed.
constexpr double kTrendWeight = 0.5;   // Weight of the newest change when the trend is smoothed.
constexpr double kChangeWeight = 0.3;  // Weight of the newest change when it is judged whether there is a trend at all.
constexpr double kMoveRounds = 2.0;  // Rounds that a move takes, and so the rounds ahead for which loads are forecast.

/// Computes the memory of a range from older entries: each contributes its loads by the part of it inside of the range.
SliceMemory recall(const std::vector<SliceMemory>& known, std::size_t& first, const BucketRange& range) {
  while (first < known.size() && known[first].range.end <= range.begin) ++first;
  SliceMemory found{.range = range};
  for (std::size_t i = first; i < known.size() && known[i].range.begin < range.end; ++i) {
    const SliceMemory& old = known[i];
    const std::uint32_t shared = std::min(old.range.end, range.end) - std::max(old.range.begin, range.begin);
    const double part = static_cast<double>(shared) / old.range.size();
    found.level += old.level * part;
    found.trend += old.trend * part;
    found.load += old.load * part;
    found.expected += old.expected * part;
    found.change += old.change * part;
    found.change_size += old.change_size * part;
    if (old.moved_round > found.moved_round) {
      found.moved_round = old.moved_round;
      found.moved_from = old.moved_from;
    }
  }
  return found;
}

void smooth(double& value, double newest, double weight) { value = weight * newest + (1.0 - weight) * value; }

/// Returns the change of the load in a round that is to be expected. The trend counts as far as all changes had one
/// direction: a load that goes up and down from round to round has none. And it counts for no more than the last
/// change: a load that has jumped stays where it is.
double expected_change(const SliceMemory& entry, double last_change) {
  if (entry.change_size <= 0.0 || entry.trend * last_change <= 0.0) return 0.0;
  const double trend = std::abs(entry.change) / entry.change_size * entry.trend;
  return std::copysign(std::min(std::abs(trend), std::abs(last_change)), trend);
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
      const double last_change = load - entry.load;
      const double level = kLevelWeight * load + (1.0 - kLevelWeight) * (entry.level + entry.expected);
      smooth(entry.trend, level - entry.level, kTrendWeight);
      entry.level = level;
      smooth(entry.change, last_change, kChangeWeight);
      smooth(entry.change_size, std::abs(last_change), kChangeWeight);
      entry.expected = expected_change(entry, last_change);
    }
    entry.load = load;
    if (load > 0.0) {
      slice.scale_loads(std::max(0.0, entry.level + kMoveRounds * entry.expected) / load);
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

bool has_just_left(const SliceMemory& memory, std::uint16_t node, std::uint64_t round) {
  return memory.moved_round != 0 && memory.moved_from == node && round < memory.moved_round + kNotBackRounds;
}

}  // namespace fjord::balancer
