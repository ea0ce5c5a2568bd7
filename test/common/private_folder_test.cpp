#include "fjord/common/private_folder.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "fjord/common/env.h"

namespace fjord {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOther = 65534;

/// A folder of its own, which the destructor removes.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "fjord-private-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Scratch() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

mode_t mode_of(const std::string& path) {
  struct stat found {};
  REQUIRE(::lstat(path.c_str(), &found) == 0);
  return found.st_mode & 07777;
}

/// Makes a folder with this mode, whatever the umask.
std::string folder_with(const Scratch& scratch, const std::string& name, mode_t mode) {
  const std::string path = scratch / name;
  REQUIRE(::mkdir(path.c_str(), 0700) == 0);
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  return path;
}

TEST_CASE("private folder: a new one is closed to others, and an own one is closed") {
  const Scratch scratch;
  CHECK(make_private_folder(scratch / "a/b/"));
  CHECK(mode_of(scratch / "a/b") == 0700);
  const std::string open = folder_with(scratch, "open", 0755);
  CHECK(check_own_folder(open));
  CHECK(mode_of(open) == 0755);
  CHECK(make_private_folder(open));
  CHECK(mode_of(open) == 0700);
  CHECK(make_private_folder(open));
}

TEST_CASE("private folder: one that others can change is refused, and so is one below such a folder") {
  const Scratch scratch;
  for (const mode_t mode : {0777, 0770, 0702}) {
    const std::string path = folder_with(scratch, std::to_string(mode), mode);
    INFO(path);
    CHECK(make_private_folder(path).code() == StatusCode::InvalidArgument);
    CHECK(check_own_folder(path).message().find("chmod go-rwx " + path) != std::string::npos);
    CHECK(mode_of(path) == mode);
  }
  const std::string used = folder_with(scratch, "used", 01777);
  std::ofstream(used + "/file") << "x";
  CHECK(make_private_folder(used).code() == StatusCode::InvalidArgument);
  const std::string fresh = folder_with(scratch, "fresh", 01777);
  CHECK(check_own_folder(fresh).code() == StatusCode::InvalidArgument);
  CHECK(make_private_folder(fresh));
  CHECK(mode_of(fresh) == 0700);
  const std::string all = folder_with(scratch, "all", 0777);
  CHECK(make_private_folder(all + "/inside").code() == StatusCode::InvalidArgument);
  const std::string sticky = folder_with(scratch, "sticky", 01777);
  CHECK(make_private_folder(sticky + "/inside"));
}

TEST_CASE("private folder: a link leads to a folder that is checked") {
  const Scratch scratch;
  const std::string target = folder_with(scratch, "target", 0700);
  const std::string wide = folder_with(scratch, "wide", 0777);
  REQUIRE(::symlink(target.c_str(), (scratch / "link").c_str()) == 0);
  REQUIRE(::symlink(wide.c_str(), (scratch / "to_wide").c_str()) == 0);
  REQUIRE(::symlink("nothing", (scratch / "to_nothing").c_str()) == 0);
  CHECK(make_private_folder(scratch / "link"));
  CHECK(make_private_folder(scratch / "to_wide").code() == StatusCode::InvalidArgument);
  CHECK(make_private_folder(scratch / "to_nothing").code() == StatusCode::IoError);
  std::ofstream(scratch / "file") << "x";
  CHECK(make_private_folder(scratch / "file").code() == StatusCode::IoError);
}

TEST_CASE("private folder: one of another user is refused") {
  if (::geteuid() != 0) return;  // Only root can give a folder away.
  const Scratch scratch;
  const std::string theirs = folder_with(scratch, "theirs", 0700);
  REQUIRE(::chown(theirs.c_str(), kOther, kOther) == 0);
  CHECK(make_private_folder(theirs).code() == StatusCode::InvalidArgument);
  CHECK(make_private_folder(theirs + "/inside").code() == StatusCode::InvalidArgument);
  const std::string link = scratch / "link";
  const std::string own = folder_with(scratch, "own", 0700);
  REQUIRE(::symlink(own.c_str(), link.c_str()) == 0);
  REQUIRE(::lchown(link.c_str(), kOther, kOther) == 0);
  CHECK(make_private_folder(link).code() == StatusCode::InvalidArgument);
}

TEST_CASE("private folder: a file with other names, or that others can change, is not one's own") {
  const Scratch scratch;
  const std::string path = scratch / "log";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(file >= 0);
  CHECK(check_own_file(file, path));
  REQUIRE(::link(path.c_str(), (scratch / "other").c_str()) == 0);
  CHECK(check_own_file(file, path).code() == StatusCode::InvalidArgument);
  REQUIRE(::unlink((scratch / "other").c_str()) == 0);
  REQUIRE(::fchmod(file, 0666) == 0);
  CHECK(check_own_file(file, path).code() == StatusCode::InvalidArgument);
  ::close(file);
}

TEST_CASE("private folder: files of a node are for its user only, and are never links") {
  const Scratch scratch;
  const auto env = make_posix_env();
  const mode_t before = ::umask(0);
  CHECK(env->create_random_access(scratch / "file"));
  ::umask(before);
  CHECK(mode_of(scratch / "file") == 0600);
  REQUIRE(::symlink((scratch / "file").c_str(), (scratch / "link").c_str()) == 0);
  CHECK_FALSE(env->open_random_access(scratch / "link"));
}

}  // namespace
}  // namespace fjord
