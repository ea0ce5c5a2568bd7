#include "fjord/common/processor_time.h"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace fjord {
namespace {

void work_for(Duration time) {
  const Duration begin = processor_time();
  while (processor_time() - begin < time) {
  }
}

}  // namespace

TEST_CASE("processor time: what this thread works counts, what others work and waiting for them does not") {
  const Duration process = processor_time_of(::getpid());
  const Duration begin = processor_time();
  work_for(milliseconds(5));
  const Duration own = processor_time() - begin;
  CHECK(own >= milliseconds(5));
  std::thread([] { work_for(milliseconds(100)); }).join();
  CHECK(processor_time() - begin < own + milliseconds(100));
  CHECK(processor_time_of(::getpid()) - process >= milliseconds(105));
}

TEST_CASE("processor time: of another process it counts what somebody says") {
  const Duration begin = processor_time();
  add_processor_time(seconds(1000));
  CHECK(processor_time() - begin >= seconds(1000));
  Duration elsewhere{0};
  std::thread([&] { elsewhere = processor_time(); }).join();
  CHECK(elsewhere < seconds(1000));
  CHECK(processor_time_of(-1) == Duration(0));
}

}  // namespace fjord
