#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/client/operation_outcome.h"
#include "fjord/common/thread_annotations.h"

namespace fjord::torture {

/// The value of a register; absent: there is no such document.
using Value = std::optional<std::uint64_t>;

/// What clients were told, and from that, what can be true. It lives outside of the cluster.
///
/// A register has one writer, who waits for the end of each operation. So its value is that of the last acknowledged
/// put or remove, or of one in doubt since then; nothing else. A counter has many writers, who raise it from n to n + 1
/// under the condition that it is n: in the end each number below its value was the start of exactly one success.
///
/// Threading: every thread.
class Record {
 public:
  /// `log`: a line for each operation; may be null.
  Record(std::size_t registers, std::size_t counters, std::FILE* log);

  /// A put (with a value) or a remove of a register has ended.
  void written(std::size_t register_index, Value value, const OperationOutcome& outcome);
  /// A register was read, by its writer or when all is over.
  void read(std::size_t register_index, Value value, std::string_view when);
  /// Somebody wanted to raise a counter from `from`, and it has ended for good.
  void raised(std::size_t counter, std::uint64_t from, const OperationOutcome& outcome);
  /// A counter was read while others may raise it.
  void counter_read(std::size_t counter, std::uint64_t value);
  /// The value of a counter when all is over.
  void counter_final(std::size_t counter, std::uint64_t value);
  void log(std::string_view line);
  void violation(std::string text);

  /// The values that a register may have.
  std::vector<Value> possible(std::size_t register_index) const;
  /// A JSON object: counts of what ended how, and what should not have happened.
  std::string summary() const;

 private:
  struct Counter {
    std::map<std::uint64_t, unsigned> successes;  // by the number raised from
    std::map<std::uint64_t, unsigned> doubts;
    std::uint64_t acknowledged = 0;  // the largest number that somebody was told is reached
  };

  void count(std::string_view kind, const OperationOutcome& outcome) FJORD_REQUIRES(mutex_);
  void add_violation(std::string text) FJORD_REQUIRES(mutex_);

  std::FILE* log_;
  mutable std::mutex mutex_;
  std::vector<std::vector<Value>> registers_ FJORD_GUARDED_BY(mutex_);
  std::vector<Counter> counters_ FJORD_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> counts_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t violations_ FJORD_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> shown_violations_ FJORD_GUARDED_BY(mutex_);
};

std::string register_id(std::size_t index);
std::string counter_id(std::size_t index);
std::string to_text(const Value& value);

}  // namespace fjord::torture
