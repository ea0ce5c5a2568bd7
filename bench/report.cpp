#include "report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <pthread.h>
#include <thread>

namespace fjord::bench {

void print_metric(std::string_view benchmark, std::string_view metric, double value, std::string_view unit) {
  // Four digits are meaningful; more would only look exact.
  const int digits_before_point = value == 0 ? 4 : static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  const int decimals = std::clamp(4 - digits_before_point, 0, 6);
  fmt::print("{} {} {:.{}f} {}\n", benchmark, metric, value, decimals, unit);
  std::fflush(stdout);
}

void say(std::string_view text) { fmt::print(stderr, "fjord-bench: {}\n", text); }

int fail(std::string_view text) {
  say(text);
  return 1;
}

int fail(const Status& status) { return fail(status.to_string()); }

double quantile(std::vector<double>& values, double fraction) {
  if (values.empty()) return 0;
  const double position = fraction * static_cast<double>(values.size());
  const auto index = std::min(static_cast<std::size_t>(position), values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

void prepare(const std::function<void()>& task) {
  std::thread thread([&] {
    ::pthread_setname_np(::pthread_self(), "prepare");
    task();
  });
  thread.join();
}

double CpuStopwatch::now() {
  std::timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

}  // namespace fjord::bench
