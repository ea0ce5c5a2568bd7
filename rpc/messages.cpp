#include "fjord/rpc/messages.h"

#include <array>
#include <utility>

namespace fjord::rpc {

const char* name_of(const Request& request) {
  return std::visit([](const auto& r) { return std::decay_t<decltype(r)>::kName; }, request);
}

Reply error_reply(const Request& request, Status status) {
  return std::visit(
      [&](const auto& r) -> Reply {
        typename std::decay_t<decltype(r)>::Reply reply;
        reply.status = std::move(status);
        return reply;
      },
      request);
}

const Status& status_of(const Reply& reply) {
  return std::visit([](const auto& r) -> const Status& { return r.status; }, reply);
}

}  // namespace fjord::rpc
