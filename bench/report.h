#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "fjord/common/status.h"

namespace fjord::bench {

/// "benchmark metric value unit" on standard output, at once.
void print_metric(std::string_view benchmark, std::string_view metric, double value, std::string_view unit);
/// "fjord-bench: text" on standard error.
void say(std::string_view text);
/// Says the error and returns the exit code 1.
int fail(std::string_view text);
int fail(const Status& status);

/// The value below which a part of `fraction` lies (the upper neighbour, no interpolation); 0 if there are none.
/// Reorders `values`.
double quantile(std::vector<double>& values, double fraction);

/// Runs `task` on a thread of the name "prepare" and waits for it, so that profiles show apart what belongs to no
/// measurement.
void prepare(const std::function<void()>& task);

/// Seconds since it was made.
class Stopwatch {
 public:
  Stopwatch() : start_(SteadyClock::now()) {}
  double seconds() const { return std::chrono::duration<double>(SteadyClock::now() - start_).count(); }

 private:
  using SteadyClock = std::chrono::steady_clock;
  SteadyClock::time_point start_;
};

/// CPU time of this process since it was made, all threads together.
class CpuStopwatch {
 public:
  CpuStopwatch() : start_(now()) {}
  double seconds() const { return now() - start_; }

 private:
  static double now();
  double start_;
};

}  // namespace fjord::bench
