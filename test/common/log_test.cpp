#include "fjord/common/log.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "fjord/common/log_lines.h"

namespace fjord::log {
namespace {

/// Returns what `f` writes to standard error.
template <typename F>
std::string stderr_of(F f) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int before = ::dup(STDERR_FILENO);
  REQUIRE(::dup2(::fileno(file), STDERR_FILENO) >= 0);
  f();
  REQUIRE(::dup2(before, STDERR_FILENO) >= 0);
  ::close(before);
  std::string text(static_cast<std::size_t>(std::ftell(file)) + 100'000, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST_CASE("log: what others send makes no line and no colour of its own") {
  const std::string text = stderr_of(
      [] { info("storage", "a message of {}", "x\n2026-01-01T00:00:00 info controller: FORGED\x1b[31m\xc2\x9b"); });
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(text.ends_with("info storage: a message of x\\n2026-01-01T00:00:00 info controller: FORGED\\x1b[31m\\u{9b}\n"));
}

TEST_CASE("log: lines are cut at 4 KiB") {
  const std::string text = stderr_of([] { warning("rpc", "{}", std::string(10'000'000, 'x')); });
  CHECK(text.size() < 4300);
  CHECK(text.ends_with("... (9995904 bytes more)\n"));
  CHECK(std::count(text.begin(), text.end(), 'x') == 4096);
}

TEST_CASE("log: the journal gets levels and no times") {
  const std::string text = stderr_of([] {
    struct stat found {};
    REQUIRE(::fstat(STDERR_FILENO, &found) == 0);
    ::setenv("JOURNAL_STREAM", (std::to_string(found.st_dev) + ":" + std::to_string(found.st_ino)).c_str(), 1);
    std::string lines;
    LineFormatter formatter;
    formatter.append(Level::Warning, "rpc", "slow", lines);
    formatter.append(Level::Info, "rpc", "well", lines);
    write_lines(lines);
    ::setenv("JOURNAL_STREAM", "1:1", 1);
    lines.clear();
    LineFormatter().append(Level::Info, "rpc", "elsewhere", lines);
    CHECK(lines.ends_with(" info rpc: elsewhere\n"));
    ::unsetenv("JOURNAL_STREAM");
  });
  CHECK(text == "<4>rpc: slow\n<6>rpc: well\n");
}

TEST_CASE("log: a file that grows too large is followed by others, and a renamed one by a new one") {
  std::string folder = (std::filesystem::temp_directory_path() / "fjord-log-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/storage.0.log";
  const auto size_of = [](const std::string& file) {
    return std::filesystem::exists(file) ? std::filesystem::file_size(file) : 0;
  };
  const int before_out = ::dup(STDOUT_FILENO);
  const int before_err = ::dup(STDERR_FILENO);
  CHECK(write_to_file({.path = path, .bytes_max = 10'000, .files_max = 3}));
  for (int i = 0; i < 100; ++i) write_lines(std::string(999, 'x') + "\n");
  ::unlink(path.c_str());  // As a program does that rotates logs.
  CHECK(reopen_file());
  write_lines("again\n");
  const auto again = size_of(path);
  ::unlink(path.c_str());
  REQUIRE(::symlink("elsewhere", path.c_str()) == 0);
  const Status linked = reopen_file();
  CHECK(write_to_file({.path = folder + "/other.log", .bytes_max = 1 << 30, .files_max = 1}));
  ::dup2(before_out, STDOUT_FILENO);
  ::dup2(before_err, STDERR_FILENO);
  CHECK(again == 6);
  CHECK(size_of(path + ".1") == 10'000);
  CHECK(size_of(path + ".2") == 10'000);
  CHECK_FALSE(std::filesystem::exists(path + ".3"));
  CHECK(linked.code() == StatusCode::IoError);
  CHECK_FALSE(std::filesystem::exists(folder + "/elsewhere"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("log: lines that a component makes itself are escaped, too") {
  LineFormatter formatter;
  std::string lines;
  formatter.append(Level::Info, "access", "GET\n/", lines);
  CHECK(lines.ends_with(" info access: GET\\n/\n"));
}

}  // namespace
}  // namespace fjord::log
