#include "fjord/common/env.h"

#include <utility>

namespace fjord {

namespace {

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status write_whole(Env& env, const std::string& path, std::string_view content, bool sync) {
  FJORD_TRY_ASSIGN(auto file, env.create_random_access(path));
  FJORD_TRY(file->write(0, content));
  return sync ? file->sync() : Status::ok();
}

}  // namespace

Result<std::string> read_file(Env& env, const std::string& path) {
  FJORD_TRY_ASSIGN(auto file, env.open_random_access(path));
  FJORD_TRY_ASSIGN(const std::uint64_t size, file->size());
  std::string content(size, '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file->read(0, content));
  content.resize(got);
  return content;
}

Status write_file_atomically(Env& env, const std::string& path, std::string_view content, bool sync) {
  const std::string temporary = path + ".tmp";
  Status status = write_whole(env, temporary, content, sync);
  if (status) status = env.rename(temporary, path);
  if (!status) {
    static_cast<void>(env.remove_file(temporary));  // its error is ignored: the first error tells the cause
    return status;
  }
  return sync ? env.sync_directory(parent_of(path)) : Status::ok();
}

}  // namespace fjord
