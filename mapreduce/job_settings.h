#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/rpc/messages.h"

namespace fjord::mapreduce {

/// How a job runs, not what it computes. Written as "name=value"; most can be changed while it runs.
struct JobSettings {
  enum class ThrottleBy { Sent, Delay };

  std::uint64_t throttle = 0;                 ///< Bytes a second; 0: none.
  ThrottleBy throttle_by = ThrottleBy::Sent;  ///< What is compared with it.
  std::uint64_t dead_letters_max = 100;       ///< More documents that map fails on fail the job.
  std::uint64_t memory_max = 0;               ///< Bytes of groups and results where the job runs; 0: the process's.
  std::uint64_t disk_max = 0;                 ///< Bytes that all its tasks spill; 0: no limit.
  std::uint64_t sent_max = 0;                 ///< Bytes of tuples that all its tasks send or put; 0: no limit.
  std::uint64_t cpu_max = 0;                  ///< Seconds that processors work for all its tasks; 0: no limit.
  std::uint32_t visitors_per_node = 0;        ///< Tasks at once on a storage node; 0: the job's own number.
  std::uint32_t weight = 10;                  ///< Time of storage nodes, in proportion to that of other jobs.
  /// The priority of its tasks on storage nodes; Default: normal for aggregations, as somebody waits for them, else
  /// background.
  rpc::Priority priority = rpc::Priority::Default;

  /// Errors: InvalidArgument that names the setting and what would be right.
  static Result<JobSettings> parse(const std::vector<rpc::Parameter>& settings);
  friend bool operator==(const JobSettings&, const JobSettings&) = default;
};

/// `settings` with those of `changes` in place of their own; sorted by name.
std::vector<rpc::Parameter> merge_settings(const std::vector<rpc::Parameter>& settings,
                                           const std::vector<rpc::Parameter>& changes);

/// "64 MiB", "10MB", "1.5 GB", "0": bytes, with the powers of 1000 or (KiB, MiB, GiB) 1024. Errors: InvalidArgument.
Result<std::uint64_t> parse_byte_count(std::string_view text);

}  // namespace fjord::mapreduce
