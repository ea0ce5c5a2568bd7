#include "fjord/common/lost_pages.h"

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fjord/common/env.h"

namespace fjord {
namespace {

constexpr std::uint64_t kPage = 4096;

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fjord-lost-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

TEST_CASE("a part of a mapped file that is cut off is zeros and counted, and the process goes on") {
  const Folder folder;
  const auto env = make_posix_env();
  const auto file = std::move(env->create_random_access(folder.path("cut")).value());
  REQUIRE(file->write(0, std::string(4 * kPage, 'x')));
  const std::string_view all = file->mapped(4 * kPage);
  REQUIRE(all.size() == 4 * kPage);
  const LostPages lost;
  CHECK(all[3 * kPage] == 'x');
  CHECK_FALSE(lost.any());

  std::filesystem::resize_file(folder.path("cut"), 2 * kPage);
  const std::uint64_t before = LostPages::met();
  CHECK(all.substr(3 * kPage + 17, 3) == std::string(3, '\0'));
  CHECK(lost.any());
  CHECK(LostPages::met() == before + 1);
  CHECK(LostPages::met_in(all.data(), all.size(), before));
  CHECK_FALSE(LostPages::met_in(all.data(), 3 * kPage, before));
  CHECK(all[kPage] == 'x');  // The other pages keep their content.

  // A later write to a lost page does not show in the mapping, so the file no longer returns the mapping.
  REQUIRE(file->write(2 * kPage, std::string(2 * kPage, 'y')));
  CHECK(all[3 * kPage] == '\0');
  CHECK(file->mapped(4 * kPage).empty());
  std::string read(1, '?');
  CHECK(file->read(3 * kPage, read).value() == 1);
  CHECK(read == "y");
  const auto again = std::move(env->open_random_access(folder.path("cut")).value());
  const std::string_view fresh = again->mapped(4 * kPage);
  REQUIRE(fresh.size() == 4 * kPage);
  CHECK(fresh[3 * kPage] == 'y');
}

TEST_CASE("the pages of one file that are gone say nothing of another one") {
  const Folder folder;
  const auto env = make_posix_env();
  const auto cut = std::move(env->create_random_access(folder.path("cut")).value());
  const auto other = std::move(env->create_random_access(folder.path("other")).value());
  REQUIRE(cut->write(0, std::string(kPage, 'x')));
  REQUIRE(other->write(0, std::string(kPage, 'x')));
  const std::string_view all = cut->mapped(kPage);
  REQUIRE(other->mapped(kPage).size() == kPage);
  std::filesystem::resize_file(folder.path("cut"), 0);
  CHECK(all[0] == '\0');
  CHECK(cut->mapped(kPage).empty());
  CHECK(other->mapped(kPage).size() == kPage);
}

/// Returns the exit status of a child process that touches a lost page in a mapping with these flags.
int end_of_child(const std::string& path, int protection, int flags) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(::ftruncate(fd, kPage) == 0);
  void* const at = ::mmap(nullptr, kPage, protection, flags, fd, 0);
  REQUIRE(at != MAP_FAILED);
  REQUIRE(::ftruncate(fd, 0) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(*static_cast<volatile char*>(at) == '\0' ? 7 : 8);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ::munmap(at, kPage);
  ::close(fd);
  return status;
}

TEST_CASE("a process does not go on without its own code or data") {
  const Folder folder;
  LostPages::guard();
  const int read_only = end_of_child(folder.path("shared"), PROT_READ, MAP_SHARED);
  CHECK((WIFEXITED(read_only) && WEXITSTATUS(read_only) == 7));
  const int writable = end_of_child(folder.path("writable"), PROT_READ | PROT_WRITE, MAP_SHARED);
  CHECK((WIFSIGNALED(writable) && WTERMSIG(writable) == SIGBUS));
  const int own = end_of_child(folder.path("own"), PROT_READ, MAP_PRIVATE);
  CHECK((WIFSIGNALED(own) && WTERMSIG(own) == SIGBUS));
}

}  // namespace
}  // namespace fjord
