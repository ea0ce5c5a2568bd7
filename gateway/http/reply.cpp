#include "http/reply.h"

#include <future>

namespace fjord::gateway {

bool HttpReply::write_and_wait(std::string piece) const {
  const auto written = std::make_shared<std::promise<bool>>();
  auto is_open = written->get_future();
  write(std::move(piece), [written](bool open) { written->set_value(open); });
  return is_open.get();
}

}  // namespace fjord::gateway
