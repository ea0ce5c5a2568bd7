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
#include "fjord/rpc/controller_messages.h"

namespace fjord::rpc {

/// Applies the live configuration to the tunables of a process. A setting changes the tunable of the same name. A
/// tunable gets its earlier value back when its setting is no longer in the live configuration. A setting without a
/// tunable is for other processes and is ignored.
///
/// Threading: any thread. Lifetime: `tunables` outlives it.
class LiveSettings {
 public:
  /// `from_file` has the names of the settings in the configuration file.
  explicit LiveSettings(TunableRegistry& tunables, std::set<std::string> from_file = {})
      : tunables_(tunables), from_file_(std::move(from_file)) {}

  /// Applies the live configuration in `info` if its version is newer. Returns "name: why" for each setting whose value
  /// was refused and is therefore not in force.
  std::vector<std::string> apply(const ClusterInfo& info);
  /// Returns the value of every setting without the live configuration, as in PollReply::settings.
  std::vector<std::string> base() const;

 private:
  TunableRegistry& tunables_;
  const std::set<std::string> from_file_;
  mutable std::mutex mutex_;
  std::uint64_t version_ FJORD_GUARDED_BY(mutex_) = 0;
  /// Earlier values of the tunables that the live configuration has changed.
  std::map<std::string, std::int64_t> before_ FJORD_GUARDED_BY(mutex_);
  std::vector<std::string> errors_ FJORD_GUARDED_BY(mutex_);
};

/// Returns the error text with which a process that was started as `started_as` refuses a poll addressed to `called`.
std::string misnamed_text(const std::string& started_as, const std::string& called);

}  // namespace fjord::rpc
