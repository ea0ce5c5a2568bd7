#include "acknowledged.h"

#include <fmt/format.h>

namespace fjord::sim {
namespace {

bool is_write(rpc::OperationKind kind) {
  return kind == rpc::OperationKind::Put || kind == rpc::OperationKind::Update || kind == rpc::OperationKind::Remove;
}

}  // namespace

NetworkObserver::SeeReply Acknowledged::see_request(const std::string& to, const rpc::Request& request) {
  const auto* strict = std::get_if<rpc::ExecuteStrict>(&request);
  const auto* execute = strict != nullptr ? &strict->batch : std::get_if<rpc::Execute>(&request);
  if (execute == nullptr || !to.starts_with("distributor")) return {};
  Batch batch;
  if (execute->rest == 0) {
    batch = begin(*execute);
  } else if (const auto rest = rests_.find({to, execute->rest}); rest != rests_.end()) {
    batch = rest->second;
  }
  if (batch.empty()) return {};
  return [this, to, batch = std::move(batch)](const Result<rpc::Reply>& reply) {
    if (!reply) return;
    const auto* answer = std::get_if<rpc::ExecuteReply>(&*reply);
    if (const auto* of_strict = std::get_if<rpc::ExecuteStrictReply>(&*reply)) answer = &of_strict->batch;
    if (answer != nullptr) take(to, batch, *answer);
  };
}

Acknowledged::Batch Acknowledged::begin(const rpc::Execute& request) {
  Batch batch;
  for (const rpc::Operation& operation : request.operations) {
    Begun& begun = batch.emplace_back();
    // A get of one named replica may find less than a client is promised.
    if (operation.id.starts_with("id:fjord:") || operation.node) continue;
    begun.id = operation.id;
    begun.kind = operation.kind;
    begun.number = {request.client_id, operation.sequence};
    if (operation.kind == rpc::OperationKind::Remove) {
      Document& document = documents_[operation.id];
      document.removes_in_doubt.insert(begun.number);
      ++document.removes_begun;
    } else if (is_write(operation.kind)) {
      documents_.try_emplace(operation.id);  // It may exist from now on.
    } else if (operation.kind == rpc::OperationKind::Get) {
      if (const auto known = documents_.find(operation.id); known != documents_.end()) begun.known = known->second;
    }
  }
  return batch;
}

void Acknowledged::take(const std::string& to, Batch batch, const rpc::ExecuteReply& reply) {
  if (!reply.status || reply.results.size() != batch.size()) return;
  Batch open;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (reply.rest != 0 && reply.results[i].status.code() == StatusCode::Unknown) {
      open.push_back(std::move(batch[i]));
    } else {
      end(batch[i], reply.results[i]);
    }
  }
  if (reply.rest != 0) rests_[{to, reply.rest}] = std::move(open);
}

void Acknowledged::end(const Begun& operation, const rpc::OperationResult& result) {
  if (operation.id.empty()) return;
  if (listener_) listener_(operation.id, result.status);
  Document& document = documents_[operation.id];
  if (is_write(operation.kind) && result.status) {
    if (operation.kind == rpc::OperationKind::Remove) document.removes_in_doubt.erase(operation.number);
    if (result.timestamp_us <= document.timestamp_us) return;
    document.timestamp_us = result.timestamp_us;
    document.removed = operation.kind == rpc::OperationKind::Remove;
  } else if (operation.kind == rpc::OperationKind::Get && result.status.code() == StatusCode::NotFound) {
    ++not_found_;
    // A remove that began after the read may be its reason, also if the document was written again since.
    const bool is_untouched = document.removes_begun == operation.known.removes_begun;
    if (!operation.known.must_exist() || !is_untouched || !failure_.empty()) return;
    failure_ = fmt::format("I25: NOT_FOUND for {}, {}", operation.id, why_not(operation.known, 0));
  }
}

std::string Acknowledged::why_not(const Document& known, std::uint64_t timestamp_us) {
  if (timestamp_us >= known.timestamp_us) return {};
  if (timestamp_us == 0 && !known.must_exist()) return {};
  return fmt::format("of which a {} of {} was acknowledged{}", known.removed ? "remove" : "version", known.timestamp_us,
                     timestamp_us == 0 ? std::string() : fmt::format(", and which is given as of {}", timestamp_us));
}

}  // namespace fjord::sim
