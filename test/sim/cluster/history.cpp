#include "fjord/sim/history.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace fjord::sim {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::string describe(const History::Event& event) {
  const char* kind = event.kind == History::Kind::Put ? "put" : event.kind == History::Kind::Remove ? "remove" : "get";
  return fmt::format("{} {} '{}' [{}, {}] {} ({})", kind, event.key, event.value, event.begin.us,
                     event.finished ? std::to_string(event.end.us) : "-", to_string(event.outcome), event.note);
}

/// When the event's effect was surely over: a write in doubt may take effect at any time.
std::int64_t settled_at(const History::Event& event) {
  return event.finished && event.outcome == Outcome::Applied ? event.end.us : kNever;
}

}  // namespace

std::size_t History::begin(Kind kind, const std::string& key, const std::string& value, MonotonicTime now) {
  events_.push_back({kind, key, value, now, now, Outcome::InDoubt, false, {}});
  return events_.size() - 1;
}

void History::end(std::size_t event, Outcome outcome, const std::string& value, MonotonicTime now, std::string note) {
  Event& e = events_[event];
  e.finished = true;
  e.outcome = outcome;
  e.end = now;
  e.note = std::move(note);
  if (e.kind == Kind::Get) e.value = value;
}

std::size_t History::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::count_if(
      events_.begin(), events_.end(), [&](const Event& event) { return event.finished && event.outcome == outcome; }));
}

std::string History::check() const {
  std::map<std::string, std::vector<const Event*>> writes;
  for (const Event& event : events_) {
    if (event.kind != Kind::Get) writes[event.key].push_back(&event);
  }
  for (const Event& event : events_) {
    if (event.kind != Kind::Get || !event.finished || event.outcome != Outcome::Applied) continue;
    if (std::string problem = check_read(writes[event.key], event); !problem.empty()) return problem;
  }
  return {};
}

std::string History::check_read(const std::vector<const Event*>& writes, const Event& read) const {
  // The latest moment at which the write that explains the read was over.
  std::int64_t over = -1;
  const Event* source = nullptr;
  if (read.value.empty()) {
    over = 0;
    for (const Event* write : writes) {
      if (write->kind != Kind::Remove || write->begin > read.end) continue;
      if (write->finished && write->outcome == Outcome::NotApplied) continue;
      over = std::max(over, settled_at(*write));
    }
  } else {
    for (const Event* write : writes) {
      if (write->kind == Kind::Put && write->value == read.value) source = write;
    }
    if (source == nullptr) return "I2: " + describe(read) + " gave a value that nobody wrote";
    if (source->begin > read.end) return "I2: " + describe(read) + " gave a value before it was written";
    if (source->finished && source->outcome == Outcome::NotApplied) {
      return "I6: " + describe(read) + " gave the value of " + describe(*source);
    }
    over = settled_at(*source);
  }
  for (const Event* write : writes) {
    if (write == source || settled_at(*write) == kNever) continue;
    if (read.value.empty() && write->kind == Kind::Remove) continue;
    if (write->begin.us > over && write->end < read.begin) {
      return "I1: " + describe(read) + " missed " + describe(*write) +
             (source == nullptr ? std::string() : ", it gave the older " + describe(*source));
    }
  }
  return {};
}

}  // namespace fjord::sim
