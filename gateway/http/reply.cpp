#include "http/reply.h"

#include <future>

namespace fjord::gateway {

bool HttpReply::write_and_wait(std::string piece) const {
  const auto written = std::make_shared<std::promise<bool>>();
  auto is_open = written->get_future();
  write(std::move(piece), [written](bool open) { written->set_value(open); });
  return is_open.get();
}

std::stop_token stop_of(const HttpReply& reply) {
  std::stop_source source;
  reply.on_stop([source]() mutable { source.request_stop(); });
  return source.get_token();
}

}  // namespace fjord::gateway
