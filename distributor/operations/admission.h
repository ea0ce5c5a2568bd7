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
#include "fjord/rpc/messages.h"

namespace fjord::distributor {

/// Which of the operations that arrive a distributor takes in, by what it has taken already: a budget of operations and
/// bytes that have not ended, of which the lower classes may use a part only. What nobody waits for is refused first,
/// and what asks how the node is does not pass by here at all.
///
/// Threading: admit() and the questions from any thread; ended() and released() on the distributor's executor.
class Admission {
 public:
  enum class Class : std::uint8_t { High, Normal, Background };
  static constexpr std::size_t kClasses = 3;
  enum class Refusal : std::uint8_t {
    Full,      ///< The budget of its class is used up.
    TooLate,   ///< What was served lately took longer than it may take.
    Expired,   ///< Its time was over before it was its turn.
    SlowNode,  ///< Too much waits for a slow storage node that would have to take it.
  };
  static constexpr std::size_t kRefusals = 4;

  struct Limits {
    std::size_t operations_max = 0;
    std::size_t bytes_max = 0;
  };

  Admission(TunableRegistry& tunables, MetricRegistry& metrics, Limits limits);

  static Class class_of(const rpc::Operation& operation);

  /// Takes `operations` of one class into the budget, all or none, and says why not. What comes while nothing is under
  /// way is always taken, however large it is. `timeout` is what its sender waits at most.
  std::optional<Refusal> admit(Class its, std::size_t operations, std::size_t bytes, Duration timeout);
  /// One operation that was admitted has ended; `served`: storage nodes did what it asked for.
  void ended(MonotonicTime now, Duration took, bool served);
  /// Its bytes are free again.
  void released(std::size_t bytes);
  /// Counts a refusal. Returns the hint that goes with it: when half of what is under way will have ended, if all goes
  /// on as lately.
  std::uint32_t count_refusal(Class its, Refusal why, std::size_t operations);

  /// How much of the budget may wait for one storage node that is slow: the rest is for the documents of the others.
  std::size_t slow_node_share() const { return static_cast<std::size_t>(operations_max_.value()) / 8; }

  std::size_t operations() const { return operations_.load(std::memory_order_relaxed); }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  std::uint32_t retry_after_ms() const;
  /// Why there is no room, for people: what is under way, the limits and their settings.
  std::string describe(Class its) const;

 private:
  std::size_t share(Class its, const Tunable& whole) const;
  bool fits(Class its, std::size_t operations, std::size_t bytes) const;

  Tunable& operations_max_;
  Tunable& bytes_max_;
  std::atomic<std::size_t> operations_{0};
  std::atomic<std::size_t> bytes_{0};
  /// Measured over the last periods, with less weight the older they are; 0: not yet.
  std::atomic<std::int64_t> ended_per_second_{0};
  std::atomic<std::int64_t> latency_us_{0};

  // The period that is being measured; on the executor.
  MonotonicTime period_start_;
  std::int64_t period_ended_ = 0;
  std::int64_t period_served_ = 0;
  std::int64_t period_latency_us_ = 0;

  std::array<std::array<Counter*, kRefusals>, kClasses> refused_{};
  Histogram& hints_;
  Gauge& bytes_gauge_;
};

}  // namespace fjord::distributor
