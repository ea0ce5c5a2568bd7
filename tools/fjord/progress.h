#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "fjord/common/thread_annotations.h"

namespace fjord::cli {

/// A line on standard error that says how far something is. Nothing for the first two seconds, and nothing at all
/// unless standard error is a terminal; with `Always` a new line every two seconds elsewhere.
///
/// Threading: every thread.
class Progress {
 public:
  enum class When { Auto, Always, Never };
  /// "auto", "always" or "never".
  static When when(const std::string& text);

  /// `unit` is what is counted: "docs".
  Progress(std::string label, std::string unit, When when = When::Auto);
  /// Leaves the last state on the screen if there was one.
  ~Progress();

  /// `part` of 0 to 1 is done, negative if unknown; `count` units so far.
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
