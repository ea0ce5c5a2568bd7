#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/client/operation_outcome.h"
#include "fjord/common/clock.h"

namespace fjord::sim {

/// What clients did and were told, per document, and whether it can be true.
///
/// A test-and-set is a put that the history knows to depend on `expected`, the value that was there ("": none).
///
/// Each put writes a value that nobody else writes. The rules, per read that returned value v (or nothing):
///  I2  somebody put v, and had begun before the read ended;
///  I6  that put was not reported as "not applied";
///  I5  no two acknowledged test-and-sets expected the same value;
///  I1  no acknowledged write w lies wholly between the write of v and the read (w began after v's write had ended, and
///      ended before the read began). A write in doubt has no end.
/// Nothing read counts as a remove before all time, or any remove. A remove that was missed is I4. Timestamps of one
/// document tell versions apart (I2). The session rules and linearizability are asked for on their own.
class History {
 public:
  enum class Kind { Put, Remove, Get, TestAndSet };
  struct Event {
    Kind kind = Kind::Get;
    std::string key;
    std::string value;  ///< Put: what was written. Get: what was read, empty if nothing.
    MonotonicTime begin;
    MonotonicTime end;
    Outcome outcome = Outcome::InDoubt;
    bool finished = false;
    std::string note;      ///< What the client was told, for people.
    std::string expected;  ///< TestAndSet.
    bool refused = false;  ///< TestAndSet: the document was another one, surely.
    bool once = false;     ///< Has a token, so that a repetition cannot be applied once more.
    unsigned client = 0;
    std::uint64_t timestamp_us = 0;  ///< Of what was written or read; 0: unknown.
  };

  /// Returns the number by which end() knows the event.
  std::size_t begin(Kind kind, const std::string& key, const std::string& value, MonotonicTime now);
  /// `value` is what a get read.
  void end(std::size_t event, Outcome outcome, const std::string& value, MonotonicTime now, std::string note = {});

  /// Empty if everything can be true, else the first contradiction.
  std::string check() const;

  /// I7: for each client, what it reads is not older than what it has written or read before. Empty if so.
  std::string check_sessions() const;
  /// Whether there is an order of all operations on each document that explains every answer, each in the time between
  /// its begin and end. Documents that have a write without a token are left out, because a repetition of such a write
  /// may be applied again. Empty if so; `undecided` counts documents for which it would have taken too long.
  std::string check_linearizable(unsigned* undecided) const;

  Event& at(std::size_t event) { return events_[event]; }
  const std::vector<Event>& events() const { return events_; }
  std::size_t count(Outcome outcome) const;

 private:
  std::string check_test_and_sets() const;
  std::string check_timestamps() const;
  std::string check_read(const std::vector<const Event*>& writes, const Event& read) const;

  std::vector<Event> events_;
};

}  // namespace fjord::sim
