#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "fjord/common/clock.h"

namespace fjord {

/// The group and weight that a member of a TurnQueue works for.
struct TurnGroup {
  std::uint64_t id = 0;
  unsigned weight = 1;  ///< At least 1. The last one that was said counts.
};

/// Decides which member gets the next turn on one of a few slots. A turn should last `turn`, and is counted as long as
/// it lasted.
///
/// Groups share the slots in proportion to their weights, however many members they have: each group has a virtual
/// time, which goes on by the length of its turns divided by its weight, and the group with the lowest one is next
/// (start-time fair queueing). A group that wants nothing for a moment continues at the present virtual time, and has
/// no credit. One that is new, or wanted nothing for ten turns, comes before the others once. Members of a group come
/// in the order in which they began to wait.
///
/// Turns that do not end in time cannot keep others from beginning: a group of which no member has a slot, and that has
/// waited for `patience`, gets a slot in addition to the others. So there are at most `slots` and one a group.
///
/// Threading: confined.
class TurnQueue {
 public:
  using Member = std::uint64_t;

  TurnQueue(std::size_t slots, Duration turn, Duration patience) : slots_(slots), turn_(turn), patience_(patience) {}

  void set_slots(std::size_t slots) { slots_ = slots; }
  Duration turn() const { return turn_; }

  /// The member wants a turn; it neither waits nor has one.
  void wait(Member member, TurnGroup group, MonotonicTime now);
  /// The member that has a turn from now on, if one may begin.
  std::optional<Member> next(MonotonicTime now);
  /// The turn of a member is over.
  void end(Member member, MonotonicTime now);
  /// The member neither waits nor has a turn any more, whatever it did before.
  void remove(Member member, MonotonicTime now);

  /// True if a member waits that could have a slot that is given up.
  bool has_waiting() const { return !ready_.empty(); }
  /// When next() gives a turn although no other one ends until then; none if there is no such time.
  std::optional<MonotonicTime> next_extra() const;
  std::size_t running() const { return running_.size(); }

 private:
  struct Group {
    unsigned weight = 1;
    double time = 0;  ///< Virtual: microseconds of turns, divided by the weight.
    std::size_t running = 0;
    std::map<std::uint64_t, std::pair<Member, MonotonicTime>> waiting;  ///< By arrival; and since when.
  };
  struct Turn {
    std::uint64_t group = 0;
    MonotonicTime began;
  };
  struct Idle {
    double time = 0;
    MonotonicTime since;
  };
  using Groups = std::map<std::uint64_t, Group>;

  Member begin(Groups::iterator group, MonotonicTime now);
  void forget_if_idle(Groups::iterator group, MonotonicTime now);

  std::size_t slots_;
  Duration turn_;
  Duration patience_;
  Groups groups_;                                     ///< Those of which a member waits or runs, ...
  std::map<std::uint64_t, Idle> idle_;                ///< ... and others that lately did, or owe time.
  std::set<std::pair<double, std::uint64_t>> ready_;  ///< Groups of which a member waits, by their time.
  std::map<Member, std::pair<std::uint64_t, std::uint64_t>> waiting_;  ///< Group and arrival.
  std::map<Member, Turn> running_;
  double present_ = 0;  ///< The highest virtual time at which a turn has begun.
  std::uint64_t arrivals_ = 0;
};

}  // namespace fjord
