#include "fjord/common/turn_queue.h"

#include <algorithm>

#include "fjord/common/check.h"

namespace fjord {
namespace {

constexpr int kMoment = 10;  // A group that was idle for this many turns counts as new.

double microseconds_of(Duration duration) { return static_cast<double>(duration.count()); }

}  // namespace

void TurnQueue::wait(Member member, TurnGroup group, MonotonicTime now) {
  FJORD_CHECK(!waiting_.contains(member) && !running_.contains(member));
  const auto [it, is_new] = groups_.try_emplace(group.id);
  Group& known = it->second;
  known.weight = std::max(1u, group.weight);
  if (is_new) {
    const auto before = idle_.extract(group.id);
    const bool was_here = !before.empty() && now - before.mapped().since < kMoment * turn_;
    // Starts at present_, or at a waiting group's lower time if additional turns moved present_ beyond it.
    known.time = ready_.empty() ? present_ : std::min(present_, ready_.begin()->first);
    if (!was_here) known.time -= microseconds_of(turn_) / known.weight;
    if (!before.empty()) known.time = std::max(known.time, before.mapped().time);
  }
  const std::uint64_t arrival = arrivals_++;
  known.waiting.emplace(arrival, std::pair(member, now));
  waiting_.emplace(member, std::pair(group.id, arrival));
  ready_.emplace(known.time, group.id);
}

std::optional<TurnQueue::Member> TurnQueue::next(MonotonicTime now) {
  if (ready_.empty()) return std::nullopt;
  if (running_.size() < slots_) return begin(groups_.find(ready_.begin()->second), now);
  for (const auto& [time, id] : ready_) {
    const auto group = groups_.find(id);
    const bool is_patient = group->second.running > 0 || now - group->second.waiting.begin()->second.second < patience_;
    if (!is_patient) return begin(group, now);
  }
  return std::nullopt;
}

/// Begins a turn of the group and charges it in advance, so that one group cannot take all slots during its first turn.
TurnQueue::Member TurnQueue::begin(Groups::iterator group, MonotonicTime now) {
  Group& known = group->second;
  const Member member = known.waiting.begin()->second.first;
  known.waiting.erase(known.waiting.begin());
  waiting_.erase(member);
  ready_.erase({known.time, group->first});
  present_ = std::max(present_, known.time);
  known.time += microseconds_of(turn_) / known.weight;
  ++known.running;
  if (!known.waiting.empty()) ready_.emplace(known.time, group->first);
  running_.emplace(member, Turn{group->first, now});
  return member;
}

void TurnQueue::end(Member member, MonotonicTime now) {
  const auto turn = running_.find(member);
  FJORD_CHECK(turn != running_.end());
  const auto group = groups_.find(turn->second.group);
  Group& known = group->second;
  ready_.erase({known.time, group->first});
  known.time += (microseconds_of(now - turn->second.began) - microseconds_of(turn_)) / known.weight;
  --known.running;
  running_.erase(turn);
  if (!known.waiting.empty()) ready_.emplace(known.time, group->first);
  forget_if_idle(group, now);
}

void TurnQueue::remove(Member member, MonotonicTime now) {
  if (running_.contains(member)) return end(member, now);
  const auto place = waiting_.find(member);
  if (place == waiting_.end()) return;
  const auto group = groups_.find(place->second.first);
  group->second.waiting.erase(place->second.second);
  waiting_.erase(place);
  if (group->second.waiting.empty()) ready_.erase({group->second.time, group->first});
  forget_if_idle(group, now);
}

/// Removes a group without members. Keeps the virtual time of a group that exceeded its share, so that a short idle
/// time does not erase its debt.
void TurnQueue::forget_if_idle(Groups::iterator group, MonotonicTime now) {
  if (!group->second.waiting.empty() || group->second.running > 0) return;
  idle_[group->first] = {group->second.time, now};
  groups_.erase(group);
  std::erase_if(
      idle_, [&](const auto& one) { return one.second.time <= present_ && now - one.second.since >= kMoment * turn_; });
}

std::optional<MonotonicTime> TurnQueue::next_extra() const {
  std::optional<MonotonicTime> first;
  if (running_.size() < slots_) return first;
  for (const auto& [time, id] : ready_) {
    const Group& group = groups_.at(id);
    if (group.running > 0) continue;
    const MonotonicTime due = group.waiting.begin()->second.second + patience_;
    first = first ? std::min(*first, due) : due;
  }
  return first;
}

}  // namespace fjord
