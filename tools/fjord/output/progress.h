#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "fjord/common/thread_annotations.h"

namespace fjord::cli {

/// A progress line on standard error. It appears after two seconds, and with `Auto` only if standard error is a
/// terminal. With `Always`, other outputs get a new line every two seconds.
///
/// Threading: any thread.
class Progress {
 public:
  enum class When { Auto, Always, Never };
  /// Parses "auto", "always" or "never".
  static When when(const std::string& text);

  /// `unit` names the counted things: "docs".
  Progress(std::string label, std::string unit, When when = When::Auto);
  /// Leaves the last line on the screen if one was shown.
  ~Progress();

  /// `part` is the fraction done, 0 to 1, negative if unknown; `count` is the number of units so far.
  void update(double part, std::uint64_t count, const std::string& note = "");

 private:
  using SteadyClock = std::chrono::steady_clock;
  std::string line(double part, std::uint64_t count, double seconds, const std::string& note) const;

  const std::string label_;
  const std::string unit_;
  const bool terminal_;
  const bool shown_;
  const SteadyClock::time_point start_;
  std::mutex mutex_;
  SteadyClock::time_point next_ FJORD_GUARDED_BY(mutex_);
  bool drawn_ FJORD_GUARDED_BY(mutex_) = false;
};

}  // namespace fjord::cli
