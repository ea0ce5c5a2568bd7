#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "fjord/library/client.h"
#include "gil.h"

namespace fjord::python {

/// Deletes an object of the client library, but not in a process that was forked later: the threads that the destructor
/// would wait for are not there.
struct DeleteInOwnProcess {
  pid_t owner;
  template <typename T>
  void operator()(T* object) const {
    if (is_own_process(owner)) delete object;
  }
  static bool is_own_process(pid_t owner);
  /// Raises ForkedProcess unless `owner` is this process.
  static void check_own_process(pid_t owner);
};

/// Something that ends when its client is closed: a visit, a subscription. stop(): any thread.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  virtual void stop() = 0;
};

/// The class _core.Client: a fjord::Client that is made at its first use.
///
/// Threading: every member needs the interpreter lock, which also protects the members. Lifetime: what use() returns
/// keeps the client alive; visits and calls hold it as long as they need it.
class ClientHandle {
 public:
  ClientHandle(std::string addresses, ClientSettings settings);
  ~ClientHandle();
  ClientHandle(const ClientHandle&) = delete;
  ClientHandle& operator=(const ClientHandle&) = delete;

  /// Returns the client. Raises ClientClosed, and ForkedProcess in a process that was forked after the first use.
  std::shared_ptr<Client> use();
  /// Returns use() after a distributor has answered. Raises what Client::ping() returns.
  std::shared_ptr<Client> use_connected();
  /// Raises ClientClosed if close() was called, and ForkedProcess in a process that was forked after the first use.
  void check_open() const;
  /// Ends visits and subscriptions. Waiting calls raise ClientClosed.
  void close();
  bool is_closed() const { return is_closed_; }
  /// Runs a call that may block: gil.h. Raises what check_open() raises, also if the client is closed meanwhile.
  template <typename F>
  auto run(F call, const BlockingOptions& options = {}) const {
    return call_blocking(
        std::move(call), [this] { check_open(); }, options);
  }
  /// Returns true if a distributor has answered, so that no call waits for that.
  bool is_connected() const;
  const std::string& addresses() const { return addresses_; }
  /// Returns the version of the newest cluster state that the client knows; 0: none.
  std::uint64_t state_version() const;
  const ClientSettings& settings() const { return settings_; }
  /// Calls stop() of the object when the client is closed; at once if it is closed already.
  void stop_with_client(std::weak_ptr<Stoppable> object);

  /// Waits for the result of an operation: gil.h.
  template <typename T>
  T wait(Pending<T> pending) {
    return wait_for(std::move(pending), [this] { check_open(); });
  }

  /// Closes all clients of the process, when the interpreter ends.
  static void close_all();

 private:
  const std::string addresses_;
  const ClientSettings settings_;
  std::shared_ptr<Client> client_;
  pid_t owner_ = 0;
  bool is_closed_ = false;
  std::vector<std::weak_ptr<Stoppable>> stoppables_;
};

/// Returns a duration from seconds of a user. Raises InvalidArgument for negative numbers and NaN. Absent: 0, the
/// default.
Duration to_duration(std::optional<double> seconds, std::string_view name = "timeout");
/// The same for an argument of Python; None: absent. Raises WrongType for what is no number.
Duration duration_argument(nb::handle seconds, std::string_view name = "timeout");
/// Raise InvalidArgument that lists the permitted names.
ClientPriority to_priority(std::string_view name);
ReadConsistency to_consistency(std::string_view name);
WriteDurability to_durability(std::string_view name);

}  // namespace fjord::python
