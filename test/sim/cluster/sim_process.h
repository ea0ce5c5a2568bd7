#pragma once

#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/sim/sim_clock.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// A simulated process: a disk that stays, and an incarnation that ends with a crash.
class SimCluster::Process {
 public:
  Process(SimCluster& cluster, std::string name)
      : cluster_(cluster),
        name_(std::move(name)),
        env_({.seed = cluster.random_.next(), .power_loss = cluster.options_.power_loss}) {}
  virtual ~Process() = default;

  /// Makes this process, which has never been started, what the end of `other` at this moment would leave.
  void continue_from(const Process& other) {
    env_.copy_from(other.env_);
    retired_ = other.retired_;
    skew_ = other.skew_;
    incarnations_ = other.incarnations_;
    boots_ = other.boots_;
  }

  /// Starts an incarnation. If it fails because the disk is full, start is retried until it succeeds. A process on the
  /// folder of another node ends at once.
  void start() {
    if (retired_) return;
    wanted_ = true;
    if (incarnation_ != nullptr) return;  // If it is ending, it starts when it has ended.
    ++incarnations_;
    note_disturbed();
    cluster_.scheduler_.trace("start " + name_);
    incarnation_ = std::make_unique<Incarnation>(cluster_, name_, env_, skew_);
    const Status begun = begin();
    if (begun) return;
    // A node refuses the folder of another one.
    const bool is_foreign = begun.code() == StatusCode::InvalidArgument;
    FJORD_CHECK_MSG(is_foreign || begun.code() == StatusCode::NoSpace, begun.to_string());
    cluster_.scheduler_.trace(name_ + " cannot start: " + begun.to_string());
    stop();
    if (is_foreign) {
      wanted_ = false;
      return;
    }
    cluster_.scheduler_.outside().post_after(milliseconds(500), [this] {
      if (wanted_) start();
    });
  }

  void crash() {
    wanted_ = false;
    paused_ = false;
    if (incarnation_ == nullptr) return;
    note_disturbed();
    cluster_.scheduler_.trace("crash " + name_);
    stop();
  }

  /// Ends the process as SIGTERM does: it says so and goes on until the cluster counts on it no more, at most for a
  /// second. Then it ends.
  void stop_controlled() {
    wanted_ = false;
    if (incarnation_ == nullptr || paused_ || ending_) return;
    note_disturbed();
    cluster_.scheduler_.trace("controlled stop of " + name_);
    ending_ = true;
    announce_stop();
    end_when_told(incarnations_, cluster_.scheduler_.clock().now() + seconds(1));
  }

  void retire() {
    crash();
    retired_ = true;
  }
  std::uint64_t incarnations() const { return incarnations_; }
  /// Number of starts of the machine: after a loss of power a process does not have what was not synced.
  std::uint64_t boots() const { return boots_; }
  void lose_power() {
    ++boots_;
    env_.lose_power();
  }

  void pause() {
    if (incarnation_ == nullptr || paused_) return;
    note_disturbed();
    cluster_.scheduler_.trace("pause " + name_);
    paused_ = true;
    cluster_.network_.pause(name_);
    incarnation_->scheduler->pause();
  }
  void resume() {
    if (!paused_) return;
    note_disturbed();
    cluster_.scheduler_.trace("resume " + name_);
    paused_ = false;
    incarnation_->scheduler->resume();
    cluster_.network_.resume(name_);
  }

  void set_skew(Duration skew) {
    cluster_.scheduler_.trace("the clock of " + name_ + " is ahead by " + std::to_string(skew.count()) + " us");
    skew_ = skew;
    if (incarnation_ != nullptr) incarnation_->clock.set_wall_skew(skew);
  }

  SimEnv& env() { return env_; }

  bool alive() const { return incarnation_ != nullptr; }
  bool is_running() const { return alive() && !paused_; }
  bool is_retired() const { return retired_; }
  /// Something happened to the process or its disk that Fjord may need some seconds to notice.
  void note_disturbed() { disturbed_at_ = cluster_.scheduler_.clock().now(); }
  MonotonicTime disturbed_at() const { return disturbed_at_; }
  const std::string& name() const { return name_; }
  rpc::Address address() const { return name_ + ":1"; }

 protected:
  void stop() {
    ending_ = false;
    cluster_.network_.node_down(name_);
    incarnation_->scheduler->kill();
    end();
    incarnation_.reset();
  }

  struct Incarnation {
    Incarnation(SimCluster& cluster, const std::string& name, SimEnv& env, Duration skew)
        : scheduler(cluster.scheduler_.make_node_scheduler(name)),
          clock(cluster.scheduler_.clock(), {.wall_skew = skew + draw_skew(cluster), .monotonic_offset = Duration(0)}),
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
  /// Draws the error of the wall clock of an incarnation. With clock skew, half of the incarnations have a right clock;
  /// the others are off by up to ten minutes.
  static Duration draw_skew(SimCluster& cluster) {
    static constexpr std::uint64_t kMax = 600'000'000;
    if (!cluster.options_.clock_skew || cluster.random_.chance(0.5)) return Duration(0);
    return Duration(static_cast<std::int64_t>(cluster.random_.below(2 * kMax)) - static_cast<std::int64_t>(kMax));
  }

  /// Makes the objects of the process; `incarnation_` exists. Errors: NoSpace if the disk is full.
  virtual Status begin() = 0;
  virtual void announce_stop() {}
  /// Returns true if the cluster counts on this process no more.
  virtual bool is_stop_over() const { return true; }
  void end_when_told(std::uint64_t incarnation, MonotonicTime deadline) {
    if (!ending_ || incarnations_ != incarnation) return;
    if (is_stop_over() || cluster_.scheduler_.clock().now() >= deadline) {
      cluster_.scheduler_.trace("end " + name_);
      stop();
      if (wanted_) start();
      return;
    }
    cluster_.scheduler_.outside().post_after(milliseconds(10),
                                             [this, incarnation, deadline] { end_when_told(incarnation, deadline); });
  }
  /// Destroys the objects that begin() made. None of their tasks runs any more.
  virtual void end() = 0;

  SimCluster& cluster_;
  std::string name_;
  SimEnv env_;
  bool wanted_ = false;   ///< True if the process was started and has not been crashed since.
  bool retired_ = false;  ///< True if the process must never start again.
  std::uint64_t incarnations_ = 0;
  std::uint64_t boots_ = 1;
  bool paused_ = false;
  bool ending_ = false;  ///< True from SIGTERM on until the process ends.
  Duration skew_{0};
  MonotonicTime disturbed_at_{0};
  std::unique_ptr<Incarnation> incarnation_;
};

}  // namespace fjord::sim
