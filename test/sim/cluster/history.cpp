#include "fjord/sim/history.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <set>

#include "linearizability.h"

namespace fjord::sim {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::string describe(const History::Event& event) {
  static constexpr const char* kKinds[] = {"put", "remove", "get", "test-and-set"};
  std::string text = fmt::format("{} {} '{}'", kKinds[static_cast<int>(event.kind)], event.key, event.value);
  if (event.kind == History::Kind::TestAndSet) text += fmt::format(" on '{}'", event.expected);
  return text + fmt::format(" [{}, {}] {} ({}) by client {} at {}", event.begin.us,
                            event.finished ? std::to_string(event.end.us) : "-", to_string(event.outcome), event.note,
                            event.client, event.timestamp_us);
}

/// Returns the time after which the event has no further effect; a write in doubt may take effect at any time.
std::int64_t settled_at(const History::Event& event) {
  return event.finished && event.outcome == Outcome::Applied ? event.end.us : kNever;
}

}  // namespace

std::size_t History::begin(Kind kind, const std::string& key, const std::string& value, MonotonicTime now) {
  Event& event = events_.emplace_back();
  event.kind = kind;
  event.key = key;
  event.value = value;
  event.begin = event.end = now;
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

std::string History::check_test_and_sets() const {
  std::map<std::pair<std::string, std::string>, const Event*> followed;
  std::map<std::pair<std::string, std::string>, const Event*> sources;
  for (const Event& event : events_) {
    if (event.kind == Kind::Put || event.kind == Kind::TestAndSet) sources[{event.key, event.value}] = &event;
  }
  for (const Event& event : events_) {
    if (event.kind != Kind::TestAndSet || event.expected.empty()) continue;
    if (!event.finished || event.outcome != Outcome::Applied) continue;
    const auto [first, is_first] = followed.try_emplace({event.key, event.expected}, &event);
    if (is_first) continue;
    // No fault if the put of that value had no idempotency key and had not ended: a retry may have written the value
    // again after the first test-and-set.
    const auto source = sources.find({event.key, event.expected});
    if (source != sources.end() && !source->second->once && settled_at(*source->second) >= first->second->begin.us) {
      continue;
    }
    return "I5: " + describe(event) + " after " + describe(*first->second);
  }
  return {};
}

std::string History::check_timestamps() const {
  std::map<std::pair<std::string, std::uint64_t>, const Event*> versions;
  for (const Event& event : events_) {
    if (!event.finished || event.outcome != Outcome::Applied || event.timestamp_us == 0) continue;
    const auto [first, is_first] = versions.try_emplace({event.key, event.timestamp_us}, &event);
    if (!is_first && first->second->value != event.value) {
      return "I2: one timestamp, two versions: " + describe(*first->second) + ", " + describe(event);
    }
  }
  return {};
}

std::string History::check_sessions() const {
  struct Seen {
    std::vector<const Event*> ended;  ///< Events in ascending order of their end.
  };
  std::map<std::pair<unsigned, std::string>, Seen> sessions;
  for (const Event& event : events_) {
    if (!event.finished || event.outcome != Outcome::Applied || event.timestamp_us == 0) continue;
    sessions[{event.client, event.key}].ended.push_back(&event);
  }
  for (auto& [whose, seen] : sessions) {
    std::sort(seen.ended.begin(), seen.ended.end(), [](const Event* a, const Event* b) { return a->end < b->end; });
    for (const Event* read : seen.ended) {
      if (read->kind != Kind::Get) continue;
      for (const Event* before : seen.ended) {
        if (!(before->end < read->begin)) break;
        if (before->timestamp_us <= read->timestamp_us) continue;
        return "I7: " + describe(*read) + " is older than " + describe(*before);
      }
    }
  }
  return {};
}

std::string History::check_linearizable(unsigned* undecided) const {
  std::map<std::string, std::vector<const Event*>> documents;
  std::set<std::string> left_out;
  for (const Event& event : events_) {
    documents[event.key].push_back(&event);
    if (event.kind != Kind::Get && !event.once) left_out.insert(event.key);
  }
  for (const auto& [key, events] : documents) {
    if (left_out.contains(key)) continue;
    std::map<std::string, std::uint32_t> values{{"", 0}};
    std::vector<RegisterOperation> operations;
    const auto number = [&](const std::string& value) {
      return values.try_emplace(value, static_cast<std::uint32_t>(values.size())).first->second;
    };
    for (const Event* event : events) {
      RegisterOperation operation;
      operation.begin_us = event->begin.us;
      operation.end_us = event->finished ? event->end.us : kNever;
      operation.value = number(event->value);
      operation.expected = number(event->expected);
      const bool unsure = !event->finished || event->outcome == Outcome::InDoubt;
      if (event->kind == Kind::Get) {
        if (!event->finished || event->outcome != Outcome::Applied) continue;
        operation.kind = RegisterOperation::Kind::Read;
      } else if (event->refused) {
        operation.kind = RegisterOperation::Kind::ReadOther;
      } else if (event->finished && event->outcome == Outcome::NotApplied) {
        continue;
      } else {
        operation.kind =
            event->kind == Kind::TestAndSet ? RegisterOperation::Kind::TestAndSet : RegisterOperation::Kind::Write;
        operation.optional = unsure;
        if (unsure) operation.end_us = kNever;
      }
      operations.push_back(operation);
    }
    const Linearizability verdict = check_register(operations);
    if (verdict == Linearizability::Undecided) ++*undecided;
    if (verdict != Linearizability::No) continue;
    std::string text = "linearizability: no order explains " + key + ":";
    for (const Event* event : events) text += "\n    " + describe(*event);
    return text;
  }
  return {};
}

std::string History::check() const {
  if (std::string problem = check_test_and_sets(); !problem.empty()) return problem;
  if (std::string problem = check_timestamps(); !problem.empty()) return problem;
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
  // Time after which the write that explains the read has no further effect.
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
      if (write->kind != Kind::Remove && write->value == read.value) source = write;
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
      return (write->kind == Kind::Remove ? "I4: " : "I1: ") + describe(read) + " missed " + describe(*write) +
             (source == nullptr ? std::string() : ", it gave the older " + describe(*source));
    }
  }
  return {};
}

}  // namespace fjord::sim
