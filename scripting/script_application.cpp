#include "fjord/scripting/script_application.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "fjord/common/child_process.h"
#include "fjord/common/coding.h"
#include "fjord/document/json.h"
#include "script_protocol.h"

namespace fjord::scripting {
namespace {

using mapreduce::Application;
using mapreduce::ApplicationParameters;
using mapreduce::Emitter;
using mapreduce::ResultEmitter;

constexpr std::int64_t kMegabyte = 1 << 20;
/// The host ends a call by itself at its limit, and says where; this is for what it cannot end.
constexpr std::chrono::milliseconds kGrace{1000};
/// Values of a key that wait to be combined: a call of the host costs more than combining does.
constexpr std::size_t kUncombinedBytes = 4096;

/// The program in its process.
class ScriptProcess {
 public:
  struct Limits {
    std::int64_t memory_mb = 0;
    std::int64_t call_ms = 0;
    std::int64_t cpu_seconds = 0;
  };

  Status start(const std::string& host, const Limits& limits) {
    ChildProcess::Options child;
    child.name = "script";
    child.program = host.empty() ? ChildProcess::beside_this_program("fjord-script-host") : host;
    child.arguments = {std::to_string(limits.memory_mb * kMegabyte), std::to_string(limits.call_ms),
                       std::to_string(limits.cpu_seconds)};
    FJORD_TRY_ASSIGN(child_, ChildProcess::start(child));
    call_time_ = std::chrono::milliseconds(limits.call_ms);
    return Status::ok();
  }

  /// The answer behind its first byte. Errors: what the script says; those of ChildProcess.
  Result<std::string> call(Call call, std::string_view arguments, const ChildProcess::IsCancelled& is_cancelled) {
    std::string message(1, static_cast<char>(call));
    message += arguments;
    const ChildProcess::Deadline deadline = std::chrono::steady_clock::now() + call_time_ + kGrace;
    FJORD_TRY(child_->send(ChildProcess::framed(message), deadline, is_cancelled));
    FJORD_TRY_ASSIGN(std::string answer, child_->receive(deadline, is_cancelled));
    if (answer.empty()) return nonsense();
    if (answer[0] != 0) {
      const std::string problem = answer.substr(1);
      return Status(StatusCode::InvalidArgument, problem.starts_with("script:") ? problem : "script: " + problem);
    }
    answer.erase(0, 1);
    return answer;
  }
  Status nonsense() { return child_->give_up(StatusCode::InvalidArgument, "its process sent nonsense"); }

 private:
  std::unique_ptr<ChildProcess> child_;
  std::chrono::milliseconds call_time_{};
};

bool never() { return false; }

/// A value of a tuple is one or more values of the script, as put_string() writes them.
class ScriptApplication final : public Application {
 public:
  explicit ScriptApplication(ScriptOptions options) : options_(std::move(options)) {}

  Status configure(const ApplicationParameters& parameters, const DocumentType&) override {
    ScriptProcess::Limits limits;
    FJORD_TRY_ASSIGN(limits.memory_mb, parameters.integer("memory_mb", 1, 16 << 10));
    FJORD_TRY_ASSIGN(limits.call_ms, parameters.integer("timeout_ms", 1, 3'600'000));
    FJORD_TRY_ASSIGN(limits.cpu_seconds, parameters.integer("cpu_seconds", 1, 1'000'000));
    FJORD_TRY(process_.start(options_.host, limits));
    std::string script;
    put_string(script, parameters.text("script"));
    FJORD_TRY_ASSIGN(const std::string answer, process_.call(Call::Load, script, never));
    if (answer.size() != 2) return process_.nonsense();
    has_combine_ = answer[0] != 0;
    needs_body_ = answer[1] == 0;
    return Status::ok();
  }

  bool needs_body() const override { return needs_body_; }

  Status map(const DocumentView& document, Emitter& emitter) override {
    FJORD_TRY(combine_problem_);
    FJORD_TRY_ASSIGN(const std::string fields, to_json_fields(document));
    std::string arguments;
    put_string(arguments, document.id());
    put_string(arguments, fields);
    FJORD_TRY_ASSIGN(const std::string answer,
                     process_.call(Call::Map, arguments, [&emitter] { return emitter.cancelled(); }));
    ByteReader reader(answer);
    std::string value;
    for (std::uint64_t left = reader.varint(); left > 0 && reader.ok(); --left) {
      const std::string_view key = reader.string();
      value.clear();
      put_string(value, reader.string());
      if (reader.ok()) emitter.emit(key, value);
    }
    return reader.at_end() ? Status::ok() : process_.nonsense();
  }

  /// What cannot be combined stays as it is, which changes no result; the next map() says why.
  bool combine(std::string_view key, std::string& into, std::string_view value) override {
    if (!has_combine_ || !combine_problem_) return false;
    if (into.size() + value.size() <= kUncombinedBytes) {
      into += value;
      return true;
    }
    const auto combined = combine_all(key, into, value);
    if (!combined) {
      combine_problem_ = combined.error();
      return false;
    }
    into = *combined;
    return true;
  }

  Status reduce(std::string_view key, std::span<const std::string_view> values, ResultEmitter& result) override {
    std::vector<std::string_view> all;
    for (const std::string_view value : values) {
      ByteReader reader(value);
      while (!reader.at_end() && reader.ok()) all.push_back(reader.string());
      if (!reader.ok()) return {StatusCode::Corruption, "a tuple of a script is malformed"};
    }
    // However they were put together on their way.
    std::sort(all.begin(), all.end());
    std::string arguments;
    put_string(arguments, key);
    put_varint(arguments, all.size());
    for (const std::string_view one : all) put_string(arguments, one);
    FJORD_TRY_ASSIGN(const std::string answer, process_.call(Call::Reduce, arguments, never));
    ByteReader reader(answer);
    const bool has_result = reader.fixed<std::uint8_t>() != 0;
    std::string json(has_result ? reader.string() : std::string_view());
    if (!reader.at_end()) return process_.nonsense();
    if (has_result) result.emit(std::move(json));
    return Status::ok();
  }

 private:
  Result<std::string> combine_all(std::string_view key, std::string_view into, std::string_view value) {
    std::string values;
    std::uint64_t count = 0;
    for (const std::string_view part : {into, value}) {
      ByteReader reader(part);
      while (!reader.at_end() && reader.ok()) {
        put_string(values, reader.string());
        ++count;
      }
      if (!reader.ok()) return Status(StatusCode::Corruption, "a tuple of a script is malformed");
    }
    std::string arguments;
    put_string(arguments, key);
    put_varint(arguments, count);
    arguments += values;
    FJORD_TRY_ASSIGN(const std::string answer, process_.call(Call::Combine, arguments, never));
    ByteReader reader(answer);
    std::string combined;
    put_string(combined, reader.string());
    if (!reader.at_end()) return process_.nonsense();
    return combined;
  }

  ScriptOptions options_;
  ScriptProcess process_;
  bool has_combine_ = false;
  bool needs_body_ = true;
  Status combine_problem_;
};

}  // namespace

void add_script_application(mapreduce::ApplicationRegistry& registry, const ScriptOptions& options) {
  registry.add(
      {"script",
       "Runs a Lua program of yours: map(doc, emit), reduce(key, values), and combine(key, a, b) if it has one. "
       "One result a key: what reduce returns, as JSON.",
       {{"script", "The program.", std::nullopt},
        {"memory_mb", "Memory of the program, in each task.", "64"},
        {"timeout_ms", "How long one call of a function may take.", "1000"},
        {"cpu_seconds", "CPU time of each task.", "3600"}},
       [options] { return std::make_unique<ScriptApplication>(options); }});
}

}  // namespace fjord::scripting
