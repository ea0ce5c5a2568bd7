#include "minimise.h"

#include <algorithm>

namespace fjord::sim {
namespace {

std::string invariant_of(const std::string& failure) { return failure.substr(0, failure.find(':')); }

class Minimiser {
 public:
  Minimiser(const std::function<ScenarioResult(const ScenarioOptions&)>& run, const ScenarioOptions& options,
            const ScenarioResult& failed)
      : run_(run), invariant_(invariant_of(failed.failure)) {
    least_.options = options;
    least_.options.only_faults = failed.fault_numbers;
    least_.result = failed;
  }

  Minimised minimise() {
    shorten();
    leave_out();
    shorten();
    return least_;
  }

 private:
  bool still_fails(ScenarioOptions options) {
    options.keep_trace = 0;
    ++least_.runs;
    ScenarioResult result = run_(options);
    if (invariant_of(result.failure) != invariant_) return false;
    least_.options = std::move(options);
    least_.result = std::move(result);
    return true;
  }

  /// Leaves out large parts of the faults first, then smaller ones, down to single faults.
  void leave_out() {
    for (std::size_t part = (least_.options.only_faults->size() + 1) / 2; part > 0;
         part = part == 1 ? 0 : (part + 1) / 2) {
      std::size_t first = 0;
      while (first < least_.options.only_faults->size()) {
        ScenarioOptions options = least_.options;
        const auto begin = std::next(options.only_faults->begin(), static_cast<std::ptrdiff_t>(first));
        const std::size_t count = std::min(part, options.only_faults->size() - first);
        options.only_faults->erase(begin, std::next(begin, static_cast<std::ptrdiff_t>(count)));
        if (!still_fails(std::move(options))) first += part;
      }
    }
  }

  /// Shortens the run by bisection, as long as it still fails. Faults keep their times, because the schedule is drawn
  /// for the original span.
  void shorten() {
    Duration works = least_.result.span;
    Duration too_short{0};
    for (int turn = 0; turn < 6; ++turn) {
      ScenarioOptions options = least_.options;
      options.span = (works + too_short) / 2;
      (still_fails(options) ? works : too_short) = options.span;
    }
  }

  const std::function<ScenarioResult(const ScenarioOptions&)>& run_;
  std::string invariant_;
  Minimised least_;
};

}  // namespace

Minimised minimise(const std::function<ScenarioResult(const ScenarioOptions&)>& run, const ScenarioOptions& options,
                   const ScenarioResult& failed) {
  return Minimiser(run, options, failed).minimise();
}

}  // namespace fjord::sim
