#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "fjord/client/client.h"

namespace fjord {

/// Totals of a Feeder.
struct FeedStats {
  std::uint64_t submitted = 0;
  std::uint64_t ok = 0;
  std::uint64_t in_doubt = 0;
  std::map<StatusCode, std::uint64_t> failed;  ///< Operations that were certainly not applied, by reason.
  std::uint64_t retried = 0;                   ///< Attempts after the first one of each operation.
  std::uint64_t bytes = 0;                     ///< Submitted bytes: ids and contents.
  double seconds = 0;                          ///< Time from the first submit to the last result.
  double latency_p50_seconds = 0;              ///< Latency of an operation, retries included; exact to 3 %.
  double latency_p99_seconds = 0;
  double latency_max_seconds = 0;
  std::size_t window = 0;  ///< Present limit of pending operations.

  std::uint64_t failed_total() const;
};

/// Keeps many operations of one source in flight, within a window of operations and bytes that bounds memory and
/// follows the cluster's capacity. The window halves when the cluster answers BUSY and grows again by a few operations
/// for each window of results.
///
/// Threading: any thread; several threads can submit at the same time.
/// Lifetime: `client` outlives the feeder. The destructor does not wait for pending operations; after it `on_result` is
/// not called any more.
class Feeder {
 public:
  struct Options {
    std::size_t window_operations = 2048;    ///< Maximum number of pending operations, at least 1.
    std::size_t window_operations_min = 16;  ///< Lower limit of the window, in operations.
    /// Maximum bytes of pending operations; a single operation can exceed it if it is alone.
    std::size_t window_bytes = std::size_t{16} << 20;
    Duration timeout{0};  ///< Timeout of each operation; 0: the client's default.
    /// Writes documents of Fjord's own types too (own_types.h); else their operations end as Unauthorized, not applied.
    bool writes_own_types = false;
    /// Priority of operations that name none; Default: the client's.
    rpc::Priority priority = rpc::Priority::Default;
    /// Called on the client's executor for each operation, in the order of the results; `tag` is the argument of
    /// submit().
    UniqueFunction<void(std::uint64_t tag, OperationOutcome outcome)> on_result;
    /// Called on the client's executor when the window has room again after try_submit() returned false.
    UniqueFunction<void()> on_room;
  };

  explicit Feeder(AsyncClient& client);
  Feeder(AsyncClient& client, Options options);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  /// Starts the operation and moves from it if the window has room; else leaves it unchanged and returns false.
  bool try_submit(rpc::Operation& operation, std::uint64_t tag = 0);
  /// Waits for room, then starts the operation. Must not be called on the client's executor (checked).
  void submit(rpc::Operation operation, std::uint64_t tag = 0);
  /// Waits until all operations have ended. Must not be called on the client's executor (checked).
  void flush();
  /// Calls `done` on the client's executor as soon as no operation of the feeder is pending.
  void when_idle(UniqueFunction<void()> done);

  std::size_t pending() const;
  FeedStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fjord
