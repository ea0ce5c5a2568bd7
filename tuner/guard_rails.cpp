#include "fjord/tuner/guard_rails.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/common/byte_units.h"

namespace fjord::tuner {
namespace {

constexpr Duration kHour = seconds(3600);

Status never(std::string why) { return Status(StatusCode::InvalidArgument, std::move(why)); }
Status not_now(std::string why) { return Status(StatusCode::Busy, std::move(why)); }

}  // namespace

Status GuardRails::check_structural(const Change& change) const {
  for (const Made& made : made_) {
    if (made.is_structural && clock_.now() - made.at < options_.structural_pause) {
      return not_now("another structural change is too recent");
    }
  }
  const double a = static_cast<double>(std::max<std::int64_t>(1, change.old_value));
  const double b = static_cast<double>(std::max<std::int64_t>(1, change.new_value));
  if (std::max(a / b, b / a) >= options_.structural_ratio_min) return Status::ok();
  const double gain = change.predicted_gain - 1;
  if (gain <= options_.structural_gain_min - 1) {
    return never(fmt::format("it is less than {:.1f} times off and gains {:.1f} % only", options_.structural_ratio_min,
                             100 * gain));
  }
  const double hours = static_cast<double>(options_.gain_counts_for.count()) / static_cast<double>(kHour.count());
  const double cost = change.moved_bytes / (options_.work_bytes_per_hour * hours);
  if (gain <= options_.gain_over_move_cost_min * cost) {
    return never(fmt::format("it gains {:.1f} % and moving costs {:.1f} % of a day's work", 100 * gain, 100 * cost));
  }
  return Status::ok();
}

Status GuardRails::check(const Change& change, const ClusterCondition& condition) const {
  if (change.knob == nullptr) return never("it is not a knob of the tuner");
  if (change.new_value < change.knob->min || change.new_value > change.knob->max) {
    return never(fmt::format("{} has bounds {} to {}", change.knob->name, change.knob->min, change.knob->max));
  }
  if (condition.is_under_maintenance) return not_now("the cluster is under maintenance");
  if (condition.is_degraded) return not_now("the cluster is degraded");
  if (change.memory_bytes > condition.memory_left_bytes && change.memory_bytes > 0) {
    return never(fmt::format("it takes {} more memory and a node has {} left", bytes_text(change.memory_bytes),
                             bytes_text(condition.memory_left_bytes)));
  }
  if (change.moved_bytes > 0 && condition.fullest_used_share >= options_.watermark_share) {
    return not_now(fmt::format("a node is {:.0f} % full", 100 * condition.fullest_used_share));
  }
  double churn = change.moved_bytes;
  for (const Made& made : made_) {
    if (clock_.now() - made.at < kHour) churn += made.bytes;
  }
  if (change.moved_bytes > 0 && churn > options_.churn_bytes_per_hour) {
    return not_now(fmt::format("{} would be moved within an hour", bytes_text(churn)));
  }
  return change.knob->structural ? check_structural(change) : Status::ok();
}

void GuardRails::made(const Change& change) {
  const Duration longest = std::max(options_.structural_pause, kHour);
  while (!made_.empty() && clock_.now() - made_.front().at >= longest) made_.pop_front();
  made_.push_back({clock_.now(), change.knob->structural, change.moved_bytes});
}

}  // namespace fjord::tuner
