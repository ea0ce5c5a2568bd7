#include "fjord/common/turn_queue.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

namespace fjord {
namespace {

constexpr Duration kTurn = milliseconds(10);
constexpr Duration kPatience = milliseconds(20);

/// Simulates, on virtual time, members that ask for another turn whenever one ends.
class World {
 public:
  using Member = TurnQueue::Member;

  explicit World(std::size_t slots, Duration patience = kPatience) : queue(slots, kTurn, patience) {}

  /// Adds a member whose turns last `turn`.
  void add(Member member, TurnGroup group, Duration turn = kTurn) {
    members_[member] = {group, turn, {}, {}};
    arrived_[member] = now;
    queue.wait(member, group, now);
    begin();
  }
  void remove(Member member) {
    queue.remove(member, now);
    std::erase_if(ends_, [&](const auto& one) { return one.second == member; });
    members_.erase(member);
    begin();
  }
  void run_for(Duration duration) {
    const MonotonicTime end = now + duration;
    for (;;) {
      MonotonicTime next = end;
      if (!ends_.empty()) next = std::min(next, ends_.begin()->first);
      if (const auto extra = queue.next_extra()) next = std::min(next, std::max(now, *extra));
      now = next;
      bool any_ended = false;
      while (!ends_.empty() && ends_.begin()->first <= now) {
        const Member member = ends_.begin()->second;
        ends_.erase(ends_.begin());
        queue.end(member, now);
        used[members_[member].group.id] += members_[member].turn;
        queue.wait(member, members_[member].group, now);
        any_ended = true;
      }
      begin();
      if (now >= end && !any_ended) return;
    }
  }
  /// Returns the time from arrival to first turn; a very long time if there was none.
  Duration waited(Member member) const {
    const auto first = first_.find(member);
    return first == first_.end() ? seconds(1'000'000) : first->second - arrived_.at(member);
  }

  TurnQueue queue;
  MonotonicTime now{1'000'000};
  std::map<std::uint64_t, Duration> used;  ///< By group: time used.

 private:
  struct Known {
    TurnGroup group;
    Duration turn;
    MonotonicTime began;
    MonotonicTime arrived;
  };
  void begin() {
    while (const auto member = queue.next(now)) {
      ends_.emplace(now + members_.at(*member).turn, *member);
      first_.emplace(*member, now);
    }
  }

  std::map<Member, Known> members_;
  std::map<Member, MonotonicTime> arrived_;
  std::map<Member, MonotonicTime> first_;
  std::multimap<MonotonicTime, Member> ends_;
};

double part_of(const World& world, std::uint64_t group) {
  Duration all{0};
  for (const auto& [id, time] : world.used) all += time;
  return static_cast<double>(world.used.at(group).count()) / static_cast<double>(all.count());
}

TEST_CASE("turn queue: as many members run as there are slots") {
  World world(3);
  for (TurnQueue::Member member = 1; member <= 8; ++member) world.add(member, {1, 1});
  CHECK(world.queue.running() == 3);
  CHECK(world.queue.has_waiting());
  world.run_for(seconds(1));
  CHECK(world.queue.running() == 3);
  for (TurnQueue::Member member = 1; member <= 8; ++member) CHECK(world.waited(member) <= 2 * kTurn);
  world.queue.set_slots(1);
  world.run_for(kTurn);
  CHECK(world.queue.running() == 1);
}

TEST_CASE("turn queue: groups share the slots evenly, however many members they have") {
  World world(5);
  for (TurnQueue::Member member = 1; member <= 16; ++member) world.add(member, {1, 1});
  for (TurnQueue::Member member = 21; member <= 23; ++member) world.add(member, {2, 1});
  world.run_for(seconds(10));
  CHECK(part_of(world, 1) == Approx(0.5).margin(0.02));
  CHECK(part_of(world, 2) == Approx(0.5).margin(0.02));
}

TEST_CASE("turn queue: groups share the slots by weight, and turns count as long as they last") {
  World world(4, seconds(1'000));
  for (TurnQueue::Member member = 1; member <= 8; ++member) world.add(member, {1, 10}, milliseconds(3));
  for (TurnQueue::Member member = 21; member <= 28; ++member) world.add(member, {2, 30}, milliseconds(10));
  for (TurnQueue::Member member = 41; member <= 48; ++member) world.add(member, {3, 10}, milliseconds(170));
  world.run_for(seconds(60));
  CHECK(part_of(world, 1) == Approx(0.2).margin(0.02));
  CHECK(part_of(world, 2) == Approx(0.6).margin(0.02));
  CHECK(part_of(world, 3) == Approx(0.2).margin(0.02));
}

TEST_CASE("turn queue: a new group has its first turn when the next one of others ends, beside any number of them") {
  World world(2);
  for (std::uint64_t group = 1; group <= 50; ++group) {
    for (TurnQueue::Member member = 1; member <= 16; ++member) world.add(100 * group + member, {group, 1});
  }
  world.run_for(seconds(20));
  world.add(1, {99, 1});
  world.run_for(seconds(1));
  CHECK(world.waited(1) <= kTurn);
}

TEST_CASE("turn queue: a group whose members have only long turns cannot keep another one from beginning") {
  World world(2);
  for (TurnQueue::Member member = 1; member <= 16; ++member) world.add(member, {1, 1}, seconds(30));
  world.run_for(milliseconds(5));
  for (TurnQueue::Member member = 21; member <= 23; ++member) world.add(member, {2, 1}, seconds(30));
  world.run_for(seconds(1));
  CHECK(world.waited(21) == kPatience);
  CHECK(world.waited(22) > seconds(1));  // Group 2 has a slot already, so the next slot is for other groups.
  CHECK(world.queue.running() == 3);
  world.add(31, {3, 1}, seconds(30));
  world.run_for(seconds(1));
  CHECK(world.waited(31) == kPatience);
  CHECK(world.queue.running() == 4);
  // The queue gives additional slots back.
  for (const TurnQueue::Member member : {21, 22, 23, 31}) world.remove(member);
  CHECK(world.queue.running() == 2);
}

TEST_CASE("turn queue: a group that pauses neither saves time nor loses what it owes") {
  World world(1);
  world.add(1, {1, 1});
  world.run_for(seconds(10));
  world.add(2, {2, 1});  // Group 2 did not wait during the 10 s, so it gets no credit for them.
  world.run_for(seconds(2));
  CHECK(world.used[2] <= milliseconds(1010));
  CHECK(world.used[2] >= milliseconds(990));

  World long_turns(1, seconds(1'000));
  long_turns.add(1, {1, 1});
  long_turns.add(2, {2, 1}, seconds(1));
  long_turns.run_for(milliseconds(1200));  // Group 2 has used 1 s by now, group 1 about 0.2 s.
  REQUIRE(long_turns.used[2] == seconds(1));
  long_turns.remove(2);
  long_turns.add(3, {2, 1});  // Another member of group 2.
  const Duration before = long_turns.used[1];
  long_turns.run_for(milliseconds(500));
  CHECK(long_turns.used[1] - before >= milliseconds(490));
}

TEST_CASE("turn queue: a member that waits may be removed") {
  World world(1);
  world.add(1, {1, 1});
  world.add(2, {2, 1});
  world.add(3, {2, 1});
  world.remove(2);
  world.run_for(milliseconds(100));
  CHECK(world.waited(3) <= kTurn);
  world.remove(3);
  world.remove(1);
  CHECK_FALSE(world.queue.has_waiting());
  CHECK(world.queue.running() == 0);
  CHECK_FALSE(world.queue.next(world.now).has_value());
}

}  // namespace
}  // namespace fjord
