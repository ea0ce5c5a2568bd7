#pragma once

#include <condition_variable>
#include <coroutine>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/common/executor.h"

namespace fjord {

namespace detail {

/// Holds the result of one operation. Set once; read once.
template <typename T>
class PendingState {
 public:
  explicit PendingState(const Executor* executor) : executor_(executor) {}

  void set(T value) {
    std::function<void(T)> then;
    {
      const std::lock_guard lock(mutex_);
      if (!then_) {
        value_.emplace(std::move(value));
        changed_.notify_all();
        return;
      }
      then = std::exchange(then_, {});
    }
    then(std::move(value));
  }
  bool is_set() {
    const std::lock_guard lock(mutex_);
    return value_.has_value();
  }
  T wait() {
    std::unique_lock lock(mutex_);
    // The check needs the executor, which may have been destroyed with its client if the value is set.
    if (!value_ && executor_ != nullptr) {
      FJORD_CHECK_MSG(!executor_->is_current(), "wait() inside a callback of the same client");
    }
    changed_.wait(lock, [this] { return value_.has_value(); });
    return std::move(*value_);
  }
  /// Returns the result. Only after is_set() has returned true.
  T take() {
    const std::lock_guard lock(mutex_);
    return std::move(*value_);
  }
  void then(std::function<void(T)> callback) {
    std::unique_lock lock(mutex_);
    if (!value_) {
      then_ = std::move(callback);
      return;
    }
    T value = std::move(*value_);
    lock.unlock();
    callback(std::move(value));
  }

 private:
  const Executor* executor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<T> value_;
  std::function<void(T)> then_;
};

}  // namespace detail

/// The result of a started operation. Take it in one of three ways:
///
///     ReadResult read = client.get(id);                            // waits
///     client.get(id).then([](ReadResult read) { ... });            // calls back
///     ReadResult read = co_await client.get(id);                   // resumes the coroutine
///
/// The operation runs even if its result is never taken.
///
/// Threading: callbacks and coroutines run on the client's own thread, or at once if the result has arrived. Do not
/// block in them: waiting there for another operation of the same client ends the process with a message. Lifetime: the
/// client must exist while a thread waits. Pending operations end as Cancelled when the client is destroyed.
template <typename T>
class [[nodiscard]] Pending {
 public:
  explicit Pending(std::shared_ptr<detail::PendingState<T>> state) : state_(std::move(state)) {}

  /// Waits for the result.
  T wait() && { return state_->wait(); }
  operator T() && { return state_->wait(); }  // NOLINT: a blocking call reads like a function
  /// Returns true if the result has arrived.
  bool is_ready() const { return state_->is_set(); }
  /// Calls `callback` once, with the result.
  void then(std::function<void(T)> callback) && { state_->then(std::move(callback)); }

  bool await_ready() const { return state_->is_set(); }
  void await_suspend(std::coroutine_handle<> waiting) {
    // The coroutine may be resumed, and this object destroyed, before then() returns.
    const auto state = state_;
    state->then([this, waiting](T value) {
      result_.emplace(std::move(value));
      waiting.resume();
    });
  }
  T await_resume() { return result_ ? std::move(*result_) : state_->take(); }

 private:
  std::shared_ptr<detail::PendingState<T>> state_;
  std::optional<T> result_;
};

}  // namespace fjord
