#include "job_progress.h"

#include <cmath>

namespace fjord::mapreduce {

void JobProgress::begin(std::uint64_t done, MonotonicTime now) {
  started_ = now;
  done_at_start_ = done;
  is_paused_ = false;
}

void JobProgress::pause(MonotonicTime now) {
  if (is_paused_) return;
  is_paused_ = true;
  paused_ = now;
}

void JobProgress::resume(MonotonicTime now) {
  if (!is_paused_) return;
  is_paused_ = false;
  started_ = started_ + (now - paused_);
}

JobProgress::Left JobProgress::left(std::uint64_t done, std::uint64_t total, MonotonicTime now) const {
  if (done <= done_at_start_ || total <= done) return {};
  const auto ended = static_cast<double>(done - done_at_start_);
  const auto open = static_cast<double>(total - done);
  const double elapsed = static_cast<double>(((is_paused_ ? paused_ : now) - started_).count());
  const double each = elapsed / ended;
  // The mean over `ended` tasks has the relative error 1/sqrt(ended); the sum over `open` tasks varies by sqrt(open)
  // tasks.
  const double error = each * std::sqrt(open * open / ended + open);
  return {Duration(static_cast<std::int64_t>(std::ceil(each * open))), Duration(static_cast<std::int64_t>(error))};
}

}  // namespace fjord::mapreduce
