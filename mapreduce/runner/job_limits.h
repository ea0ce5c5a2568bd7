#pragma once

#include <cstdint>
#include <string>

#include "fjord/mapreduce/job_state.h"
#include "job_settings.h"

/// The limits of a job as a whole.
namespace fjord::mapreduce {

/// OK if the job is within its limits. `processor_us`: processor time of all its tasks in microseconds. Errors:
/// TooLarge; InvalidArgument for dead letters. Both name the limit.
Status check_limits(const JobState& job, const JobSettings& settings, std::uint64_t processor_us);

/// The memory in bytes that groups and rows may take in the job's process, and the setting that it comes from.
struct MemoryLimit {
  std::uint64_t bytes = 0;
  const char* name = "";     ///< The name in error messages: "setting x".
  const char* setting = "";  ///< Name of the setting alone.

  ErrorDetails details() const { return {.limit = std::to_string(bytes), .setting = setting}; }
};
MemoryLimit memory_limit(const JobSettings& settings, std::uint64_t process_bytes);

}  // namespace fjord::mapreduce
