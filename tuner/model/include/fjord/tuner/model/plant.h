#pragma once

#include <cstdint>

#include "fjord/common/random.h"

namespace fjord::tuner::model {

struct PlantOptions {
  double capacity = 1000;  ///< Units of work per second, foreground and background together.
  /// Maximum random change of the capacity in one period, as a share; the capacity stays between half and twice its
  /// start.
  double drift = 0;
  double base_s = 1e-3;  ///< Latency without any load.
  double noise = 0.04;   ///< Maximum relative error of the measured p99.
  double period_s = 1;
};

/// A simulated machine for tests of controllers: foreground and background work share its capacity, queues form as in a
/// server with random arrivals, and work that is not served in a period waits for the next. Independent of the
/// advisor's model.
class Plant {
 public:
  Plant(const PlantOptions& options, std::uint64_t seed)
      : options_(options), capacity_(options.capacity), random_(seed) {}

  /// Simulates one period with `foreground` units of work per second and permission for `background` units per second.
  /// Returns the measured p99 of the foreground, in seconds.
  double step(double foreground, double background);
  /// Mean latency of the last period, in seconds.
  double mean_s() const { return mean_s_; }
  /// Multiplies the machine's speed by `speed`, until the next call.
  void set_speed(double speed) { speed_ = speed; }
  /// Returns the background work per second that would bring p99 to `target_s`, without noise and backlog; 0 if there
  /// is no room.
  double leftover(double foreground, double target_s) const;

 private:
  double p99_at(double use) const;

  PlantOptions options_;
  double capacity_;
  double backlog_ = 0;
  double speed_ = 1;
  double mean_s_ = 0;
  Random random_;
};

}  // namespace fjord::tuner::model
