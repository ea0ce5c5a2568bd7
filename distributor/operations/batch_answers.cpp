#include "batch_answers.h"

#include <algorithm>
#include <utility>

#include "fjord/document/document.h"
#include "fjord/document/json.h"

namespace fjord::distributor {
namespace {

// How long the results of ended operations are kept if the client does not ask for them.
constexpr Duration kKeepRest = seconds(1);

}  // namespace

BatchAnswers::BatchAnswers(Context& context, Admission& admission, OperationMetrics& metrics, Hooks hooks)
    : context_(context),
      admission_(admission),
      metrics_(metrics),
      hooks_(std::move(hooks)),
      unclaimed_(static_cast<std::uint64_t>(context.clock.wall_now().us)) {}

void BatchAnswers::add(const std::shared_ptr<Batch>& batch) {
  metrics_.pending.set(static_cast<double>(admission_.operations()));
  if (batch->left == 0) {
    answer(*batch);
    return;
  }
  batch->number = next_batch_++;
  batches_.emplace(batch->number, batch);
}

void BatchAnswers::ended(const std::shared_ptr<Batch>& batch) {
  ++batch->undelivered;
  if (--batch->left == 0) {
    answer(*batch);
  } else {
    answer_part_soon(batch);
  }
}

void BatchAnswers::watch(const std::shared_ptr<Batch>& batch) {
  std::optional<MonotonicTime> next;
  for (const Op& op : batch->ops) {
    if (!op.settled && (!next || op.deadline < *next)) next = op.deadline;
  }
  if (!next) return;
  if (batch->takes_parts && !batch->is_part_due) next = std::min(*next, batch->part_at);
  context_.executor.post_after(std::max(*next - context_.clock.now(), Duration(0)),
                               [this, weak = std::weak_ptr<Batch>(batch)] {
                                 if (auto alive = weak.lock()) on_time(alive);
                               });
}

void BatchAnswers::on_time(const std::shared_ptr<Batch>& batch) {
  const MonotonicTime now = context_.clock.now();
  for (std::uint32_t i = 0; i < batch->ops.size(); ++i) {
    const Op& op = batch->ops[i];
    if (!op.settled && op.deadline <= now) hooks_.expire({batch, i, op.attempt});
  }
  hooks_.flush();
  if (batch->left == 0) return;
  batch->is_part_due = batch->takes_parts && now >= batch->part_at;
  answer_part(batch);
  watch(batch);
}

void BatchAnswers::answer(Batch& batch) {
  admission_.released(batch.bytes);
  metrics_.pending.set(static_cast<double>(admission_.operations()));
  if (batch.rest != 0) {  // The client got a part of the answer; its request for the rest is in flight or lost.
    context_.executor.post_after(kKeepRest, [this, rest = batch.rest] { unclaimed_.drop(rest); });
    batches_.erase(batch.number);
    return;
  }
  rpc::ExecuteReply reply = take_results(batch);
  rpc::Responder respond = std::move(batch.respond);
  batches_.erase(batch.number);  // After this line, the batch may be destroyed.
  respond(std::move(reply));
}

rpc::ExecuteReply BatchAnswers::take_results(Batch& batch) {
  rpc::ExecuteReply reply;
  reply.results.reserve(batch.ops.size());
  for (Op& op : batch.ops) {
    if (op.delivered) continue;
    op.delivered = op.settled;
    if (op.settled) {
      reply.results.push_back(std::move(op.result));
    } else {
      reply.results.emplace_back().status = Status(StatusCode::Unknown, {});
    }
  }
  batch.undelivered = 0;
  if (context_.snapshot == nullptr) return reply;
  if (context_.snapshot->is_of_another_cluster(batch.request.cluster_id)) {
    reply.newer_info = context_.snapshot->info_newer_than(0, 0);
  } else if (context_.snapshot->state_version() > batch.request.state_version) {
    reply.newer_info = context_.snapshot->info_newer_than(batch.request.state_version, 0);
  }
  return reply;
}

/// Posts a task that sends a part of the answer, so that all outcomes from one message of a storage node go into one
/// part.
void BatchAnswers::answer_part_soon(const std::shared_ptr<Batch>& batch) {
  if (!batch->is_part_due || batch->rest != 0 || std::exchange(batch->is_part_posted, true)) return;
  context_.executor.post([this, weak = std::weak_ptr<Batch>(batch)] {
    const auto alive = weak.lock();
    if (alive == nullptr) return;
    alive->is_part_posted = false;
    answer_part(alive);
  });
}

void BatchAnswers::answer_part(const std::shared_ptr<Batch>& batch) {
  if (!batch->is_part_due || batch->rest != 0 || batch->undelivered == 0 || batch->left == 0) return;
  rpc::ExecuteReply reply = take_results(*batch);
  batch->rest = unclaimed_.add(batch);
  reply.rest = batch->rest;
  metrics_.parts.add();
  std::exchange(batch->respond, {})(std::move(reply));
}

void BatchAnswers::answer_rest(std::uint64_t number, std::uint64_t client, rpc::Responder respond) {
  const std::shared_ptr<Batch> batch = unclaimed_.take(number, client);
  if (batch == nullptr) {
    rpc::ExecuteReply reply;
    const std::string name = "distributor." + std::to_string(context_.options.index);
    reply.status =
        Status(StatusCode::Timeout, name + " does not know the rest of this answer any more", {.node = name});
    respond(std::move(reply));
    return;
  }
  batch->rest = 0;
  if (batch->left == 0) {
    respond(take_results(*batch));
    return;
  }
  batch->respond = std::move(respond);
  answer_part(batch);
}

/// Reduces the answer to a get to the wanted fields, and converts it to JSON if that is wanted.
void shape_document(const OpRef& ref, const DocumentTypeRepo& types) {
  rpc::OperationResult& result = ref.op().result;
  if (ref.op().fields != nullptr) {
    EncodedDocument buffer;
    Result<ProjectedDocument> projected = ref.op().fields->project(result.header, result.body, buffer);
    if (!projected) {
      result.status = projected.error();
      return;
    }
    EncodedDocument kept{std::string(projected->header), std::string(projected->body)};
    result.header = std::move(kept.header);
    result.body = std::move(kept.body);
  }
  if (!ref.request().want_json || result.header.empty()) return;
  Result<DocumentView> view = DocumentView::open(types, result.header, result.body);
  Result<std::string> json = view ? to_json_document(*view) : Result<std::string>(view.error());
  if (json) {
    result.json = std::move(*json);
  } else {
    result.status = json.error();
  }
  result.header.clear();
  result.body.clear();
}

}  // namespace fjord::distributor
