#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/common/thread_annotations.h"

namespace fjord {

enum class Unit { Count, Bytes, Milliseconds, Ratio };

/// A number that can change while the process runs. It is declared once, with name, unit, help text and bounds.
/// Threading: value() from every thread; it is one atomic load.
class Tunable {
 public:
  struct Declaration {
    std::string name;  ///< "storage.visitors_max": module and setting.
    Unit unit = Unit::Count;
    std::int64_t default_value = 0;
    std::int64_t min = 0;
    std::int64_t max = 0;
    std::string help;
  };

  explicit Tunable(Declaration declaration);
  std::int64_t value() const { return value_.load(std::memory_order_relaxed); }
  const Declaration& declaration() const { return declaration_; }
  /// Errors: InvalidArgument with the setting, the value and its bounds.
  Status set(std::int64_t value);

 private:
  Declaration declaration_;
  std::atomic<std::int64_t> value_;
};

/// All tunables of a process. A tunable lives as long as the registry.
/// Threading: every thread.
class TunableRegistry {
 public:
  /// Returns the tunable of a setting of the table (setting.h), with the table's unit, bounds and meaning.
  /// `default_value` replaces the table's default, by an option of a component or by what the machine allows.
  Tunable& declare(std::string_view setting);
  Tunable& declare(std::string_view setting, std::int64_t default_value);
  /// Returns the tunable of that name; the first call creates it.
  Tunable& declare(const Tunable::Declaration& declaration);
  /// Sets a tunable by its name. Errors: InvalidArgument; NotFound if the name is not declared yet. In the latter case
  /// the value is kept and takes effect at the declaration, because configuration is read before the components exist.
  /// A kept value out of bounds is logged and ignored.
  Status set(const std::string& name, std::int64_t value);
  /// Returns all tunables, sorted by name.
  std::vector<const Tunable*> all() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Tunable> tunables_ FJORD_GUARDED_BY(mutex_);
  /// values of tunables that were set before their declaration
  std::map<std::string, std::int64_t> early_values_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace fjord
