#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "fjord/common/log_lines.h"
#include "fjord/common/thread_annotations.h"
#include "http/message.h"

namespace fjord::gateway {

/// A request that has ended.
struct EndedRequest {
  const HttpRequest& request;
  unsigned status = 0;
  std::size_t bytes = 0;  ///< The body of the answer, as it was sent.
  std::chrono::steady_clock::duration took{};
  std::string_view protocol;
  bool is_away = false;  ///< The client went away before the end.
};

/// The access log: a line for each request, or for each that failed or took long. A thread of its own writes the lines
/// of 10 ms together; the process that is killed loses those.
///
/// Threading: any thread. Lifetime: the destructor writes what is left.
class AccessLog {
 public:
  /// `write` takes whole lines; it is called on one thread, and may wait for a disk.
  /// `has_problems_only`: requests that were answered well within a second have no line. A document that is not there
  /// and a false condition are good answers.
  explicit AccessLog(std::function<void(std::string_view)> write, std::size_t waiting_bytes_max = std::size_t{4} << 20,
                     bool has_problems_only = false);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  /// Waits while `waiting_bytes_max` or more are not taken yet.
  void add(const EndedRequest& ended);

 private:
  void run();

  const std::function<void(std::string_view)> write_;
  const std::size_t waiting_bytes_max_;
  const bool has_problems_only_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable has_room_;
  log::LineFormatter formatter_ FJORD_GUARDED_BY(mutex_);
  std::string lines_ FJORD_GUARDED_BY(mutex_);
  bool is_ending_ FJORD_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fjord::gateway
