#include "background_health.h"

#include <utility>

#include "fjord/common/log.h"

namespace fjord::slotfile {
namespace {

/// Time without a failure after which the work counts as going well again.
constexpr Duration kWellAfter = std::chrono::seconds(5);
/// Interval at which a failure that lasts is logged again.
constexpr Duration kLogAgain = std::chrono::minutes(10);

}  // namespace

void BackgroundHealth::note_failure(const Status& status, MonotonicTime now) {
  failed_at_ = now;
  if (status.code() != StatusCode::NoSpace) status_ = status;
  std::string text = status.to_string();
  if (text == logged_ && now - logged_at_ < kLogAgain) return;
  log::warning("slotfile", "stripe {}: background work waits: {}", stripe_, text);
  logged_ = std::move(text);
  logged_at_ = now;
}

void BackgroundHealth::note_success(MonotonicTime now) {
  if (status_ || now - failed_at_ <= kWellAfter) return;
  status_ = Status::ok();
  log::info("slotfile", "stripe {}: background work goes on", stripe_);
}

}  // namespace fjord::slotfile
