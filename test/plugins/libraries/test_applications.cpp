// A library of MapReduce applications, one of which misbehaves.

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/plugins/plugin.h"

namespace {

using fjord::Result;
using fjord::Status;
using fjord::StatusCode;
using fjord::mapreduce::Emitter;
using fjord::mapreduce::JobFunctions;
using fjord::mapreduce::ResultEmitter;
using fjord::plugins::ApplicationContext;

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

/// What reduce() gives in place of a sum.
const std::map<std::string, std::string> kBadResults = {
    {"brackets", std::string(2'000'000, '[')},
    {"nested lists", nested(2'000'000)},
    {"nested objects",
     [] {
       std::string text;
       for (int i = 0; i < 500'000; ++i) text += "{\"a\":";
       return text;
     }()},
    {"65 levels", nested(65)},
    {"64 levels", nested(64)},
    {"zeros", std::string(2'000'000, '\0')},
    {"a zero behind", std::string("1\0 2", 4)},
    {"no UTF-8", "\"\xff\""},
    {"two values", "1 2"},
    {"nothing", ""},
};

/// Sums `count` by its last digit, and misbehaves as parameter `how` says at the document whose count is `at`.
class Sums final : public JobFunctions {
 public:
  Sums(std::string how, std::int64_t at, bool combines) : how_(std::move(how)), at_(at), combines_(combines) {}

  Status map(const fjord::DocumentView& document, Emitter& emitter) override {
    const auto count = document.field("count");
    if (!count) return Status::ok();
    if (count->as_int64() == at_) emitter.emit("half a document", "1");
    if (count->as_int64() == at_) FJORD_TRY(misbehave());
    emitter.emit(std::to_string(count->as_int64() % 10), std::to_string(count->as_int64()));
    return Status::ok();
  }
  bool combine(std::string_view, std::string& into, std::string_view value) override {
    if (!combines_) return false;
    if (how_ == "combine crashes") std::abort();
    if (how_ == "combine sleeps") std::this_thread::sleep_for(std::chrono::milliseconds(150));
    into = std::to_string(std::stoll(into) + std::stoll(std::string(value)));
    return true;
  }
  Status reduce(std::string_view key, std::span<const std::string_view> values, ResultEmitter& result) override {
    if (how_ == "reduce throws" && key == "5") throw std::runtime_error("a bad key");
    if (how_ == "reduce crashes" && key == "5") std::abort();
    if (how_ == "reduce sleeps") std::this_thread::sleep_for(std::chrono::milliseconds(150));
    if (how_ == "two results") result.emit("1");
    if (how_ == "no result") return Status::ok();
    if (const auto bad = kBadResults.find(how_); bad != kBadResults.end()) {
      result.emit(bad->second);
      return Status::ok();
    }
    long long sum = 0;
    for (const std::string_view value : values) sum += std::stoll(std::string(value));
    result.emit(std::to_string(sum));
    return Status::ok();
  }
  bool needs_body() const override { return how_ != "headers"; }

 private:
  Status misbehave() {
    if (how_ == "throws") throw std::runtime_error("a bad day");
    if (how_ == "throws a number") throw 5;
    if (how_ == "refuses") return {StatusCode::NotFound, "nothing here"};
    if (how_ == "crashes") std::abort();
    if (how_ == "exits") std::_Exit(7);
    if (how_ == "sleeps") std::this_thread::sleep_for(std::chrono::milliseconds(150));
    if (how_ == "loops") {
      while (true) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (how_ == "leaks") {
      while (true) leaked_.push_back(std::make_unique_for_overwrite<char[]>(std::size_t{16} << 20));
    }
    return Status::ok();
  }

  std::string how_;
  std::int64_t at_;
  bool combines_;
  std::vector<std::unique_ptr<char[]>> leaked_;
};

Result<std::unique_ptr<JobFunctions>> make_sums(const ApplicationContext& context) {
  FJORD_TRY_ASSIGN(const std::int64_t at, context.parameters.integer("at", -1, 1'000'000'000));
  FJORD_TRY_ASSIGN(const std::int64_t combines, context.parameters.integer("combines", 0, 1));
  if (context.type.field("count") == nullptr)
    return Status(StatusCode::InvalidField, "the type " + context.type.name() + " has no field count");
  return std::unique_ptr<JobFunctions>(new Sums(context.parameters.text("how"), at, combines != 0));
}

}  // namespace

FJORD_PLUGIN(registry) {
  registry.add_application(
      "sums",
      {"3",
       "Sums by last digit",
       {{"how", "What goes wrong.", ""}, {"at", "At which document.", "-1"}, {"combines", "Whether it combines.", "1"}},
       &make_sums});
}
