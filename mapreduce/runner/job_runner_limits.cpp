// Limits of a job, and what bounds its speed.

#include <algorithm>
#include <fmt/core.h>
#include <limits>

#include "job_runner.h"

namespace fjord::mapreduce {
namespace {

constexpr double kBusyShare = 0.6;  // share of the tasks' time above which processors are the bottleneck

}  // namespace

/// Checks the limits of the job as a whole. Errors: TooLarge; InvalidArgument for dead letters.
Status JobRunner::check_limits() const {
  if (job_.dead_letters.size() > settings_.dead_letters_max) {
    return too_many_dead_letters(settings_.dead_letters_max, job_.dead_letters.back().error);
  }
  const auto check = [](const char* name, std::uint64_t used, std::uint64_t limit, const char* what) {
    if (limit == 0 || used <= limit) return Status::ok();
    return Status(StatusCode::TooLarge, fmt::format("the job has {} {}; its limit is {}={}", what, used, name, limit),
                  {.limit = std::to_string(limit), .setting = name});
  };
  FJORD_TRY(check("disk_max", job_.counts.spilled_bytes + job_.in_passes_done(&PassCounts::spilled_bytes),
                  settings_.disk_max, "spilled so many bytes to disk:"));
  FJORD_TRY(check("sent_max", job_.counts.sent_bytes + job_.in_passes_done(&PassCounts::sent_bytes), settings_.sent_max,
                  "sent so many bytes of tuples:"));
  const std::uint64_t begun_seconds = (processor_us() + 999'999) / 1'000'000;
  return check("cpu_max", begun_seconds, settings_.cpu_max, "used so many seconds of processors:");
}

/// Returns the processor time in microseconds, including that of running and of abandoned tasks.
std::uint64_t JobRunner::processor_us() const {
  if (session_ == nullptr) return job_.processor_us;
  return std::max(job_.processor_us, processor_before_us_ + session_->progress().processor_us);
}

std::string JobRunner::bound_by() const {
  const MonotonicTime now = environment_.clock.now();
  if (job_.paused) return "paused";
  if (between_ && late_writes_until_ > now) {
    return fmt::format("writes of tasks that were given up ({} s at most)",
                       std::chrono::ceil<std::chrono::seconds>(*late_writes_until_ - now).count());
  }
  if (between_) return "its record";
  if (throttle_.is_on() && waits_until_ > now) return "throttle";
  if (environment_.share_percent < 100) {
    return fmt::format("foreground ({} % of its tasks)", environment_.share_percent);
  }
  if (session_ == nullptr) return "";
  if (session_->progress().buckets_done == 0) return "waiting for the first tasks";
  const auto snapshot = environment_.snapshot.get();
  double tasks = 0;
  for (std::size_t i = 0; i < snapshot->info().storage_addresses.size(); ++i) {
    if (snapshot->storage_serves(static_cast<std::uint16_t>(i))) tasks += visitors_per_node();
  }
  const auto elapsed = static_cast<double>((now - phase_began_).count());
  const auto busy = static_cast<double>(job_.busy_us - busy_before_us_);
  if (busy > kBusyShare * elapsed * std::max(1.0, tasks)) return "processors of the storage nodes";
  return "reading and writing on the storage nodes, or room for tasks there";
}

std::uint64_t JobRunner::memory_limit() const {
  const std::uint64_t own =
      settings_.memory_max == 0 ? std::numeric_limits<std::uint64_t>::max() : settings_.memory_max;
  return std::min(own, environment_.job_memory_bytes);
}

const char* JobRunner::memory_limit_name() const {
  return memory_limit() == settings_.memory_max ? "job's setting memory_max" : "setting mapreduce.job_memory_bytes";
}

ErrorDetails JobRunner::memory_limit_details() const {
  const bool is_own = memory_limit() == settings_.memory_max;
  return {.limit = std::to_string(memory_limit()), .setting = is_own ? "memory_max" : "mapreduce.job_memory_bytes"};
}

}  // namespace fjord::mapreduce
