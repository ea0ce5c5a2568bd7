#include "faulty_services.h"

#include <functional>
#include <memory>
#include <utility>

#include "fjord/cluster/cluster_state.h"
#include "fjord/document/docblock.h"

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

namespace {

/// Handles a request, but passes the answer to `change` before it is sent.
bool handle_and_change(rpc::Service& service, rpc::Request& request, rpc::Responder& respond,
                       std::function<void(rpc::Reply&)> change) {
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  rpc::Responder changed = [answer, change = std::move(change)](rpc::Reply reply) {
    change(reply);
    (*answer)(std::move(reply));
  };
  const bool taken = service.handle(request, changed);
  if (!taken) respond = std::move(*answer);
  return taken;
}

}  // namespace

bool HidesRemoves::handle(rpc::Request& request, rpc::Responder& respond) {
  if (!std::holds_alternative<rpc::ReadChanges>(request) || !random_.chance(0.2)) {
    return service_.handle(request, respond);
  }
  return handle_and_change(service_, request, respond, [](rpc::Reply& reply) {
    auto* changes = std::get_if<rpc::ReadChangesReply>(&reply);
    if (changes == nullptr) return;
    for (rpc::BucketChanges& bucket : changes->buckets) {
      DocBlockBuilder kept;
      DocBlockReader reader(bucket.docblock);
      while (const auto entry = reader.next()) {
        if (!entry->removed) kept.add(*entry);
      }
      bucket.docblock = kept.take();
    }
  });
}

bool DeniesWrites::handle(rpc::Request& request, rpc::Responder& respond) {
  const auto* nodes = std::get_if<rpc::GetBucketNodes>(&request);
  if (nodes == nullptr || !nodes->for_changes) return service_.handle(request, respond);
  return handle_and_change(service_, request, respond, [](rpc::Reply& reply) {
    auto* found = std::get_if<rpc::GetBucketNodesReply>(&reply);
    if (found == nullptr) return;
    for (rpc::BucketNode& bucket : found->buckets) bucket.stable_us += 1'000'000'000'000;
  });
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
