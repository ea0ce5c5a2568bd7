#include <unistd.h>

#include "commands/commands.h"
#include "fjord/library/detail/small_file.h"

namespace fjord::cli {

const std::string& CursorArgs::file_to_keep() const {
  if (!kept_file.empty()) return kept_file;
  return file.empty() ? resumed_file : file;
}

Result<std::string> CursorArgs::read() const {
  if (!resumed_file.empty()) return read_small_file(resumed_file);
  const bool is_there = !file.empty() && ::access(file.c_str(), F_OK) == 0;
  return is_there ? read_small_file(file) : Result<std::string>(std::string());
}

}  // namespace fjord::cli
