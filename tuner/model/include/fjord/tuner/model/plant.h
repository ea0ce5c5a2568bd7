#pragma once

#include <cstdint>

#include "fjord/common/random.h"

namespace fjord::tuner::model {

struct PlantOptions {
  double capacity = 1000;  ///< Units of work a second, foreground and background.
  double drift = 0;        ///< The capacity wanders by this share of itself in a period, between half and twice.
  double base_s = 1e-3;    ///< Latency without any load.
  double noise = 0.04;     ///< Of the measured p99.
  double period_s = 1;
};

/// A machine under control: foreground and background share its capacity, queues form as in a server with random
/// arrivals, and what cannot be served in a period stands before the next. Not the model of the advisor.
class Plant {
 public:
  Plant(const PlantOptions& options, std::uint64_t seed)
      : options_(options), capacity_(options.capacity), random_(seed) {}

  /// One period with so many units of foreground work and leave for so much background work a second. Returns the p99
  /// of the foreground that would be measured.
  double step(double foreground, double background);
  /// The mean latency of the last period, that goes with its p99.
  double mean_s() const { return mean_s_; }
  /// From now on the machine is so many times as fast, until the next call.
  void set_speed(double speed) { speed_ = speed; }
  /// How much background work would bring p99 to `target_s`, without noise and backlog; 0 if there is no room for any.
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
