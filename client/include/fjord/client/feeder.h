#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "fjord/client/client.h"

namespace fjord {

/// What a Feeder did so far.
struct FeedStats {
  std::uint64_t submitted = 0;
  std::uint64_t ok = 0;
  std::uint64_t in_doubt = 0;
  std::map<StatusCode, std::uint64_t> failed;  ///< Certainly not applied, by reason.
  std::uint64_t retried = 0;                   ///< Attempts beyond the first one of each operation.
  std::uint64_t bytes = 0;                     ///< Submitted: ids and contents.
  double seconds = 0;                          ///< From the first submit to the last result.
  double latency_p50_seconds = 0;              ///< Of an operation, retries included; exact to 3 %.
  double latency_p99_seconds = 0;
  double latency_max_seconds = 0;
  std::size_t window = 0;  ///< Operations that may be pending now.

  std::uint64_t failed_total() const;
};

/// Keeps many operations of one source on their way, and no more than memory and the cluster can bear: a window in
/// operations and bytes. The window halves when the cluster answers BUSY and grows again by a few operations a window.
///
/// Threading: any thread; several may submit at once.
/// Lifetime: `client` outlives the feeder. The destructor does not wait for pending operations, but after it
/// `on_result` is not called any more.
class Feeder {
 public:
  struct Options {
    std::size_t window_operations = 2048;              ///< Most pending operations, at least 1.
    std::size_t window_operations_min = 16;            ///< BUSY answers do not shrink the window below it.
    std::size_t window_bytes = std::size_t{16} << 20;  ///< One operation may be larger if it is alone.
    Duration timeout{0};                               ///< Of each operation; 0: the client's default.
    rpc::Priority priority = rpc::Priority::Default;   ///< Of operations that name none; Default: the client's.
    /// Called on the client's executor for each operation in the order of the results; `tag` is what submit was given.
    UniqueFunction<void(std::uint64_t tag, OperationOutcome outcome)> on_result;
    /// Called on the client's executor when there is room again after try_submit() returned false.
    UniqueFunction<void()> on_room;
  };

  explicit Feeder(AsyncClient& client);
  Feeder(AsyncClient& client, Options options);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  /// Starts the operation and moves it away if the window has room for it; else leaves it as it is and returns false.
  bool try_submit(rpc::Operation& operation, std::uint64_t tag = 0);
  /// Waits for room. Not on the client's executor (checked).
  void submit(rpc::Operation operation, std::uint64_t tag = 0);
  /// Waits until all operations have ended. Not on the client's executor (checked).
  void flush();
  /// Calls `done` on the client's executor as soon as nothing is pending.
  void when_idle(UniqueFunction<void()> done);

  std::size_t pending() const;
  FeedStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fjord
