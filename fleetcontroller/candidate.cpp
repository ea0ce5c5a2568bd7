#include "candidate.h"

#include <algorithm>
#include <array>

#include "fjord/common/log.h"

namespace fjord::fleetcontroller {

Candidate::Candidate(std::string name, const Clock& clock, ClusterStateStore& store, Executor& executor, Events events)
    : name_(std::move(name)), clock_(clock), store_(store), executor_(executor), events_(std::move(events)) {}

void Candidate::campaign() {
  store_.campaign(name_, executor_, [this](const Leadership& now) { on_leadership(now); });
}

Duration Candidate::tick_pause(Duration poll_interval) const {
  return std::min<Duration>(poll_interval, store_.session_timeout() / 6);
}

void Candidate::tick() {
  if (still_leads()) {
    if (clock_.now() - asked_at_ >= store_.session_timeout() / 8) confirm();
  } else if (leadership_.mine) {
    store_.resign();  // The controller has stepped down by itself, and the store does not know yet.
  }
}

void Candidate::on_leadership(const Leadership& leadership) {
  leadership_ = leadership;
  if (leadership.mine && leadership.term != term_) {
    if (phase_ != Phase::Standby) step_down("it leads in a newer term");
    begin_term(leadership.term);
  } else if (!leadership.mine && phase_ != Phase::Standby) {
    step_down(leadership.leader.empty() ? "its session is over" : leadership.leader + " leads");
  }
}

void Candidate::enter(Phase phase, std::string trouble) {
  static constexpr std::array kNames = {"standby", "loading", "leading", "stranded"};
  phase_ = phase;
  trouble_ = std::move(trouble);
  const std::lock_guard lock(health_mutex_);
  health_ = {kNames[static_cast<std::size_t>(phase)], trouble_};
}

FleetControllerHealth Candidate::health() const {
  const std::lock_guard lock(health_mutex_);
  return health_;
}

void Candidate::begin_term(std::uint64_t term) {
  log::info("controller", "{} was elected, term {}", name_, term);
  ++term_changes_;
  term_ = term;
  enter(Phase::Loading, "reads the record of the cluster");
  has_confirmed_ = false;
  confirmed_at_ = clock_.now();
  confirm();
  events_.elected();
}

void Candidate::step_down(const std::string& why) {
  log::info("controller", "{} no longer leads in term {}: {}", name_, term_, why);
  ++term_changes_;
  enter(Phase::Standby);
  term_ = 0;
  events_.ended();
}

void Candidate::confirm() {
  const MonotonicTime asked_at = clock_.now();
  asked_at_ = asked_at;
  store_.confirm(term_, in_this_term([this, asked_at](const Status& confirmed) {
                   if (confirmed) {
                     confirmed_at_ = std::max(confirmed_at_, asked_at);
                     has_confirmed_ = true;
                   } else if (confirmed.code() == StatusCode::WrongDistribution) {
                     step_down(confirmed.message());
                   }
                 }));
}

bool Candidate::is_sure() const {
  // The last third of the timeout is a margin for clocks with different rates and for messages in flight.
  return has_confirmed_ && clock_.now() - confirmed_at_ <= store_.session_timeout() * 2 / 3;
}

bool Candidate::still_leads() {
  if (phase_ != Phase::Standby && clock_.now() - confirmed_at_ > store_.session_timeout()) {
    step_down("the store was not reached for so long that another controller may lead");
  }
  return phase_ != Phase::Standby;
}

Status Candidate::why_not_leading() const {
  if (phase_ == Phase::Loading) return {StatusCode::NotReady, name_ + " leads, but not yet: " + trouble_};
  // After NotReady clients would ask again until their time is over; only an operator can end this state.
  if (phase_ == Phase::Stranded) return {StatusCode::Unavailable, name_ + " has no records: " + trouble_};
  return {StatusCode::NotReady, name_ + " is not the leader, " +
                                    (leadership_.leader.empty() || leadership_.mine ? "and no controller is now"
                                                                                    : "it is " + leadership_.leader)};
}

}  // namespace fjord::fleetcontroller
