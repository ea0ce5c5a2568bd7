#pragma once

#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/sim/sim_clock.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// A simulated process: a disk that stays, and everything else that ends with it.
class SimCluster::Process {
 public:
  Process(SimCluster& cluster, std::string name)
      : cluster_(cluster), name_(std::move(name)), env_({.seed = cluster.random_.next()}) {}
  virtual ~Process() = default;

  void start() {
    if (life_ != nullptr) return;
    cluster_.scheduler_.trace("start " + name_);
    life_ = std::make_unique<Life>(cluster_, name_, env_);
    begin();
  }

  void crash() {
    if (life_ == nullptr) return;
    cluster_.scheduler_.trace("crash " + name_);
    cluster_.network_.node_down(name_);
    life_->scheduler->kill();
    end();
    life_.reset();
  }

  bool alive() const { return life_ != nullptr; }
  const std::string& name() const { return name_; }
  rpc::Address address() const { return name_ + ":1"; }

 protected:
  struct Life {
    Life(SimCluster& cluster, const std::string& name, SimEnv& env)
        : scheduler(cluster.scheduler_.make_node_scheduler(name)),
          clock(cluster.scheduler_.clock(), {.wall_skew = draw_skew(cluster), .monotonic_offset = Duration(0)}),
          random(cluster.random_.next()),
          transport(cluster.network_.transport_for(name)),
          runtime{clock, *scheduler, *cluster.bulk_, env, random, metrics, tunables} {}
    std::unique_ptr<SimNodeScheduler> scheduler;
    SimNodeClock clock;
    Random random;
    MetricRegistry metrics;
    TunableRegistry tunables;
    std::unique_ptr<rpc::Transport> transport;
    Runtime runtime;
  };
  /// With clock skew, half of the processes have a wall clock that is right; the others are off by up to ten minutes,
  /// anew at each start.
  static Duration draw_skew(SimCluster& cluster) {
    static constexpr std::uint64_t kMax = 600'000'000;
    if (!cluster.options_.clock_skew || cluster.random_.chance(0.5)) return Duration(0);
    return Duration(static_cast<std::int64_t>(cluster.random_.below(2 * kMax)) - static_cast<std::int64_t>(kMax));
  }

  /// Makes the objects of the process; `life_` is there.
  virtual void begin() = 0;
  /// Destroys them; nothing of them runs any more.
  virtual void end() = 0;

  SimCluster& cluster_;
  std::string name_;
  SimEnv env_;
  std::unique_ptr<Life> life_;
};

}  // namespace fjord::sim
