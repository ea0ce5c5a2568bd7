#include "sabotage.h"

#include <memory>
#include <utility>

#include "fjord/cluster/cluster_state.h"

namespace fjord::sim {

void ForkingTransport::call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
                            rpc::ReplyFunction done) {
  auto* poll = std::get_if<rpc::Poll>(&request);
  if (active_ && poll != nullptr && to.starts_with("storage.") && (to[8] - '0') % 2 == 1 && !poll->info.state.empty()) {
    if (Result<ClusterState> state = ClusterState::parse(poll->info.state)) {
      state->set_node_state({NodeType::Distributor, 0}, NodeState::Down);
      poll->info.state = state->to_string();
    }
  }
  transport_.call(to, std::move(request), timeout, executor, std::move(done));
}

bool ForgetfulVisits::handle(rpc::Request& request, rpc::Responder& respond) {
  if (!std::holds_alternative<rpc::VisitorNext>(request)) return service_.handle(request, respond);
  const bool forgets = random_.chance(0.05);
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  rpc::Responder forgetful = [answer, forgets](rpc::Reply reply) {
    auto* next = std::get_if<rpc::VisitorNextReply>(&reply);
    if (forgets && next != nullptr && !next->events.empty()) next->events.front().docblock.clear();
    (*answer)(std::move(reply));
  };
  const bool taken = service_.handle(request, forgetful);
  if (!taken) respond = std::move(*answer);
  return taken;
}

}  // namespace fjord::sim
