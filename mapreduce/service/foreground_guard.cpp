#include "foreground_guard.h"

#include <algorithm>
#include <utility>

namespace fjord::mapreduce {

ForegroundGuard::ForegroundGuard(ServiceContext& context, JobTable& table, Runtime& runtime)
    : context_(context),
      table_(table),
      p99_target_(runtime.tunables.declare("mapreduce.foreground_p99_target_ms")),
      foreground_(runtime.metrics.histogram("fjord_distributor_foreground_seconds",
                                            "From arrival to answer, of operations that are not in the background")) {
  context_.metrics.share.set(100);
}

void ForegroundGuard::begin() {
  if (std::exchange(is_measuring_, true)) return;
  foreground_.end();
  context_.executor.post_after(seconds(1), [this] { adjust(); });
}

/// Adjusts the share to the 99th percentile of the last second.
void ForegroundGuard::adjust() {
  is_measuring_ = false;
  const std::optional<double> p99 = foreground_.end();
  const double target = static_cast<double>(p99_target_.value()) / 1e3;
  if (target <= 0) {
    yield_.reset();
  } else if (!yield_ || target != yield_target_s_) {
    YieldOptions options;
    options.target_s = yield_target_s_ = target;
    options.unit = 5;
    yield_.emplace(options, ControlMode::On);
  }
  if (yield_) (void)yield_->step(p99, true);
  const std::int64_t share = yield_ ? yield_->value() : 100;
  if (share != share_percent_) {
    share_percent_ = share;
    context_.metrics.share.set(static_cast<double>(share));
    for (auto& [id, job] : table_.jobs()) {
      if (job.runner != nullptr) job.runner->share_changed();
    }
  }
  if (table_.running() > 0) begin();
}

}  // namespace fjord::mapreduce
