#pragma once

#include <mutex>

namespace fjord::gateway {

/// Ends a visit or a subscription from another thread, as long as there is one.
template <typename Source>
class StopSwitch {
 public:
  explicit StopSwitch(Source* source) : source_(source) {}
  void stop() {
    const std::lock_guard lock(mutex_);
    if (source_ != nullptr) source_->stop();
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    source_ = nullptr;
  }

 private:
  std::mutex mutex_;
  Source* source_;
};

}  // namespace fjord::gateway
