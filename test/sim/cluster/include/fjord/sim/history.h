#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/client/operation_outcome.h"
#include "fjord/common/clock.h"

namespace fjord::sim {

/// Records the operations of clients with their answers, per document, and checks whether all answers can be true.
///
/// A test-and-set is a put that depends on `expected`, the value before it ("": no document).
///
/// Each put writes a value of its own. For each read that returned value v (or nothing):
///  I2  a put of v began before the read ended;
///  I6  that put was not reported as "not applied";
///  I5  no two acknowledged test-and-sets expected the same value;
///  I1  no acknowledged write w lies wholly between the write of v and the read (w began after v's write had ended, and
///      ended before the read began). A write in doubt has no end.
/// A read of nothing counts as a read of any remove, or of a remove before all time. A missed remove breaks I4. Equal
/// timestamps of one document mean the same version (I2). check_sessions() and check_linearizable() check the rest.
class History {
 public:
  enum class Kind { Put, Remove, Get, TestAndSet };
  struct Event {
    Kind kind = Kind::Get;
    std::string key;
    std::string value;  ///< Put: the value written. Get: the value read, empty if there was no document.
    MonotonicTime begin;
    MonotonicTime end;
    Outcome outcome = Outcome::InDoubt;
    bool finished = false;
    std::string note;      ///< Status text that the client received, for reports.
    std::string expected;  ///< TestAndSet: the value that the document must have before.
    bool refused = false;  ///< TestAndSet: certainly not applied, because the document had another value.
    bool once = false;     ///< Has an idempotency key, so that a retry is not applied a second time.
    unsigned client = 0;
    std::uint64_t timestamp_us = 0;  ///< Timestamp of the version written or read; 0: unknown.
  };

  /// Returns the index of the event, for end().
  std::size_t begin(Kind kind, const std::string& key, const std::string& value, MonotonicTime now);
  /// `value` is the value that a get read.
  void end(std::size_t event, Outcome outcome, const std::string& value, MonotonicTime now, std::string note = {});

  /// Returns an empty string if all answers can be true, else the first contradiction.
  std::string check() const;

  /// I7: each client reads nothing older than it has written or read before. Returns an empty string if so.
  std::string check_sessions() const;
  /// Checks that, for each document, there is a linearization that explains every answer. Skips documents that have a
  /// write without an idempotency key, because a retry of such a write may be applied again. Returns an empty string if
  /// so; `undecided` counts documents for which the search would have taken too long.
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
