#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "fjord/common/clock.h"
#include "fjord/common/executor.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/fleetcontroller/cluster_state_store.h"
#include "fjord/fleetcontroller/fleet_controller.h"

namespace fjord::fleetcontroller {

/// One fleet controller in the election: whether it leads, in which term, and how far it is with that.
///
/// Threading: confined to the controller's executor, except health().
class Candidate {
 public:
  /// Stranded: nodes know more than the records. The controller publishes nothing until the records are recovered.
  enum class Phase { Standby, Loading, Leading, Stranded };
  struct Events {
    std::function<void()> elected;  ///< A term has begun; the phase is Loading.
    std::function<void()> ended;    ///< The term is over; the phase is Standby.
  };

  Candidate(std::string name, const Clock& clock, ClusterStateStore& store, Executor& executor, Events events);

  /// Takes part in elections from now on.
  void campaign();
  /// Confirms the leadership if that is due. To be called every tick_pause().
  void tick();
  Duration tick_pause(Duration poll_interval) const;
  void enter(Phase phase, std::string trouble = {});
  void step_down(const std::string& why);

  Phase phase() const { return phase_; }
  /// Returns true if this controller is elected. Steps down and returns false if its confirmed leadership has timed
  /// out, so that another controller may lead.
  bool still_leads();
  /// Returns true if it is elected and has the records, so that it may publish and change them.
  bool may_publish() { return still_leads() && phase_ == Phase::Leading; }
  /// Returns true if no other controller can lead now, so that leases may be renewed.
  bool is_sure() const;
  /// Returns the present term of the store; 0 on standby.
  std::uint64_t term() const { return term_; }
  /// Wraps a callback so that it does nothing when the term in which it was made is over.
  template <typename F>
  auto in_this_term(F f) {
    return [this, changes = term_changes_, f = std::move(f)](auto&&... arguments) mutable {
      if (changes == term_changes_) f(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  /// Returns a number that changes when a term of this controller begins or ends.
  std::uint64_t term_changes() const { return term_changes_; }
  /// Returns the reason why requests are refused: NotReady, or Unavailable if only an operator can end it.
  Status why_not_leading() const;
  /// Threading: any thread.
  FleetControllerHealth health() const;

 private:
  void on_leadership(const Leadership& leadership);
  void begin_term(std::uint64_t term);
  void confirm();

  const std::string name_;
  const Clock& clock_;
  ClusterStateStore& store_;
  Executor& executor_;
  Events events_;

  Leadership leadership_;
  Phase phase_ = Phase::Standby;
  std::string trouble_;  // As FleetControllerHealth::trouble.
  std::uint64_t term_ = 0;
  std::uint64_t term_changes_ = 0;
  bool has_confirmed_ = false;
  MonotonicTime confirmed_at_;
  MonotonicTime asked_at_;  // When the last confirmation was requested.
  mutable std::mutex health_mutex_;
  FleetControllerHealth health_ FJORD_GUARDED_BY(health_mutex_);
};

}  // namespace fjord::fleetcontroller
