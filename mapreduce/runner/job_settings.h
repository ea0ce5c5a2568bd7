#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/rpc/distributor_messages.h"

namespace fjord::mapreduce {

/// Settings for how a job runs, not for what it computes. Written as "name=value"; most can be changed while the job
/// runs.
struct JobSettings {
  enum class ThrottleBy { Sent, Delay };

  std::uint64_t throttle = 0;                 ///< Bytes per second; 0: no limit.
  ThrottleBy throttle_by = ThrottleBy::Sent;  ///< How `throttle` is enforced.
  std::uint64_t dead_letters_max = 100;       ///< Documents that map may fail on before the job fails.
  std::uint64_t memory_max = 0;  ///< Bytes of groups and results in the job's process; 0: the process's limit.
  std::uint64_t disk_max = 0;    ///< Bytes that all tasks spill to disk; 0: no limit.
  std::uint64_t sent_max = 0;    ///< Bytes of tuples that all tasks send or put; 0: no limit.
  std::uint64_t cpu_max = 0;     ///< Processor seconds of all tasks; 0: no limit.
  /// Concurrent tasks on a storage node; 0: the number in the job's specification.
  std::uint32_t visitors_per_node = 0;
  std::uint32_t weight = 10;  ///< Share of storage node time relative to other jobs.
  /// Priority of the tasks on storage nodes. Default: normal for aggregations, because their callers wait for them,
  /// else background.
  rpc::Priority priority = rpc::Priority::Default;

  /// Errors: InvalidArgument that names the setting and what was expected.
  static Result<JobSettings> parse(const std::vector<rpc::Parameter>& settings);
  friend bool operator==(const JobSettings&, const JobSettings&) = default;
};

/// Returns `settings` with values from `changes` replacing those of the same name; sorted by name.
std::vector<rpc::Parameter> merge_settings(const std::vector<rpc::Parameter>& settings,
                                           const std::vector<rpc::Parameter>& changes);

}  // namespace fjord::mapreduce
