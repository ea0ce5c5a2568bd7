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

namespace {

void lie_about_stops(const rpc::ChangeNodes& request, bool allows, rpc::Reply& reply) {
  auto* answer = std::get_if<rpc::ChangeNodesReply>(&reply);
  if (answer == nullptr || request.action != rpc::NodeAction::Stop) return;
  answer->refusals.clear();
  if (!allows) answer->refusals.emplace_back("it is not safe");
}

void hide_missing(rpc::Reply& reply) {
  auto* answer = std::get_if<rpc::ExecuteReply>(&reply);
  if (answer == nullptr) return;
  for (rpc::OperationResult& result : answer->results) {
    if (result.status.code() != StatusCode::Unavailable) continue;
    result.status = Status(StatusCode::NotFound, "there is no such document");
  }
}

void say_in_sync(rpc::Reply& reply) {
  auto* answer = std::get_if<rpc::PollReply>(&reply);
  if (answer == nullptr) return;
  answer->buckets_out_of_sync = answer->buckets_unavailable = answer->buckets_under_replicated = 0;
  answer->buckets_collecting = answer->buckets_damaged = answer->buckets_failing = 0;
}

}  // namespace

void LyingService::refuse_forever(const std::vector<std::string>& ids, rpc::Reply& reply) {
  auto* answer = std::get_if<rpc::ExecuteReply>(&reply);
  if (answer == nullptr || answer->results.size() != ids.size()) return;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    rpc::OperationResult& result = answer->results[i];
    if (result.status.code() == StatusCode::Unavailable) refused_.try_emplace(ids[i], result.status);
    if (const auto refused = refused_.find(ids[i]); refused != refused_.end()) result.status = refused->second;
  }
}

bool LyingService::handle(rpc::Request& request, rpc::Responder& respond) {
  if (const auto* nodes = std::get_if<rpc::ChangeNodes>(&request)) {
    const bool lies = bug_ == Bug::AllowStops || bug_ == Bug::ForbidStops;
    if (!lies) return service_.handle(request, respond);
    return handle_and_change(service_, request, respond, [this, asked = *nodes](rpc::Reply& reply) {
      lie_about_stops(asked, bug_ == Bug::AllowStops, reply);
    });
  }
  if (std::holds_alternative<rpc::Poll>(request) && bug_ == Bug::SayInSync) {
    return handle_and_change(service_, request, respond, say_in_sync);
  }
  const auto* execute = std::get_if<rpc::Execute>(&request);
  if (execute == nullptr || execute->rest != 0) return service_.handle(request, respond);
  if (bug_ == Bug::HideMissing) return handle_and_change(service_, request, respond, hide_missing);
  if (bug_ != Bug::KeepOutage) return service_.handle(request, respond);
  std::vector<std::string> ids;
  for (const rpc::Operation& operation : execute->operations) ids.push_back(operation.id);
  return handle_and_change(service_, request, respond,
                           [this, ids = std::move(ids)](rpc::Reply& reply) { refuse_forever(ids, reply); });
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
