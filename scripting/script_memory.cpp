#include "script_memory.h"

#include <fmt/format.h>

namespace fjord::scripting {
namespace {

constexpr const char* kSetting = "mapreduce.script_memory_bytes";
/// What a process takes beside the memory of its script.
constexpr std::uint64_t kOwnBytes = std::uint64_t{16} << 20;

std::uint64_t bytes_of(std::int64_t memory_mb) { return (static_cast<std::uint64_t>(memory_mb) << 20) + kOwnBytes; }

}  // namespace

Status ScriptMemory::check(std::int64_t memory_mb) const {
  if (limit_ == nullptr) return Status::ok();
  const auto limit = static_cast<std::uint64_t>(limit_->value());
  if (bytes_of(memory_mb) <= limit) return Status::ok();
  return {
      StatusCode::InvalidArgument,
      fmt::format("memory_mb is {}: with its process the script would have {} bytes, and the setting {} permits {} to "
                  "all scripts of a node",
                  memory_mb, bytes_of(memory_mb), kSetting, limit),
      {.limit = fmt::format("{}", limit), .setting = kSetting}};
}

Result<std::unique_ptr<ScriptMemory::Share>> ScriptMemory::take(std::int64_t memory_mb) {
  const std::uint64_t bytes = bytes_of(memory_mb);
  const std::lock_guard lock(mutex_);
  const std::uint64_t limit = limit_ == nullptr ? UINT64_MAX : static_cast<std::uint64_t>(limit_->value());
  if (bytes > limit || taken_ > limit - bytes) {
    return Status(StatusCode::Busy,
                  fmt::format("script: {} bytes do not fit beside the {} of the scripts that run here: {} permits {}",
                              bytes, taken_, kSetting, limit),
                  {.limit = fmt::format("{}", limit), .setting = kSetting});
  }
  taken_ += bytes;
  return std::make_unique<Share>(shared_from_this(), bytes);
}

void ScriptMemory::give_back(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  taken_ -= bytes;
}

}  // namespace fjord::scripting
