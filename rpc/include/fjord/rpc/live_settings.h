#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
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
  explicit LiveSettings(TunableRegistry& tunables) : tunables_(tunables) {}

  /// Does nothing if it has that version already. Returns what could not be put into force: "name: why".
  std::vector<std::string> apply(const ClusterInfo& info);

 private:
  TunableRegistry& tunables_;
  std::mutex mutex_;
  std::uint64_t version_ FJORD_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::int64_t> before_ FJORD_GUARDED_BY(mutex_);  ///< Values of those that are set now.
  std::vector<std::string> errors_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord::rpc
