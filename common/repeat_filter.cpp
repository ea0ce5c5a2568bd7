#include "repeat_filter.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace fjord::log {
namespace {

/// More different faults at a time are each written when they come.
constexpr std::size_t kEntriesMax = 64;

}  // namespace

RepeatFilter::Repeat RepeatFilter::report(const Entry& entry, Time now) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - entry.reported).count();
  return {entry.level, entry.component,
          fmt::format("{} ({} more time{} in {} s)", entry.line, entry.count, entry.count == 1 ? "" : "s", seconds)};
}

bool RepeatFilter::admit(Level level, std::string_view component, std::string_view line, Time now) {
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) {
    return one.level == level && one.component == component && one.line == line;
  });
  if (known != entries_.end() && now - known->last < kSilence) {
    known->last = now;
    ++known->count;
    return false;
  }
  auto place = known;
  if (place == entries_.end() && entries_.size() == kEntriesMax) {
    place = std::min_element(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.last < b.last; });
  }
  if (place == entries_.end()) place = entries_.emplace(place);
  if (place->count > 0) pushed_out_.push_back(report(*place, place->last));
  *place = {level, std::string(component), std::string(line), now, now};
  return true;
}

std::vector<RepeatFilter::Repeat> RepeatFilter::take_due(Time now) {
  std::vector<Repeat> due = std::exchange(pushed_out_, {});
  for (Entry& one : entries_) {
    const bool is_over = now - one.last >= kSilence;
    if (one.count == 0 || (!is_over && now - one.reported < kReportInterval)) continue;
    due.push_back(report(one, is_over ? one.last : now));
    one.reported = now;
    one.count = 0;
  }
  std::erase_if(entries_, [&](const Entry& one) { return now - one.last >= kSilence; });
  return due;
}

}  // namespace fjord::log
