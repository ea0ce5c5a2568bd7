#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/log.h"

namespace fjord::log {

/// Lets a line of the log through once while it repeats. Says how often it came when a time without it has passed, and
/// each minute until then. Lines are the same if level, component and text are.
/// Threading: one thread at a time.
class RepeatFilter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A line ends when it has not come for this time.
  static constexpr std::chrono::seconds kSilence{10};
  static constexpr std::chrono::seconds kReportInterval{60};

  struct Repeat {
    Level level = Level::Off;
    std::string component;
    std::string line;  ///< With the number of repeats.
  };

  /// Returns true if the line is to be written now.
  bool admit(Level level, std::string_view component, std::string_view line, Time now);
  /// Returns the lines that say how often others came, as far as they are due.
  std::vector<Repeat> take_due(Time now);

 private:
  struct Entry {
    Level level = Level::Off;
    std::string component;
    std::string line;
    Time last;
    Time reported;
    std::uint64_t count = 0;  ///< Since `reported`.
  };

  static Repeat report(const Entry& entry, Time now);

  std::vector<Entry> entries_;
  std::vector<Repeat> pushed_out_;
};

}  // namespace fjord::log
