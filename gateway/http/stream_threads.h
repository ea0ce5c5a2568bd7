#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace fjord::gateway {

/// Threads of answers that last as long as their clients like: one for each answer, while it lasts.
///
/// Threading: any thread.
class StreamThreads {
 public:
  explicit StreamThreads(std::size_t threads_max = 512);
  ~StreamThreads() { end(); }
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  /// Runs a task on a thread of its own; returns false, and does nothing, if there are too many, or no thread can be
  /// had.
  bool run(std::function<void()> task);
  /// Waits for all tasks; later ones are refused.
  void end();

 private:
  struct Shared;

  const std::size_t threads_max_;
  const std::shared_ptr<Shared> shared_;  ///< A thread that ends uses it after end() has returned.
};

}  // namespace fjord::gateway
