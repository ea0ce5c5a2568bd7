#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fjord::cli {

/// A progress line on standard error. It appears after two seconds, and with `Auto` only if standard error is a
/// terminal. With `Always`, other outputs get a new line every two seconds. A command that prints while a line is shown
/// calls hide_progress() first, as print() and complain() do.
///
/// Threading: any thread. A process has one at a time.
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
  SteadyClock::time_point next_;  ///< Guarded by the lock of the screen, which all lines share.
};

/// Takes the progress line off the terminal, so that a line of text can be printed in its place. Threading: any thread.
void hide_progress();

}  // namespace fjord::cli
