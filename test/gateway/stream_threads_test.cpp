#include "http/stream_threads.h"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "http/transport/stream_shares.h"

namespace fjord::gateway {
namespace {

TEST_CASE("stream shares: the readers of one client, and of one group of paths, close nothing for others") {
  StreamShares shares({.client_max = 5, .group_max = 3});
  std::vector<std::unique_ptr<StreamShares::Share>> taken;
  const auto begins = [&](const std::string& client, std::string_view group) {
    auto share = shares.take(client, group);
    if (share == nullptr) return false;
    taken.push_back(std::move(share));
    return true;
  };
  for (int i = 0; i < 3; ++i) CHECK(begins("192.0.2.1", "changes"));
  CHECK_FALSE(begins("192.0.2.1", "changes"));
  CHECK(begins("192.0.2.2", "changes"));
  CHECK(begins("192.0.2.1", "document"));
  CHECK(begins("192.0.2.1", "cluster"));
  CHECK_FALSE(begins("192.0.2.1", "jobs"));
  CHECK(begins("192.0.2.2", "jobs"));
  taken.erase(taken.begin());
  CHECK(begins("192.0.2.1", "changes"));
  CHECK_FALSE(begins("192.0.2.1", "changes"));
}

TEST_CASE("stream threads: all clients together are bounded, and an end makes room") {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_over = false;
  StreamThreads threads(2);
  const auto wait = [&] {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_over; });
  };
  CHECK(threads.run(wait));
  CHECK(threads.run(wait));
  CHECK_FALSE(threads.run(wait));
  {
    const std::lock_guard lock(mutex);
    is_over = true;
  }
  changed.notify_all();
  while (!threads.run(wait)) std::this_thread::yield();
  threads.end();
  CHECK_FALSE(threads.run(wait));
}

}  // namespace
}  // namespace fjord::gateway
