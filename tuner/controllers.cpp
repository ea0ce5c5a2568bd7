#include "fjord/tuner/controllers.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "fjord/common/check.h"

namespace fjord::tuner {
namespace {

Decision decided(ControlMode mode, std::int64_t& value, std::int64_t wanted, std::string reason) {
  Decision decision;
  decision.old_value = decision.new_value = value;
  if (mode == ControlMode::Off || wanted == value) return decision;
  decision.is_change = true;
  decision.new_value = wanted;
  decision.reason = std::move(reason);
  if (mode == ControlMode::On) {
    decision.is_applied = true;
    value = wanted;
  }
  return decision;
}

}  // namespace

Status Actuators::claim(std::string_view knob, std::string_view owner) {
  const auto [at, is_new] = owners_.emplace(knob, owner);
  if (is_new) return Status::ok();
  return Status(StatusCode::AlreadyExists, fmt::format("{} is turned by {}", knob, at->second));
}

YieldController::YieldController(const YieldOptions& options, ControlMode mode)
    : options_(options), mode_(mode), value_(std::clamp(options.start, options.floor, options.ceiling)) {
  FJORD_CHECK(options.floor > 0 && options.floor <= options.ceiling && options.unit > 0 && options.target_s > 0);
}

std::int64_t YieldController::after_breach(double ratio) {
  good_periods_ = 0;
  int halvings = 1;
  if (ratio > 1.5) {
    // The load has changed, so the value that was too much before is obsolete. The value is halved once for each
    // doubling of the latency.
    too_much_.reset();
    halvings = std::clamp(static_cast<int>(std::ceil(std::log2(ratio))), 1, 3);
  } else if (!has_just_halved_) {
    too_much_ = value_;
  }
  has_just_halved_ = true;
  return std::max(options_.floor, value_ >> halvings);
}

std::int64_t YieldController::grown() {
  ++good_periods_;
  if (too_much_ && good_periods_ >= options_.retry_periods) {
    too_much_.reset();
    good_periods_ = 0;
  }
  if (!too_much_) return std::min(options_.ceiling, value_ + options_.unit);
  const std::int64_t below = *too_much_ - std::max(options_.unit, *too_much_ / 16);
  if (value_ >= below) return value_;
  const std::int64_t quickly = std::max(options_.unit, (below - value_) / 2);
  return std::min({options_.ceiling, below, value_ + quickly});
}

void YieldController::adopt(std::int64_t value) {
  value_ = value;
  too_much_.reset();
  good_periods_ = 0;
  has_just_halved_ = false;
}

Decision YieldController::step(std::optional<double> p99_s, bool wants_more) {
  const double ratio = p99_s ? *p99_s / options_.target_s : 0;
  std::int64_t wanted = value_;
  std::string reason;
  if (ratio > 1 + options_.dead_band) {
    wanted = after_breach(ratio);
    reason = fmt::format("p99 {:.1f} ms is over the target of {:.1f} ms", 1e3 * *p99_s, 1e3 * options_.target_s);
  } else {
    has_just_halved_ = false;
    // If p99 is far below the target, the load has fallen and the value that was too much before is obsolete.
    if (ratio < 0.5) too_much_.reset();
    if (ratio < 1 - options_.dead_band && wants_more) {
      wanted = grown();
      reason = "the foreground is well and there is more to do";
    }
  }
  return decided(mode_, value_, wanted, std::move(reason));
}

Decision EntriesController::report(std::uint64_t node, std::int64_t entries, double cpu_share) {
  if (cpu_share >= options_.cpu_share_min) {
    const auto [at, is_new] = reports_.emplace(node, entries);
    if (!is_new) at->second = std::min(at->second, entries);
  }
  return decide(fmt::format("{} nodes found puts bound by the CPU", reports_.size()));
}

Decision EntriesController::decide(std::string reason) {
  std::int64_t wanted = kUnlimited;
  if (reports_.size() >= std::max<std::uint64_t>(1, options_.quorum)) {
    std::vector<std::int64_t> sorted;
    for (const auto& [node, entries] : reports_) sorted.push_back(entries);
    std::sort(sorted.begin(), sorted.end());
    wanted = std::max(options_.floor, sorted[std::max<std::uint64_t>(1, options_.quorum) - 1]);
  }
  // The value only falls until it is reset.
  if (value_ != kUnlimited && wanted > value_ && !reports_.empty()) wanted = value_;
  return decided(mode_, value_, wanted, std::move(reason));
}

Decision EntriesController::reset() {
  reports_.clear();
  return decide("reset");
}

Decision EntriesController::reset(double cpu_share_min) {
  options_.cpu_share_min = cpu_share_min;
  return reset();
}

Decision SplitLimitController::step(const ClusterSize& size, const ClusterCondition& condition) {
  const double buckets = options_.buckets_per_node * size.nodes / std::max(1.0, size.redundancy);
  const double bytes = std::clamp(size.bytes / buckets / options_.fill, static_cast<double>(options_.floor),
                                  static_cast<double>(options_.ceiling));
  const auto wanted = static_cast<std::int64_t>(std::exp2(std::round(std::log2(bytes))));
  wanted_for_ = wanted == wanted_ ? wanted_for_ + 1 : 1;
  wanted_ = wanted;
  if (wanted == value_ || wanted_for_ < options_.agreeing_periods || mode_ == ControlMode::Off) {
    return decided(mode_, value_, value_, "");
  }
  // Buckets are split in place: no data is sent and no document is rewritten.
  const Change change{find_knob("distributor.bucket_bytes_max"), value_, wanted, 1, 0, 0};
  if (!rails_.check(change, condition)) return decided(mode_, value_, value_, "");
  Decision decision =
      decided(mode_, value_, wanted, fmt::format("{:.0f} buckets a node are wanted", options_.buckets_per_node));
  if (decision.is_applied) rails_.made(change);
  return decision;
}

Decision CacheController::step(const CacheMisses& misses) {
  if (pause_ > 0) {
    --pause_;
    return decided(mode_, value_, value_, "");
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
  Decision decision = decided(ControlMode::Advise, value_, is_useful ? value : value_, std::move(reason));
  if (mode_ == ControlMode::Off) return decided(mode_, value_, value_, "");
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
