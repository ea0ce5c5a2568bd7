#include "record.h"

#include <algorithm>
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <utility>

namespace fjord::torture {
namespace {

constexpr std::size_t kViolationsShown = 50;

}  // namespace

std::string register_id(std::size_t index) { return fmt::format("id:torture:item::r{}", index); }
std::string counter_id(std::size_t index) { return fmt::format("id:torture:item::c{}", index); }
std::string to_text(const Value& value) { return value ? fmt::format("{}", *value) : "absent"; }

Record::Record(std::size_t registers, std::size_t counters, std::FILE* log)
    : log_(log), registers_(registers, {Value()}), counters_(counters) {}

void Record::written(std::size_t register_index, Value value, const OperationOutcome& outcome) {
  const std::lock_guard lock(mutex_);
  count(value ? "put" : "remove", outcome);
  std::vector<Value>& possible = registers_[register_index];
  if (outcome.outcome == Outcome::Applied) {
    possible = {value};
  } else if (outcome.outcome == Outcome::InDoubt) {
    possible.push_back(value);
  }
}

void Record::read(std::size_t register_index, Value value, std::string_view when) {
  const std::lock_guard lock(mutex_);
  ++counts_["reads"];
  const std::vector<Value>& possible = registers_[register_index];
  if (std::find(possible.begin(), possible.end(), value) != possible.end()) return;
  std::string text = fmt::format("{}: {} is {}, possible:", when, register_id(register_index), to_text(value));
  for (const Value& one : possible) text += " " + to_text(one);
  add_violation(std::move(text));
}

void Record::raised(std::size_t counter, std::uint64_t from, const OperationOutcome& outcome) {
  const std::lock_guard lock(mutex_);
  count("raise", outcome);
  Counter& state = counters_[counter];
  if (outcome.outcome == Outcome::Applied) {
    if (++state.successes[from] > 1) {
      add_violation(fmt::format("{}: two successes from {}", counter_id(counter), from));
    }
    state.acknowledged = std::max(state.acknowledged, from + 1);
  } else if (outcome.outcome == Outcome::InDoubt) {
    ++state.doubts[from];
  }
}

void Record::counter_read(std::size_t counter, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  ++counts_["reads"];
  if (value > 0 && !counters_[counter].successes.contains(value - 1)) {
    // The answer to the raise may still be in flight; the final check shows whether it succeeded.
    ++counts_["counters_ahead"];
  }
}

void Record::counter_final(std::size_t counter, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  const Counter& state = counters_[counter];
  for (std::uint64_t from = 0; from < value; ++from) {
    if (!state.successes.contains(from) && !state.doubts.contains(from)) {
      add_violation(fmt::format("{} is {}, and nobody can have raised it from {}", counter_id(counter), value, from));
    }
  }
  for (const auto& [from, times] : state.successes) {
    if (from >= value) add_violation(fmt::format("{} is {}, and was raised from {}", counter_id(counter), value, from));
  }
}

void Record::log(std::string_view line) {
  if (log_ == nullptr) return;
  const std::lock_guard lock(mutex_);
  fmt::print(log_, "{}\n", line);
  std::fflush(log_);
}

void Record::violation(std::string text) {
  const std::lock_guard lock(mutex_);
  add_violation(std::move(text));
}

std::vector<Value> Record::possible(std::size_t register_index) const {
  const std::lock_guard lock(mutex_);
  return registers_[register_index];
}

std::string Record::summary() const {
  const std::lock_guard lock(mutex_);
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> json(buffer);
  json.StartObject();
  json.Key("counts");
  json.StartObject();
  for (const auto& [name, number] : counts_) {
    json.Key(name.c_str());
    json.Uint64(number);
  }
  json.EndObject();
  json.Key("violations");
  json.Uint64(violations_);
  json.Key("violations_shown");
  json.StartArray();
  for (const std::string& text : shown_violations_) json.String(text.c_str());
  json.EndArray();
  json.EndObject();
  return buffer.GetString();
}

void Record::count(std::string_view kind, const OperationOutcome& outcome) {
  ++counts_[fmt::format("{}_{}", kind, to_string(outcome.outcome))];
}

void Record::add_violation(std::string text) {
  ++violations_;
  if (log_ != nullptr) fmt::print(log_, "VIOLATION {}\n", text);
  if (shown_violations_.size() < kViolationsShown) shown_violations_.push_back(std::move(text));
}

}  // namespace fjord::torture
