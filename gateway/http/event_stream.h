#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "fjord/common/clock.h"
#include "http/long_answer.h"
#include "http/reply.h"

namespace fjord::gateway {

/// Server-sent events (text/event-stream). Only on a thread that may wait.
class EventStream {
 public:
  /// Begins the answer. `heartbeat`: longest time without a line.
  EventStream(const HttpReply& reply, Duration heartbeat);

  /// Sends an event with JSON, unless it is the same as the last one; then a comment if it is time for one.
  void send(std::string_view event, const std::string& json);
  /// Ends the stream.
  void end() { answer_.end(); }

 private:
  using SteadyClock = std::chrono::steady_clock;

  LongAnswer answer_;
  const Duration heartbeat_;
  std::string last_;
  std::uint64_t id_ = 0;
  SteadyClock::time_point last_time_ = SteadyClock::now();
};

}  // namespace fjord::gateway
