#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/common/tunable.h"
#include "fjord/rpc/distributor_messages.h"

namespace fjord::distributor {

/// Decides which arriving operations a distributor accepts. The budget limits the operations and bytes in flight. The
/// lower classes may use only a part of it, so background operations are refused first. Health checks are not subject
/// to admission.
///
/// Threading: ended() and released() on the distributor's executor, all else from any thread.
class Admission {
 public:
  enum class Class : std::uint8_t { High, Normal, Background };
  static constexpr std::size_t kClasses = 3;
  enum class Refusal : std::uint8_t {
    Full,      ///< The budget of the operation's class is used up.
    TooLate,   ///< Recent operations took longer than this sender is going to wait.
    Expired,   ///< The deadline passed before the operation could begin.
    SlowNode,  ///< Too many operations wait for a slow storage node that would have to take this one.
  };
  static constexpr std::size_t kRefusals = 4;

  struct Limits {
    std::size_t operations_max = 0;
    std::size_t bytes_max = 0;
  };

  Admission(TunableRegistry& tunables, MetricRegistry& metrics, Limits limits);

  static Class class_of(const rpc::Operation& operation);

  /// Adds `operations` operations of one class to the budget, all or none. If there is no room, returns why not. Always
  /// accepts when nothing is in flight, however large the operations are. `timeout` is the longest time that the sender
  /// waits.
  std::optional<Refusal> admit(Class its, std::size_t operations, std::size_t bytes, Duration timeout);
  /// Must be called when an admitted operation has ended. `served`: storage nodes did what it asked for.
  void ended(MonotonicTime now, Duration took, bool served);
  /// Gives these bytes back to the budget.
  void released(std::size_t bytes);
  /// Counts refused operations. Returns the retry hint in milliseconds: when half of the operations in flight will have
  /// ended, at the recent rate.
  std::uint32_t count_refusal(Class its, Refusal why, std::size_t operations);

  /// Returns how many operations may wait for one slow storage node; the rest of the budget is for documents on other
  /// nodes.
  std::size_t slow_node_share() const { return static_cast<std::size_t>(operations_max_.value()) / 8; }

  std::size_t operations() const { return operations_.load(std::memory_order_relaxed); }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint32_t retry_after_ms() const;
  /// Returns the error Busy that says what is in flight, the limits, and their settings. Its limit() and setting() are
  /// those of the budget (operations or bytes) that is used more.
  Status describe(Class its) const;

 private:
  std::size_t share(Class its, const Tunable& whole) const;
  bool fits(Class its, std::size_t operations, std::size_t bytes) const;

  Tunable& operations_max_;
  Tunable& bytes_max_;
  std::atomic<std::size_t> operations_{0};
  std::atomic<std::size_t> bytes_{0};
  /// Averages over the last periods, with less weight the older these are; 0: nothing measured yet.
  std::atomic<std::int64_t> ended_per_second_{0};
  std::atomic<std::int64_t> latency_us_{0};

  // Start of the current measuring period; used on the executor only.
  MonotonicTime period_start_;
  std::int64_t period_ended_ = 0;
  std::int64_t period_served_ = 0;
  std::int64_t period_latency_us_ = 0;

  std::array<std::array<Counter*, kRefusals>, kClasses> refused_{};
  Histogram& hints_;
  Gauge& bytes_gauge_;
};

}  // namespace fjord::distributor
