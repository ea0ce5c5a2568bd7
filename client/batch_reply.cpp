#include "batch_reply.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fjord {

rpc::Request request_for(rpc::Execute batch, bool is_strict) {
  if (!is_strict) return rpc::Request(std::move(batch));
  rpc::ExecuteStrict strict;
  const auto any_has = [&](auto member) {
    return std::any_of(batch.operations.begin(), batch.operations.end(),
                       [&](const rpc::Operation& operation) { return (operation.*member).has_value(); });
  };
  if (any_has(&rpc::Operation::required_version)) strict.features.emplace_back("required_version");
  if (any_has(&rpc::Operation::node)) strict.features.emplace_back("node");
  strict.batch = std::move(batch);
  return rpc::Request(std::move(strict));
}

rpc::ExecuteReply results_of(Result<rpc::Reply> answer, std::size_t operations, bool is_rest) {
  rpc::ExecuteReply reply;
  if (!answer) {
    reply.status = answer.error();
  } else if (auto* plain = std::get_if<rpc::ExecuteReply>(&*answer)) {
    reply = std::move(*plain);
  } else if (auto* strict = std::get_if<rpc::ExecuteStrictReply>(&*answer)) {
    reply = std::move(strict->batch);
    if (!strict->status) reply.status = strict->status;
  } else {
    reply.status = Status(StatusCode::Corruption, "the answer is of another call");
  }
  if (is_rest && !reply.status) reply.status = Status(StatusCode::Timeout, reply.status.to_string());
  if (reply.status && reply.results.size() != operations) {
    reply.status = Status(StatusCode::Corruption, "the answer has " + std::to_string(reply.results.size()) +
                                                      " results for " + std::to_string(operations) + " operations");
  }
  return reply;
}

std::vector<PendingPtr> take_unfinished(std::vector<PendingPtr>& operations, rpc::ExecuteReply& reply) {
  std::vector<PendingPtr> unfinished;
  std::size_t ended = 0;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (reply.results[i].status.code() == StatusCode::Unknown) {
      unfinished.push_back(std::move(operations[i]));
      continue;
    }
    if (ended != i) {
      operations[ended] = std::move(operations[i]);
      reply.results[ended] = std::move(reply.results[i]);
    }
    ++ended;
  }
  operations.resize(ended);
  reply.results.resize(ended);
  return unfinished;
}

}  // namespace fjord
