#include "fjord/common/private_folder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fjord/common/log.h"

namespace fjord {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOthersMayWrite = S_IWGRP | S_IWOTH;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
constexpr mode_t kPermissions = 07777;

Status io_error(const std::string& path, int error) {
  return {StatusCode::IoError, fmt::format("{}: {}", path, std::strerror(error))};
}

Status foreign(const std::string& path, uid_t owner) {
  return {StatusCode::InvalidArgument,
          fmt::format("{} belongs to user {}, and this process runs as user {}: expected a folder of its own", path,
                      owner, ::geteuid())};
}

/// Checks the folder that holds a name: its owner could put something else under the name.
Status check_above(const std::string& path) {
  const std::string above = fs::path(path).parent_path().string();
  struct stat found {};
  if (::stat(above.c_str(), &found) != 0) return io_error(above, errno);
  if (found.st_uid != ::geteuid() && found.st_uid != 0) return foreign(above, found.st_uid);
  if ((found.st_mode & S_IWOTH) == 0 || (found.st_mode & S_ISVTX) != 0) return Status::ok();
  return {
      StatusCode::InvalidArgument,
      fmt::format("{} can be changed by all users (mode {:04o}): expected a folder that only its owner changes; run "
                  "chmod o-w {}",
                  above, found.st_mode & kPermissions, above)};
}

bool is_empty(const std::string& path) {
  std::error_code error;
  return fs::is_empty(path, error) && !error;
}

/// Returns what is at the path, after the checks that both functions share.
/// `may_be_fresh`: it may be an empty folder with the mode of /tmp, as the root of a new file system has it.
Result<struct stat> check_folder(const std::string& path, bool may_be_fresh) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return io_error(path, errno);
  FJORD_TRY(check_above(path));
  if (S_ISLNK(found.st_mode)) {
    if (found.st_uid != ::geteuid() && found.st_uid != 0) return foreign(path, found.st_uid);
    std::error_code error;
    const std::string target = fs::canonical(path, error).string();
    if (error) return io_error(path, error.value());
    return check_folder(target, may_be_fresh);
  }
  if (!S_ISDIR(found.st_mode)) return io_error(path, ENOTDIR);
  if (found.st_uid != ::geteuid()) return foreign(path, found.st_uid);
  if ((found.st_mode & kOthersMayWrite) == 0) return found;
  if (may_be_fresh && (found.st_mode & S_ISVTX) != 0 && is_empty(path)) return found;
  return Status(StatusCode::InvalidArgument,
                fmt::format("{} can be changed by other users (mode {:04o}): expected 0700; look at what is in it, and "
                            "run chmod go-rwx {}",
                            path, found.st_mode & kPermissions, path));
}

/// Returns the path without "." and with no slash at the end, so that it has a folder above.
std::string absolute(const std::string& path) {
  std::string text = fs::absolute(path).lexically_normal().string();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace

Status check_own_folder(const std::string& path) { return check_folder(absolute(path), false).status(); }

Status make_private_folder(const std::string& given) {
  const std::string path = absolute(given);
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return io_error(path, error.value());
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return io_error(path, errno);
  FJORD_TRY_ASSIGN(const struct stat found, check_folder(path, true));
  if ((found.st_mode & kOthers) == 0) return Status::ok();
  const mode_t closed = found.st_mode & kPermissions & ~(kOthers | S_ISVTX);
  if (::chmod(path.c_str(), closed) != 0) return io_error(path, errno);
  // Others could have put something into it until now.
  if ((found.st_mode & kOthersMayWrite) != 0 && !is_empty(path)) {
    return {StatusCode::InvalidArgument,
            path + " was changed by other users while it was made private: look at what is in it"};
  }
  log::warning("files", "{} had the mode {:04o}, which was open to other users, and has {:04o} now", path,
               found.st_mode & kPermissions, closed);
  return Status::ok();
}

Status check_own_file(int file, const std::string& path) {
  struct stat found {};
  if (::fstat(file, &found) != 0) return io_error(path, errno);
  const bool is_own = S_ISREG(found.st_mode) && found.st_uid == ::geteuid() && found.st_nlink == 1 &&
                      (found.st_mode & kOthersMayWrite) == 0;
  if (is_own) return Status::ok();
  return {StatusCode::InvalidArgument,
          fmt::format("{} has the owner {}, the mode {:o} and {} names: expected a file of user {} that others cannot "
                      "change",
                      path, found.st_uid, found.st_mode, found.st_nlink, ::geteuid())};
}

}  // namespace fjord
