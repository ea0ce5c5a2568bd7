#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "fjord/client/connect.h"
#include "fjord/library/client.h"

namespace fjord {

/// What the parts of the library share: the connection, and what it is to be used with. Not for programs of users.
///
/// Threading: any thread. Lifetime: that of the Client.
class ClientCore {
 public:
  ClientCore(std::string_view addresses, const ClientSettings& settings);

  /// OK, or what is wrong with the addresses; connection() must not be called then.
  const Status& address_error() const { return address_error_; }
  Connection& connection() { return *connection_; }
  AsyncClient& client() { return connection_->client(); }
  const ClientSettings& settings() const { return settings_; }
  Duration timeout(Duration asked) const { return asked == Duration(0) ? settings_.timeout : asked; }

  /// Waits until a distributor has answered. Errors: Client::ping().
  Status wait_ready();
  /// Asks for the newest schemas and state. Errors: as wait_ready().
  Status refresh();
  /// After wait_ready().
  std::shared_ptr<const DocumentTypeRepo> types();
  /// With that type, which may be younger than what the client knew. Errors: UnknownType; as wait_ready().
  Result<std::shared_ptr<const DocumentTypeRepo>> types_with(std::string_view type);
  /// Makes `into` know what the client knows now. Errors: those of SnapshotHolder::update().
  Status copy_snapshot(rpc::SnapshotHolder& into);

 private:
  const ClientSettings settings_;
  Status address_error_;
  std::unique_ptr<Connection> connection_;
};

/// Runs `task` on the executor and waits until it has ended.
void run_on(Executor& executor, UniqueFunction<void()> task);

/// Waits for a value that a callback on another thread brings.
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

/// Sends `request` to one distributor and waits for the answer. Errors: those of the call, and a status that is not OK.
template <typename R>
Result<typename R::Reply> ask_cluster(Connection& connection, R request, Duration timeout) {
  const auto answer = std::make_shared<Answer<Result<typename R::Reply>>>();
  connection.client().call_any(std::move(request), timeout,
                               [answer](Result<typename R::Reply> reply) { answer->set(std::move(reply)); });
  Result<typename R::Reply> reply = answer->wait();
  if (reply && !reply->status) return reply->status;
  return reply;
}

/// The same to one node.
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
