#include "replica_messenger.h"

#include <algorithm>
#include <utility>

#include "fjord/rpc/deadline.h"

namespace fjord::distributor {

ReplicaMessenger::ReplicaMessenger(Context& context, NodeLatencies& latencies, TunableRegistry& tunables, Hooks hooks)
    : context_(context),
      latencies_(latencies),
      read_choice_(tunables),
      hooks_(std::move(hooks)),
      next_message_(static_cast<std::uint64_t>(context.clock.wall_now().us)) {}

void ReplicaMessenger::send(const OpRef& ref, std::uint16_t node, std::uint64_t epoch) {
  const rpc::Operation& operation = ref.request();
  Op& op = ref.op();
  rpc::StorageOperation out;
  out.kind = operation.kind;
  out.bucket = op.bucket;
  out.timestamp_us = op.timestamp_us;
  out.epoch = epoch;
  out.gid = op.gid;
  out.id = operation.id;
  out.durability = operation.durability;
  if (op.conditional != nullptr) out.token_gid = op.conditional->token_gid();
  if (ref.is_reading()) {
    out.kind = rpc::OperationKind::Get;
    const BucketEntry* entry = context_.buckets.find(op.bucket);
    out.even_damaged = entry != nullptr && entry->is_damaged(node);
    out.header_only =
        op.conditional != nullptr ? !op.conditional->needs_body() : op.fields != nullptr && !op.fields->needs_body();
  } else if (op.conditional != nullptr) {
    const ConditionalWrite::Content& content = op.conditional->content();
    out.kind = content.remove ? rpc::OperationKind::Remove : rpc::OperationKind::Put;
    out.header = content.header;
    out.body = content.body;
    out.token_entry = content.token_entry;
    out.compare = true;
    out.read_us = content.read_us;
  } else {
    out.header = operation.header;
    out.body = operation.body;
  }
  const bool takes_reserve = op.acknowledged > 0 || op.completing || is_job_record(operation);
  out.is_elsewhere = !ref.is_reading() && takes_reserve;
  if (!ref.is_reading()) ++op.possibly_applied;
  Outgoing& outgoing = outbox_[node];
  outgoing.refs.push_back(ref);
  outgoing.refs.back().takes_rest = out.even_damaged;
  outgoing.operations.push_back(std::move(out));
  if (operation.priority == rpc::Priority::Background) ++outgoing.in_background;
}

/// Returns the time limit of a batch of reads. A first attempt gets half of the time left, so that another replica can
/// be asked.
Duration ReplicaMessenger::time_for_reads(const std::vector<OpRef>& refs, MonotonicTime now) {
  Duration longest(1);
  for (const OpRef& ref : refs) {
    const Duration left = ref.op().deadline - now;
    longest = std::max(longest, ref.op().silent ? left : left / 2);
  }
  return longest;
}

void ReplicaMessenger::flush() {
  for (auto& [node, outgoing] : outbox_) {
    if (!outgoing.operations.empty()) flush_to(node, outgoing);
  }
}

void ReplicaMessenger::flush_to(std::uint16_t node, Outgoing& outgoing) {
  const MonotonicTime now = context_.clock.now();
  rpc::Apply request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.operations = std::exchange(outgoing.operations, {});
  request.in_background = std::exchange(outgoing.in_background, 0);
  request.number = next_message_++;
  Duration longest(1);
  for (const OpRef& ref : outgoing.refs) longest = std::max(longest, ref.op().deadline - now);
  request.timeout_us = rpc::time_for_callee(std::min(longest, context_.options.storage_timeout)).count();
  const bool only_reads = std::all_of(request.operations.begin(), request.operations.end(),
                                      [](const auto& op) { return op.kind == rpc::OperationKind::Get; });
  Duration timeout = context_.options.storage_timeout;
  if (only_reads) {
    timeout = std::min(timeout, time_for_reads(outgoing.refs, now));
    request.timeout_us = std::min(request.timeout_us, timeout.count());
  }
  const std::uint64_t number = latencies_.sent(
      node, only_reads ? NodeLatencies::Kind::Read : NodeLatencies::Kind::Write, request.operations.size(), now);
  rpc::call(context_.transport, context_.storage_address(node), std::move(request), timeout, context_.executor,
            [this, node, number, refs = std::exchange(outgoing.refs, {})](Result<rpc::ApplyReply> reply) {
              note_answer(node, number, reply);
              hooks_.answered(node, refs, std::move(reply));
              flush();
            });
}

void ReplicaMessenger::note_answer(std::uint16_t node, std::uint64_t number, const Result<rpc::ApplyReply>& reply) {
  const bool is_answer = reply.has_value() || reply.error().code() == StatusCode::Timeout;
  const MonotonicTime now = context_.clock.now();
  latencies_.answered(node, number, is_answer, now);
  if (reply) read_choice_.on_answer(node, reply->utilisation_permille, now);
}

void ReplicaMessenger::retry_later(std::uint16_t node, std::vector<OpRef> refs) {
  context_.executor.post_after(context_.options.retry_delay, [this, node, refs = std::move(refs)] {
    for (const OpRef& ref : refs) {
      if (!ref.is_current()) continue;
      BucketEntry* entry = context_.buckets.find(ref.op().bucket);
      if (ref.is_reading() || entry == nullptr) {
        // Dispatches the read again: another replica may answer, or the bucket was split or joined.
        hooks_.dispatch(ref);
      } else {
        send(ref, node, entry->set.epoch);
      }
    }
    flush();
  });
}

std::uint16_t ReplicaMessenger::choose_reader(const OpRef& ref, const BucketEntry& entry,
                                              const std::vector<std::uint16_t>& candidates) {
  const MonotonicTime now = context_.clock.now();
  std::vector<std::uint16_t> fast = latencies_.without_slow(candidates, now);
  if (ref.op().silent && fast.size() > 1) std::erase(fast, *ref.op().silent);
  if (fast.size() < candidates.size()) {
    for (std::uint16_t node : candidates) {
      if (latencies_.wants_probe(node, now)) probe(ref, node, entry.set.epoch);
    }
  }
  read_choice_.follow(*context_.snapshot);
  return read_choice_.choose(fast, ref.op().gid, read_shares_of(entry.bucket, context_.snapshot->state()),
                             context_.random);
}

void ReplicaMessenger::probe(const OpRef& ref, std::uint16_t node, std::uint64_t epoch) {
  rpc::StorageOperation get;
  get.kind = rpc::OperationKind::Get;
  get.bucket = ref.op().bucket;
  get.epoch = epoch;
  get.gid = ref.op().gid;
  get.id = ref.request().id;
  rpc::Apply request;
  request.state_version = context_.snapshot->state_version();
  request.distributor = context_.options.index;
  request.operations.push_back(std::move(get));
  request.in_background = 1;
  request.timeout_us = context_.options.storage_timeout.count();
  const std::uint64_t number = latencies_.sent(node, NodeLatencies::Kind::Read, 1, context_.clock.now());
  rpc::call(context_.transport, context_.storage_address(node), std::move(request), context_.options.storage_timeout,
            context_.executor,
            [this, node, number](Result<rpc::ApplyReply> reply) { note_answer(node, number, reply); });
}

}  // namespace fjord::distributor
