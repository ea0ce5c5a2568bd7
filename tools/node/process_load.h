#pragma once

#include <cstdint>
#include <mutex>

#include "fjord/common/thread_annotations.h"

namespace fjord {

/// Processor time of this process over the machine's, for the last half of a second or more.
///
/// Threading: any thread.
class ProcessLoad {
 public:
  ProcessLoad();
  /// 0 to 1. Measures anew at most twice a second.
  double part();

 private:
  std::mutex mutex_;
  std::int64_t measured_us_ FJORD_GUARDED_BY(mutex_);
  std::int64_t processor_us_ FJORD_GUARDED_BY(mutex_);
  double part_ FJORD_GUARDED_BY(mutex_) = 0.0;
};

}  // namespace fjord
