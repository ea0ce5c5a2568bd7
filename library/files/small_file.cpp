#include "fjord/library/detail/small_file.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace fjord {

Status replace_file(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".new";
  const auto failed = [&](const char* what) {
    return Status(StatusCode::IoError, fmt::format("{} cannot be {}", path, what));
  };
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) return failed("written");
  bool ok = std::fwrite(content.data(), 1, content.size(), file) == content.size();
  ok = std::fflush(file) == 0 && ::fdatasync(::fileno(file)) == 0 && ok;
  ok = std::fclose(file) == 0 && ok;
  if (!ok) return failed("written");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return failed("replaced");
  return Status::ok();
}

Result<std::string> read_small_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return Status(StatusCode::NotFound, path + " cannot be opened");
  std::string content;
  char buffer[65536];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) content.append(buffer, got);
  const bool ok = std::ferror(file) == 0;
  std::fclose(file);
  if (!ok) return Status(StatusCode::IoError, path + " cannot be read");
  return content;
}

}  // namespace fjord
