#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/client/operation_outcome.h"
#include "fjord/common/clock.h"

namespace fjord::sim {

/// What clients did and were told, per document, and whether it can be true.
///
/// Each put writes a value that nobody else writes. The rules, per read that returned value v (or nothing):
///  I2  somebody put v, and had begun before the read ended;
///  I6  that put was not reported as "not applied";
///  I1  no acknowledged write w lies wholly between the write of v and the read (w began after v's write had ended, and
///      ended before the read began). A write in doubt has no end.
/// Nothing read counts as a remove before all time, or any remove.
class History {
 public:
  enum class Kind { Put, Remove, Get };
  struct Event {
    Kind kind;
    std::string key;
    std::string value;  ///< Put: what was written. Get: what was read, empty if nothing.
    MonotonicTime begin;
    MonotonicTime end;
    Outcome outcome = Outcome::InDoubt;
    bool finished = false;
    std::string note;  ///< What the client was told, for people.
  };

  /// Returns the number by which end() knows the event.
  std::size_t begin(Kind kind, const std::string& key, const std::string& value, MonotonicTime now);
  /// `value` is what a get read.
  void end(std::size_t event, Outcome outcome, const std::string& value, MonotonicTime now, std::string note = {});

  /// Empty if everything can be true, else the first contradiction.
  std::string check() const;

  const std::vector<Event>& events() const { return events_; }
  std::size_t count(Outcome outcome) const;

 private:
  std::string check_read(const std::vector<const Event*>& writes, const Event& read) const;

  std::vector<Event> events_;
};

}  // namespace fjord::sim
