#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/thread_annotations.h"
#include "fjord/common/tunable.h"
#include "fjord/rpc/messages.h"

namespace fjord::rpc {

/// Puts the live configuration into a process's tunables: each setting of a tunable's name is its value, and one that
/// is no longer named gets back the value that it had before. Settings without a tunable are for other processes.
///
/// Threading: every thread. Lifetime: `tunables` outlives it.
class LiveSettings {
 public:
  /// `from_file` names the settings that the configuration file gives a value for.
  explicit LiveSettings(TunableRegistry& tunables, std::set<std::string> from_file = {})
      : tunables_(tunables), from_file_(std::move(from_file)) {}

  /// Does nothing if it has that version already. Returns what could not be put into force: "name: why".
  std::vector<std::string> apply(const ClusterInfo& info);
  /// PollReply::settings: what every setting would be without the live configuration.
  std::vector<std::string> base() const;

 private:
  TunableRegistry& tunables_;
  const std::set<std::string> from_file_;
  mutable std::mutex mutex_;
  std::uint64_t version_ FJORD_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::int64_t> before_ FJORD_GUARDED_BY(mutex_);  ///< Values of those that are set now.
  std::vector<std::string> errors_ FJORD_GUARDED_BY(mutex_);
};

/// Why a process that was started as `started_as` takes nothing of a poll that is meant for `called`.
std::string misnamed_text(const std::string& started_as, const std::string& called);

}  // namespace fjord::rpc
