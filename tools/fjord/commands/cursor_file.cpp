#include <fmt/format.h>
#include <unistd.h>

#include "commands/commands.h"
#include "fjord/library/detail/small_file.h"

namespace fjord::cli {
namespace {

constexpr std::string_view kResume = "resume: ";
constexpr std::string_view kAdvice = "restore this file, or remove it to begin again";

}  // namespace

Result<std::string> read_cursor_file(const std::string& file) {
  FJORD_TRY_ASSIGN(std::string text, read_small_file(file));
  // Without a position the command would begin again, and do everything twice.
  if (text.empty()) return Status(StatusCode::InvalidArgument, fmt::format("{} is empty; {}", file, kAdvice));
  return text;
}

Status name_cursor_file(const Status& status, const std::string& file) {
  if (file.empty() || !status.message().starts_with(kResume)) return status;
  return {status.code(), fmt::format("{}: {}; {}", file, status.message().substr(kResume.size()), kAdvice)};
}

const std::string& CursorArgs::file_to_keep() const {
  if (!kept_file.empty()) return kept_file;
  return file.empty() ? resumed_file : file;
}

const std::string& CursorArgs::file_to_read() const { return resumed_file.empty() ? file : resumed_file; }

Result<std::string> CursorArgs::read() const {
  if (!resumed_file.empty()) return read_cursor_file(resumed_file);
  const bool is_there = !file.empty() && ::access(file.c_str(), F_OK) == 0;
  return is_there ? read_cursor_file(file) : Result<std::string>(std::string());
}

}  // namespace fjord::cli
