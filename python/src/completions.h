#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <nanobind/nanobind.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fjord/common/unique_function.h"
#include "fjord/library/pending.h"

namespace nb = nanobind;

namespace fjord::python {

/// Results that wait for an event loop, which an eventfd wakes. Threading: any thread, without the interpreter lock.
class CompletionQueue {
 public:
  struct Completion {
    std::uint64_t token;
    /// Makes the result; needs the interpreter lock. Owns no object of Python, so that any thread may destroy it.
    UniqueFunction<nb::object()> make;
  };

  /// Raises OSError if the process has no file descriptor left.
  CompletionQueue();
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  int fd() const { return fd_; }
  void push(Completion completion);
  std::vector<Completion> take();

 private:
  const int fd_;
  std::mutex mutex_;
  std::vector<Completion> completions_;
};

/// The class _core.Completions: the futures of one event loop that operations of the client will end. The client's
/// thread never takes the interpreter lock; the loop takes the results when the queue wakes it.
///
/// Threading: the thread of the event loop, with the interpreter lock.
class Completions {
 public:
  explicit Completions(nb::object loop);

  int fd() const { return queue_->fd(); }
  /// Returns a future of the loop that gets what `convert` returns or raises for the result. `convert` owns no object
  /// of Python.
  template <typename T, typename Convert>
  nb::object future_of(Pending<T> pending, Convert convert) {
    auto [token, future] = new_future();
    std::move(pending).then([queue = queue_, token = token, convert = std::move(convert)](T value) {
      queue->push({token, [value = std::move(value), convert]() mutable { return convert(std::move(value)); }});
    });
    return future;
  }
  /// Ends the futures of all results that have arrived.
  void drain();

 private:
  std::pair<std::uint64_t, nb::object> new_future();

  nb::object create_future_;
  std::shared_ptr<CompletionQueue> queue_ = std::make_shared<CompletionQueue>();
  std::uint64_t last_token_ = 0;
  std::unordered_map<std::uint64_t, nb::object> futures_;
};

}  // namespace fjord::python
