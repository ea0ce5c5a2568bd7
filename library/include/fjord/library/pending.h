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

/// Runs a task, later or on another thread: `[&](std::function<void()> task) { loop.post(std::move(task)); }`.
using CallbackExecutor = std::function<void(std::function<void()>)>;

namespace detail {

/// Holds the result of one operation. Set once; read once.
template <typename T>
class PendingState : public std::enable_shared_from_this<PendingState<T>> {
 public:
  /// `executor` is that of the client, for a check. `callbacks` runs the callback; if it is empty, set() does.
  explicit PendingState(const Executor* executor, CallbackExecutor callbacks = {})
      : executor_(executor), callbacks_(std::move(callbacks)) {}

  void set(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_.emplace(std::move(value));
      if (!then_) return changed_.notify_all();
    }
    if (!callbacks_) return call_back();
    callbacks_([self = this->shared_from_this()] { self->call_back(); });
  }
  /// Calls back with this value before it returns, also if the callback waits for its turn with another value.
  void end(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_.emplace(std::move(value));
      if (!then_) return changed_.notify_all();
    }
    call_back();
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
    then_ = std::move(callback);
    const bool is_over = value_.has_value();
    lock.unlock();
    if (is_over) call_back();
  }

 private:
  /// Does nothing if the callback has run.
  void call_back() {
    std::unique_lock lock(mutex_);
    if (!then_ || !value_) return;
    const std::function<void(T)> then = std::exchange(then_, {});
    T value = std::move(*value_);
    lock.unlock();
    then(std::move(value));
  }

  const Executor* executor_;
  const CallbackExecutor callbacks_;
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
/// Threading: callbacks and coroutines run on the client's own thread, or in ClientSettings::executor, or at once if
/// the result has arrived. Do not block on the client's thread: waiting there for another operation of the same client
/// ends the process with a message. Lifetime: the client must exist while a thread waits. Pending operations end as
/// Cancelled when the client is destroyed.
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
