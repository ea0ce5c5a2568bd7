#include "http/transport/access_log.h"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace fjord::gateway {
namespace {

/// Keeps what a log writes, and can make it wait.
class Written {
 public:
  void hold() {
    const std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void go_on() {
    {
      const std::lock_guard lock(mutex_);
      is_held_ = false;
    }
    changed_.notify_all();
  }
  void write(std::string_view lines) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_held_; });
    text_ += lines;
    ++calls_;
  }
  int calls() const { return calls_; }
  std::multiset<std::string> lines() const {
    std::multiset<std::string> all;
    std::size_t at = 0;
    while (at < text_.size()) {
      const std::size_t end = text_.find('\n', at);
      if (end == std::string::npos) throw std::runtime_error("a line without an end");
      const std::string line = text_.substr(at, end - at);
      all.insert(line.substr(line.find(" access: ") + 9));
      at = end + 1;
    }
    return all;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false;
  std::string text_;
  int calls_ = 0;
};

void add(AccessLog& log, const std::string& id, const std::string& target = "/a") {
  const HttpRequest request{.method = "GET", .target = target, .body = {}, .request_id = id};
  log.add({.request = request, .status = 200, .bytes = 5, .took = std::chrono::microseconds(7), .protocol = "HTTP/2"});
}

TEST_CASE("access log: problems only") {
  Written written;
  {
    AccessLog log([&](std::string_view lines) { written.write(lines); }, 1 << 20, true);
    const auto add_one = [&](const std::string& id, unsigned status, int ms, const std::string& target) {
      const HttpRequest request{.method = "GET", .target = target, .body = {}, .request_id = id};
      log.add({.request = request,
               .status = status,
               .bytes = 5,
               .took = std::chrono::milliseconds(ms),
               .protocol = "HTTP/2"});
    };
    const std::string document = "/document/v1/a/b/docid/c";
    for (const unsigned status : {200U, 204U, 308U, 404U, 412U}) add_one("usual", status, 999, document);
    for (const unsigned status : {400U, 421U, 429U, 499U, 500U, 504U}) add_one("bad", status, 1, document);
    add_one("elsewhere", 404, 1, "/a");
    add_one("slow", 200, 1000, document);
  }
  const auto lines = written.lines();
  CHECK(lines.size() == 8);
  for (const std::string& line : lines) CHECK_FALSE(line.starts_with("usual"));
}

TEST_CASE("access log: all lines of all threads are written, many at once") {
  constexpr int kThreads = 4;
  constexpr int kLines = 3000;
  Written written;
  written.hold();
  {
    AccessLog log([&](std::string_view lines) { written.write(lines); });
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&log, i] {
        for (int j = 0; j < kLines; ++j) add(log, std::to_string(i) + "-" + std::to_string(j));
      });
    }
    for (std::thread& thread : threads) thread.join();
    written.go_on();
  }
  const auto lines = written.lines();
  REQUIRE(lines.size() == kThreads * kLines);
  CHECK(std::set(lines.begin(), lines.end()).size() == lines.size());
  CHECK(lines.contains("2-17 GET /a 200 7 us 5 bytes HTTP/2"));
  // What came before the first call, and all that came during it.
  CHECK(written.calls() <= 2);
}

TEST_CASE("access log: lines wait for those before when there is no room, and none is lost") {
  constexpr int kLines = 20;
  Written written;
  {
    AccessLog log([&](std::string_view lines) { written.write(lines); }, 1);
    for (int i = 0; i < kLines; ++i) add(log, std::to_string(i));
  }
  CHECK(written.lines().size() == kLines);
  CHECK(written.calls() == kLines);
}

TEST_CASE("access log: a target is one word of printable characters") {
  Written written;
  {
    AccessLog log([&](std::string_view lines) { written.write(lines); });
    add(log, "1", "/a b\"\xff");
    add(log, "2", std::string(1001, 'y'));
  }
  CHECK(written.lines().contains("1 GET /a%20b%22%FF 200 7 us 5 bytes HTTP/2"));
  CHECK(written.lines().contains("2 GET " + std::string(1000, 'y') + "... 200 7 us 5 bytes HTTP/2"));
}

}  // namespace
}  // namespace fjord::gateway
