#include "operations/guard_rails.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>
#include <unistd.h>

#include "fjord/common/log.h"
#include "fjord/sim/sim_clock.h"

namespace fjord::test {
namespace {

/// Collects the log lines of this process, which go to standard error, until it is destroyed.
class LogCapture {
 public:
  LogCapture() : file_(std::tmpfile()), before_(::dup(STDERR_FILENO)) {
    REQUIRE(file_ != nullptr);
    REQUIRE(::dup2(::fileno(file_), STDERR_FILENO) >= 0);
    log::set_level(log::Level::Warning);
  }
  ~LogCapture() {
    log::set_level(log::Level::Off);
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    std::fclose(file_);
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// Returns how many of the lines so far contain `text`.
  std::size_t lines_with(const std::string& text) const {
    std::size_t found = 0;
    std::rewind(file_);
    char line[1024];
    while (std::fgets(line, sizeof(line), file_) != nullptr) {
      found += std::string(line).find(text) != std::string::npos ? 1 : 0;
    }
    return found;
  }

 private:
  std::FILE* file_;
  int before_;
};

}  // namespace

TEST_CASE(
    "conditional rails: the first document above a warning threshold is logged, then one a minute for each limit") {
  TunableRegistry tunables;
  MetricRegistry metrics;
  sim::SimClock clock;
  distributor::GuardRails rails(tunables, metrics, clock);
  REQUIRE(tunables.set("distributor.document_bytes_warn", 10).is_ok());
  const LogCapture log;
  const std::string header;
  const std::string body(20, 'x');
  REQUIRE(rails.check("id:n:item::first", header, body));
  CHECK(log.lines_with("id:n:item::first: document bytes") == 1);
  for (int i = 0; i < 5; ++i) REQUIRE(rails.check("id:n:item::next", header, body));
  clock.advance_to(clock.now() + seconds(59));
  REQUIRE(rails.check("id:n:item::next", header, body));
  CHECK(log.lines_with("document bytes") == 1);

  // A warning about another limit is logged although one about the first limit was logged less than a minute ago.
  REQUIRE(tunables.set("distributor.id_bytes_warn", 10).is_ok());
  REQUIRE(rails.check("id:n:item::long", header, {}));
  CHECK(log.lines_with("id:n:item::long: id bytes") == 1);

  clock.advance_to(clock.now() + seconds(1));
  REQUIRE(rails.check("id:n:item::later", header, body));
  CHECK(log.lines_with("id:n:item::later: document bytes") == 1);
  CHECK(log.lines_with("document bytes") == 2);
  CHECK(metrics.counter("fjord_distributor_limit_warnings_total", "", {{"limit", "document bytes"}}).value() == 8);
}

}  // namespace fjord::test
