#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "fjord/client/connect.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/library/client.h"

namespace fjord {

/// The parts of a ClientCore that the simulation provides, which runs everything on one thread.
struct ClientSeams {
  AsyncClient& client;
  rpc::Transport& transport;
  Clock& clock;
  Executor& executor;
  Random& random;
  /// Runs the simulation until the condition holds.
  std::function<void(const std::function<bool()>& is_done)> run_until;
};

/// The connection and its settings, which the parts of the library share. Not for programs of users.
///
/// Threading: any thread. Lifetime: that of the Client.
class ClientCore {
 public:
  ClientCore(std::string_view addresses, const ClientSettings& settings);
  /// A core without connection(): visits and subscriptions can use it. Lifetime: the seams outlive it.
  ClientCore(ClientSeams seams, const ClientSettings& settings) : settings_(settings), seams_(std::move(seams)) {}

  ~ClientCore();
  ClientCore(const ClientCore&) = delete;
  ClientCore& operator=(const ClientCore&) = delete;

  /// Returns OK, or the error in the addresses or settings; in case of an error the connection and its parts must not
  /// be used.
  const Status& settings_error() const { return settings_error_; }
  Connection& connection() { return *connection_; }
  AsyncClient& client() { return seams_ ? seams_->client : connection_->client(); }
  rpc::Transport& transport() { return seams_ ? seams_->transport : connection_->transport(); }
  Clock& clock() { return seams_ ? seams_->clock : connection_->runtime().clock; }
  Executor& executor() { return seams_ ? seams_->executor : connection_->executor(); }
  Random new_random() { return seams_ ? seams_->random.fork() : Random::from_system(); }
  /// Waits until is_done(), which is called with `lock` held; returns with it held. Must not be called on the executor
  /// (ends the process): the wait would block the thread that is to end it.
  template <typename F>
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& changed, F is_done) {
    if (is_done()) return;
    FJORD_CHECK_MSG(!executor().is_current(), "a blocking call on the thread that would end it");
    if (!seams_) return changed.wait(lock, is_done);
    lock.unlock();
    seams_->run_until([&] {
      const std::lock_guard again(*lock.mutex());
      return is_done();
    });
    lock.lock();
  }
  /// Runs `task`, which may block, on a thread of its own. The destructor of the core waits for it, after a stop
  /// request.
  void run_apart(UniqueFunction<void(std::stop_source)> task);
  /// Runs `task` on the executor and waits until it has ended. On the executor itself it runs at once.
  void run(UniqueFunction<void()> task);
  const ClientSettings& settings() const { return settings_; }
  Duration timeout(Duration asked) const { return asked == Duration(0) ? settings_.timeout : asked; }

  /// Returns the state of an operation whose callback runs where the settings say. Only without a settings error.
  template <typename T>
  std::shared_ptr<detail::PendingState<T>> new_pending() {
    return std::make_shared<detail::PendingState<T>>(&executor(), settings_.executor);
  }

  /// Waits until a distributor has answered. Errors: Client::ping().
  Status wait_ready();
  /// Fetches the newest schemas and cluster state. Errors: as wait_ready().
  Status refresh();
  /// Returns the client's document types; only after wait_ready().
  std::shared_ptr<const DocumentTypeRepo> types();
  /// Returns types that include `type`; fetches the schemas if the client does not know it. Errors: UnknownType; as
  /// wait_ready().
  Result<std::shared_ptr<const DocumentTypeRepo>> types_with(std::string_view type);
  /// Updates `into` to the client's newest cluster information. Errors: those of SnapshotHolder::update().
  Status copy_snapshot(rpc::SnapshotHolder& into);

 private:
  /// Waits for the callback that `start` is given.
  template <typename F>
  Status wait_for(F start);

  const ClientSettings settings_;
  Status settings_error_;
  std::unique_ptr<Connection> connection_;
  std::optional<ClientSeams> seams_;  ///< Set if there is no connection.

  /// A thread of run_apart().
  struct Apart {
    std::stop_source stop;
    std::atomic<bool> is_over = false;
    std::thread thread;
  };
  std::mutex apart_mutex_;
  std::list<Apart> apart_ FJORD_GUARDED_BY(apart_mutex_);
};

/// Passes one value from a callback to a thread that waits for it.
template <typename T>
class Answer {
 public:
  void set(T value) {
    const std::lock_guard lock(mutex_);
    value_.emplace(std::move(value));
    changed_.notify_one();
  }
  T wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return value_.has_value(); });
    return std::move(*value_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<T> value_;
};

/// Sends `request` to any one distributor and waits for the answer. Errors: those of the call, and a status that is not
/// OK.
template <typename R>
Result<typename R::Reply> ask_cluster(Connection& connection, R request, Duration timeout) {
  const auto answer = std::make_shared<Answer<Result<typename R::Reply>>>();
  connection.client().call_any(std::move(request), timeout,
                               [answer](Result<typename R::Reply> reply) { answer->set(std::move(reply)); });
  Result<typename R::Reply> reply = answer->wait();
  if (reply && !reply->status) return reply->status;
  return reply;
}

/// Sends `request` to `node` and waits for the answer. Errors: those of the call, and a status that is not OK.
template <typename R>
Result<typename R::Reply> ask_node(Connection& connection, const rpc::Address& node, R request, Duration timeout) {
  const auto answer = std::make_shared<Answer<Result<typename R::Reply>>>();
  rpc::call(connection.transport(), node, std::move(request), timeout, connection.executor(),
            [answer](Result<typename R::Reply> reply) { answer->set(std::move(reply)); });
  Result<typename R::Reply> reply = answer->wait();
  if (reply && !reply->status) return reply->status;
  return reply;
}

}  // namespace fjord
