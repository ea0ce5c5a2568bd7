#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "fjord/common/status.h"

namespace fjord::bench {

/// Prints "benchmark metric value unit" on standard output and flushes it.
void print_metric(std::string_view benchmark, std::string_view metric, double value, std::string_view unit);
/// Prints "fjord-bench: text" on standard error.
void say(std::string_view text);
/// Prints the error and returns the exit code 1.
int fail(std::string_view text);
int fail(const Status& status);

/// Returns the quantile: the value below which a part of `fraction` lies (the upper neighbour, no interpolation); 0 if
/// `values` is empty. Reorders `values`.
double quantile(std::vector<double>& values, double fraction);

/// Runs `task` on a thread named "prepare" and waits for it, so that profiles separate work that is not measured.
void prepare(const std::function<void()>& task);

/// Measures seconds since its construction.
class Stopwatch {
 public:
  Stopwatch() : start_(SteadyClock::now()) {}
  double seconds() const { return std::chrono::duration<double>(SteadyClock::now() - start_).count(); }

 private:
  using SteadyClock = std::chrono::steady_clock;
  SteadyClock::time_point start_;
};

/// Measures the CPU time of this process, over all threads, since its construction.
class CpuStopwatch {
 public:
  CpuStopwatch() : start_(now()) {}
  double seconds() const { return now() - start_; }

 private:
  static double now();
  double start_;
};

}  // namespace fjord::bench
