#include "script_process.h"

#include <algorithm>

#include "fjord/common/check.h"
#include "fjord/common/coding.h"

namespace fjord::scripting {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMegabyte = 1 << 20;
/// The host ends a call at its limit and reports the place. After this extra time the process is ended from outside,
/// for calls that the host cannot end.
constexpr std::chrono::milliseconds kGrace{1000};

}  // namespace

Status ScriptProcess::start() {
  if (child_ != nullptr) return Status::ok();
  const std::int64_t left = limits_.cpu_seconds - std::chrono::ceil<std::chrono::seconds>(spent_).count();
  if (left <= 0) {
    return {StatusCode::InvalidArgument,
            "script: its process was lost, and there is no time left for another one of the " +
                std::to_string(limits_.cpu_seconds) + " seconds of cpu_seconds"};
  }
  if (share_ == nullptr) {
    FJORD_TRY_ASSIGN(share_, memory_->take(limits_.memory_mb));
  }
  ChildProcess::Options child;
  child.name = "script";
  child.program = host_.empty() ? ChildProcess::beside_this_program("fjord-script-host") : host_;
  child.arguments = {std::to_string(limits_.memory_mb * kMegabyte), std::to_string(limits_.call_ms),
                     std::to_string(left)};
  const auto began = Clock::now();
  FJORD_TRY_ASSIGN(child_, ChildProcess::start(child));
  spent_ += Clock::now() - began;
  std::string script;
  put_string(script, script_);
  const std::int64_t load_ms = std::min<std::int64_t>(limits_.call_ms, kLoadTime.count());
  const auto answer = call(Call::Load, script, load_ms, [] { return false; });
  if (!answer) {
    child_.reset();
    return answer.error();
  }
  if (answer->size() != 2) return nonsense();
  has_combine_ = (*answer)[0] != 0;
  needs_body_ = (*answer)[1] == 0;
  return Status::ok();
}

Result<std::string> ScriptProcess::call(Call call, std::string_view arguments,
                                        const ChildProcess::IsCancelled& is_cancelled) {
  return this->call(call, arguments, limits_.call_ms, is_cancelled);
}

Result<std::string> ScriptProcess::call(Call call, std::string_view arguments, std::int64_t call_ms,
                                        const ChildProcess::IsCancelled& is_cancelled) {
  FJORD_CHECK(child_ != nullptr);
  std::string message(1, static_cast<char>(call));
  message += arguments;
  const auto began = Clock::now();
  const ChildProcess::Deadline deadline = began + std::chrono::milliseconds(call_ms) + kBatchTime + kGrace;
  Status status = child_->send(ChildProcess::framed(message), deadline, is_cancelled);
  Result<std::string> answer = status ? child_->receive(deadline, is_cancelled) : Result<std::string>(status);
  spent_ += Clock::now() - began;
  if (!answer) {
    child_.reset();
    return answer.error();
  }
  if (answer->empty()) return nonsense();
  if ((*answer)[0] != 0) {
    const std::string problem = answer->substr(1);
    return Status(StatusCode::InvalidArgument, problem.starts_with("script:") ? problem : "script: " + problem);
  }
  answer->erase(0, 1);
  return answer;
}

Status ScriptProcess::nonsense() {
  child_.reset();
  return {StatusCode::InvalidArgument, "script: its process sent nonsense"};
}

}  // namespace fjord::scripting
