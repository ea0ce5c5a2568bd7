#include "fjord/common/log.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
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

TEST_CASE("log: lines that a component makes itself are escaped, too") {
  LineFormatter formatter;
  std::string lines;
  formatter.append(Level::Info, "access", "GET\n/", lines);
  CHECK(lines.ends_with(" info access: GET\\n/\n"));
}

}  // namespace
}  // namespace fjord::log
