#include "http/event_stream.h"

#include <fmt/format.h>
#include <utility>

namespace fjord::gateway {

EventStream::EventStream(const HttpReply& reply, Duration heartbeat)
    : answer_(reply, "text/event-stream; charset=UTF-8"), heartbeat_(heartbeat) {}

void EventStream::send(std::string_view event, const std::string& json) {
  std::string text = fmt::format("event: {}\ndata: {}\n\n", event, json);
  const auto now = SteadyClock::now();
  if (text != last_) {
    answer_.add(fmt::format("id: {}\n{}", ++id_, text));
    last_ = std::move(text);
  } else if (now - last_time_ >= heartbeat_) {
    answer_.add(": alive\n\n");
  } else {
    return;
  }
  last_time_ = now;
  answer_.flush();
}

}  // namespace fjord::gateway
