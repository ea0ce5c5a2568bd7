#include "fjord/tuner/controllers.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

namespace fjord::tuner {
Status Actuators::claim(std::string_view knob, std::string_view owner) {
  const auto [at, is_new] = owners_.emplace(knob, owner);
  if (is_new) return Status::ok();
  return Status(StatusCode::AlreadyExists, fmt::format("{} is turned by {}", knob, at->second));
}

ControlDecision EntriesController::report(std::uint64_t node, std::int64_t entries, double cpu_share) {
  if (cpu_share >= options_.cpu_share_min) {
    const auto [at, is_new] = reports_.emplace(node, entries);
    if (!is_new) at->second = std::min(at->second, entries);
  }
  return decide(fmt::format("{} nodes found puts bound by the CPU", reports_.size()));
}

ControlDecision EntriesController::decide(std::string reason) {
  std::int64_t wanted = kUnlimited;
  if (reports_.size() >= std::max<std::uint64_t>(1, options_.quorum)) {
    std::vector<std::int64_t> sorted;
    for (const auto& [node, entries] : reports_) sorted.push_back(entries);
    std::sort(sorted.begin(), sorted.end());
    wanted = std::max(options_.floor, sorted[std::max<std::uint64_t>(1, options_.quorum) - 1]);
  }
  // The value only falls until it is reset.
  if (value_ != kUnlimited && wanted > value_ && !reports_.empty()) wanted = value_;
  return make_decision(mode_, value_, wanted, std::move(reason));
}

ControlDecision EntriesController::reset() {
  reports_.clear();
  return decide("reset");
}

ControlDecision EntriesController::reset(double cpu_share_min) {
  options_.cpu_share_min = cpu_share_min;
  return reset();
}

ControlDecision SplitLimitController::step(const ClusterSize& size, const ClusterCondition& condition) {
  const double buckets = options_.buckets_per_node * size.nodes / std::max(1.0, size.redundancy);
  const double bytes = std::clamp(size.bytes / buckets / options_.fill, static_cast<double>(options_.floor),
                                  static_cast<double>(options_.ceiling));
  const auto wanted = static_cast<std::int64_t>(std::exp2(std::round(std::log2(bytes))));
  wanted_for_ = wanted == wanted_ ? wanted_for_ + 1 : 1;
  wanted_ = wanted;
  if (wanted == value_ || wanted_for_ < options_.agreeing_periods || mode_ == ControlMode::Off) {
    return make_decision(mode_, value_, value_, "");
  }
  // Buckets are split in place: no data is sent and no document is rewritten.
  const Change change{find_knob("distributor.bucket_bytes_max"), value_, wanted, 1, 0, 0};
  if (!rails_.check(change, condition)) return make_decision(mode_, value_, value_, "");
  ControlDecision decision =
      make_decision(mode_, value_, wanted, fmt::format("{:.0f} buckets a node are wanted", options_.buckets_per_node));
  if (decision.is_applied) rails_.made(change);
  return decision;
}

ControlDecision CacheController::step(const CacheMisses& misses) {
  if (pause_ > 0) {
    --pause_;
    return make_decision(mode_, value_, value_, "");
  }
  const double step = step_scale_ * options_.step_share * options_.budget_bytes;
  const double least = options_.least_share * options_.budget_bytes;
  // A value above the size of all indexes is useless.
  const double most = std::max(least, std::min(options_.most_share * options_.budget_bytes, 1.1 * misses.index_bytes));
  double wanted = static_cast<double>(value_);
  std::string reason;
  if (misses.index_miss_s > options_.dead_band * misses.document_miss_s) {
    wanted += step;
    reason = "misses of indexes cost more than those of documents";
  } else if (misses.document_miss_s > options_.dead_band * misses.index_miss_s) {
    wanted -= step;
    reason = "misses of documents cost more than those of indexes";
  }
  const auto value = static_cast<std::int64_t>(std::clamp(wanted, least, most));
  // If only the bounds move the value, against the direction of the need, nothing changes.
  const bool is_useful = (wanted > static_cast<double>(value_)) == (value > value_) && value != value_;
  ControlDecision decision = make_decision(ControlMode::Advise, value_, is_useful ? value : value_, std::move(reason));
  if (mode_ == ControlMode::Off) return make_decision(mode_, value_, value_, "");
  if (decision.is_change && mode_ == ControlMode::On) {
    took(decision.new_value);
    decision.is_applied = true;
  }
  return decision;
}

void CacheController::took(std::int64_t value) {
  pause_ = options_.pause_periods;
  if (value == value_) return;
  // If a whole step is too much in both directions, the value would oscillate: halve the step.
  constexpr double kLeastScale = 1.0 / 16;
  const int direction = value > value_ ? 1 : -1;
  if (direction == -direction_) step_scale_ = std::max(kLeastScale, step_scale_ / 2);
  if (direction == direction_) step_scale_ = std::min(1.0, step_scale_ * 2);
  direction_ = direction;
  value_ = value;
}

}  // namespace fjord::tuner
