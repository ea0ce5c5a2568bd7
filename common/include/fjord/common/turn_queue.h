#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "fjord/common/clock.h"

namespace fjord {

/// The group of a TurnQueue's member, and its weight.
struct TurnGroup {
  std::uint64_t id = 0;
  unsigned weight = 1;  ///< At least 1. The latest value given for the group counts.
};

/// Decides which member gets the next turn on one of a few slots. A turn should last `turn`; its actual length is
/// charged to the member's group.
///
/// Groups share the slots in proportion to their weights, however many members they have. Each group has a virtual
/// time, which advances by the length of its turns divided by its weight; the group with the lowest virtual time is
/// next (start-time fair queueing). A group that was idle for a short time continues at the present virtual time,
/// without credit. A group that is new, or was idle for ten turns, comes before the others once. Members of a group get
/// turns in the order in which they began to wait.
///
/// Turns that exceed their time cannot block other groups: a group without a slot that has waited for `patience` gets
/// an additional slot. So there are at most `slots` slots plus one for each group.
///
/// Threading: confined.
class TurnQueue {
 public:
  using Member = std::uint64_t;

  TurnQueue(std::size_t slots, Duration turn, Duration patience) : slots_(slots), turn_(turn), patience_(patience) {}

  void set_slots(std::size_t slots) { slots_ = slots; }
  Duration turn() const { return turn_; }

  /// Adds a member that wants a turn; it must neither wait nor have one.
  void wait(Member member, TurnGroup group, MonotonicTime now);
  /// Starts a turn and returns its member; nullopt if no turn can start.
  std::optional<Member> next(MonotonicTime now);
  /// Ends the member's turn, and charges its length to the member's group.
  void end(Member member, MonotonicTime now);
  /// Removes a member, whether it waits, has a turn or neither.
  void remove(Member member, MonotonicTime now);

  /// Returns true if a member waits for a slot.
  bool has_waiting() const { return !ready_.empty(); }
  /// Returns the time at which next() starts an additional turn even if no other turn ends; nullopt if there is none.
  std::optional<MonotonicTime> next_extra() const;
  std::size_t running() const { return running_.size(); }

 private:
  struct Group {
    unsigned weight = 1;
    double time = 0;  ///< Virtual time: microseconds of turns divided by the weight.
    std::size_t running = 0;
    /// Members by order of arrival, with the start of their wait.
    std::map<std::uint64_t, std::pair<Member, MonotonicTime>> waiting;
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
  Groups groups_;                                     ///< Groups that have a waiting or running member.
  std::map<std::uint64_t, Idle> idle_;                ///< Groups without members, active recently or over their share.
  std::set<std::pair<double, std::uint64_t>> ready_;  ///< Groups that have a waiting member, by virtual time.
  /// Group and arrival number of each waiting member.
  std::map<Member, std::pair<std::uint64_t, std::uint64_t>> waiting_;
  std::map<Member, Turn> running_;
  double present_ = 0;  ///< Highest virtual time at which a turn has begun.
  std::uint64_t arrivals_ = 0;
};

}  // namespace fjord
