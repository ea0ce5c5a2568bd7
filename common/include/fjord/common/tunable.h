#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/common/thread_annotations.h"

namespace fjord {

enum class Unit { Count, Bytes, Milliseconds, Ratio };

/// A number that may change while the process runs: declared once with name, unit, meaning and bounds.
/// Threading: value() from every thread; it is one atomic load.
class Tunable {
 public:
  struct Declaration {
    std::string name;  ///< module.what_it_is, e.g. "storage.visitors_max"
    Unit unit = Unit::Count;
    std::int64_t default_value = 0;
    std::int64_t min = 0;
    std::int64_t max = 0;
    std::string help;
  };

  explicit Tunable(Declaration declaration);
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }
  const Declaration& declaration() const { return declaration_; }
  /// Errors: InvalidArgument that names the setting, the value and its bounds.
  Status set(std::int64_t value);

 private:
  Declaration declaration_;
  std::atomic<std::int64_t> value_;
};

/// All tunables of a process. A tunable lives as long as the registry.
/// Threading: every thread.
class TunableRegistry {
 public:
  /// The tunable of that name; made on the first call. Declaring it again returns the same one.
  Tunable& declare(const Tunable::Declaration& declaration);
  /// Errors: InvalidArgument; NotFound if nothing of that name is declared so far. In the latter case the value is kept
  /// and takes effect when the name is declared (configuration is read before the components exist), unless it is out
  /// of bounds then, which is logged.
  Status set(const std::string& name, std::int64_t value);
  /// Sorted by name.
  std::vector<const Tunable*> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Tunable> tunables_ FJORD_GUARDED_BY(mutex_);
  std::map<std::string, std::int64_t> early_values_ FJORD_GUARDED_BY(mutex_);  ///< set before declared
};

}  // namespace fjord
