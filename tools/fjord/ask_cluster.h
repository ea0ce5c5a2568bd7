#pragma once

#include <future>
#include <memory>

#include "fjord/client/connect.h"

namespace fjord::cli {

/// Sends `request` to any distributor and waits for the answer. Errors: those of the call, and a status that is not OK.
template <typename R>
Result<typename R::Reply> ask_cluster(Connection& connection, R request, Duration timeout) {
  auto answer = std::make_shared<std::promise<Result<typename R::Reply>>>();
  auto future = answer->get_future();
  connection.client().call_any(std::move(request), timeout,
                               [answer](Result<typename R::Reply> reply) { answer->set_value(std::move(reply)); });
  Result<typename R::Reply> reply = future.get();
  if (reply && !reply->status) return reply->status;
  return reply;
}

/// The same to one node.
template <typename R>
Result<typename R::Reply> ask_node(Connection& connection, const rpc::Address& node, R request, Duration timeout) {
  auto answer = std::make_shared<std::promise<Result<typename R::Reply>>>();
  auto future = answer->get_future();
  rpc::call(connection.transport(), node, std::move(request), timeout, connection.executor(),
            [answer](Result<typename R::Reply> reply) { answer->set_value(std::move(reply)); });
  Result<typename R::Reply> reply = future.get();
  if (reply && !reply->status) return reply->status;
  return reply;
}

/// Who gives the order, for the history: user@host.
std::string who_am_i();
/// "2026-11-21 12:34:56", in UTC.
std::string time_text(std::int64_t unix_us);

}  // namespace fjord::cli
