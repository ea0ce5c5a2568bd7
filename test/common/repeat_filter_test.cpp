#include "repeat_filter.h"

#include <catch2/catch.hpp>

namespace fjord::log {
namespace {

using std::chrono::seconds;

const RepeatFilter::Time kBegin{std::chrono::hours(1)};

TEST_CASE("repeat filter: a fault that repeats is one line, and its end says how often it came") {
  RepeatFilter filter;
  for (int i = 0; i < 50; ++i)
    CHECK(filter.admit(Level::Warning, "rpc", "cannot accept", kBegin + seconds(i)) == (i == 0));
  CHECK(filter.take_due(kBegin + seconds(58)).empty());
  const auto due = filter.take_due(kBegin + seconds(59));
  REQUIRE(due.size() == 1);
  CHECK(due[0].level == Level::Warning);
  CHECK(due[0].component == "rpc");
  CHECK(due[0].line == "cannot accept (49 more times in 49 s)");
  CHECK(filter.take_due(kBegin + seconds(200)).empty());
  CHECK(filter.admit(Level::Warning, "rpc", "cannot accept", kBegin + seconds(200)));
}

TEST_CASE("repeat filter: a fault that does not end is counted each minute") {
  RepeatFilter filter;
  std::vector<std::string> lines;
  for (int i = 0; i <= 130; ++i) {
    filter.admit(Level::Error, "disk", "full", kBegin + seconds(i));
    for (const auto& one : filter.take_due(kBegin + seconds(i))) lines.push_back(one.line);
  }
  CHECK(lines == std::vector<std::string>{"full (60 more times in 60 s)", "full (60 more times in 60 s)"});
}

TEST_CASE("repeat filter: other faults, and those that come seldom, are written each time") {
  RepeatFilter filter;
  CHECK(filter.admit(Level::Warning, "a", "x", kBegin));
  CHECK(filter.admit(Level::Error, "a", "x", kBegin));
  CHECK(filter.admit(Level::Warning, "b", "x", kBegin));
  CHECK(filter.admit(Level::Warning, "a", "y", kBegin));
  for (int i = 1; i < 5; ++i) CHECK(filter.admit(Level::Warning, "a", "x", kBegin + i * RepeatFilter::kSilence));
  CHECK(filter.take_due(kBegin + seconds(1000)).empty());
}

TEST_CASE("repeat filter: many different faults take bounded memory and lose no count") {
  RepeatFilter filter;
  CHECK(filter.admit(Level::Warning, "a", "first", kBegin));
  CHECK_FALSE(filter.admit(Level::Warning, "a", "first", kBegin));
  for (int i = 0; i < 10'000; ++i) CHECK(filter.admit(Level::Warning, "a", std::to_string(i), kBegin + seconds(1)));
  const auto due = filter.take_due(kBegin + seconds(2));
  REQUIRE(due.size() == 1);
  CHECK(due[0].line == "first (1 more time in 0 s)");
}

}  // namespace
}  // namespace fjord::log
