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

/// The value of a register; absent: the document does not exist.
using Value = std::optional<std::uint64_t>;

/// Records the answers of clients, and derives which values are possible. It lives outside of the cluster.
///
/// A register has one writer, which waits for the end of each operation. So its value is that of the last acknowledged
/// put or remove, or of a later one in doubt. A counter has many writers, which raise it from n to n + 1 under the
/// condition that it is n. In the end each number below its value was the start of exactly one success.
///
/// Threading: every thread.
class Record {
 public:
  /// `log` gets a line for each operation; may be null.
  Record(std::size_t registers, std::size_t counters, std::FILE* log);

  /// Records the end of a put (with a value) or a remove of a register.
  void written(std::size_t register_index, Value value, const OperationOutcome& outcome);
  /// Records a read of a register, by its writer or at the end of the run.
  void read(std::size_t register_index, Value value, std::string_view when);
  /// Records the final outcome of an attempt to raise a counter from `from`.
  void raised(std::size_t counter, std::uint64_t from, const OperationOutcome& outcome);
  /// Records a read of a counter while it may be raised.
  void counter_read(std::size_t counter, std::uint64_t value);
  /// Records the value of a counter at the end of the run.
  void counter_final(std::size_t counter, std::uint64_t value);
  void log(std::string_view line);
  void violation(std::string text);

  /// Returns the values that a register can have.
  std::vector<Value> possible(std::size_t register_index) const;
  /// Returns a JSON object: counts by operation and outcome, and the violations.
  std::string summary() const;

 private:
  struct Counter {
    std::map<std::uint64_t, unsigned> successes;  // By the number from which the counter was raised.
    std::map<std::uint64_t, unsigned> doubts;
    std::uint64_t acknowledged = 0;  // The largest value that an acknowledged success has reached.
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
