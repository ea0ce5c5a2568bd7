#include "job_limits.h"

#include <fmt/core.h>

#include "task/task.h"

namespace fjord::mapreduce {

Status check_limits(const JobState& job, const JobSettings& settings, std::uint64_t processor_us) {
  if (job.dead_letters.size() > settings.dead_letters_max) {
    return too_many_dead_letters(settings.dead_letters_max, job.dead_letters.back().error);
  }
  const auto check = [](const char* name, std::uint64_t used, std::uint64_t limit, const char* what) {
    if (limit == 0 || used <= limit) return Status::ok();
    return Status(StatusCode::TooLarge,
                  fmt::format("the job has {}; its limit is {}={}", fmt::format(fmt::runtime(what), used), name, limit),
                  {.limit = std::to_string(limit), .setting = name});
  };
  FJORD_TRY(check("disk_max", job.counts.spilled_bytes + job.in_passes_done(&PassCounts::spilled_bytes),
                  settings.disk_max, "spilled {} bytes to disk"));
  FJORD_TRY(check("sent_max", job.counts.sent_bytes + job.in_passes_done(&PassCounts::sent_bytes), settings.sent_max,
                  "sent {} bytes of tuples"));
  const std::uint64_t begun_seconds = (processor_us + 999'999) / 1'000'000;
  return check("cpu_max", begun_seconds, settings.cpu_max, "used {} seconds of processors");
}

MemoryLimit memory_limit(const JobSettings& settings, std::uint64_t process_bytes) {
  if (settings.memory_max == 0 || settings.memory_max > process_bytes) {
    return {process_bytes, "setting mapreduce.job_memory_bytes", "mapreduce.job_memory_bytes"};
  }
  return {settings.memory_max, "job's setting memory_max", "memory_max"};
}

}  // namespace fjord::mapreduce
