#include "operation_engine.h"

#include <algorithm>

#include "fjord/common/retry.h"
#include "fjord/rpc/deadline.h"
#include "fjord/rpc/refusal.h"

namespace fjord::distributor {
namespace {

/// Job records are few and small. They may use the space that is reserved for merges, so that a full node ends no job.
bool is_job_record(const rpc::Operation& operation) { return operation.id.starts_with("id:fjord:fjord_job:"); }

OperationMetrics::PerKind make_kind(MetricRegistry& registry, const std::string& operation) {
  auto outcome = [&](const char* name) -> Counter& {
    return registry.counter("fjord_distributor_operations_total", "Operations by how they ended",
                            {{"operation", operation}, {"outcome", name}});
  };
  return {
      outcome("applied"), outcome("not_applied"), outcome("in_doubt"),
      registry.histogram("fjord_distributor_operation_seconds", "From arrival to answer", {{"operation", operation}})};
}

}  // namespace

OperationMetrics::OperationMetrics(MetricRegistry& metrics)
    : get(make_kind(metrics, "get")),
      put(make_kind(metrics, "put")),
      remove(make_kind(metrics, "remove")),
      update(make_kind(metrics, "update")),
      foreground_seconds(metrics.histogram("fjord_distributor_foreground_seconds",
                                           "From arrival to answer, of operations that are not in the background")),
      duplicates(metrics.counter("fjord_distributor_duplicates_total", "Copies of writes that were recognised")),
      known_tokens(metrics.counter("fjord_distributor_known_tokens_total",
                                   "Operations whose token said that they had been applied")),
      parts(metrics.counter("fjord_distributor_partial_answers_total",
                            "Answers with the outcomes that were known, while other operations of the batch went on")),
      pending(metrics.gauge("fjord_distributor_pending_operations", "Operations under way")),
      registry(metrics) {}

void OperationMetrics::count(rpc::OperationKind kind, const Status& status, Duration took) {
  const bool is_get = kind == rpc::OperationKind::Get;
  PerKind& metrics = is_get                               ? get
                     : kind == rpc::OperationKind::Put    ? put
                     : kind == rpc::OperationKind::Update ? update
                                                          : remove;
  metrics.seconds.observe(took);
  if (status || (is_get && status.code() == StatusCode::NotFound)) {
    metrics.applied.add();
  } else if (!is_get && status.code() == StatusCode::Timeout) {
    metrics.in_doubt.add();
  } else {
    metrics.not_applied.add();
    registry
        .counter("fjord_distributor_not_applied_total", "Operations that were not applied, by reason",
                 {{"reason", std::string(to_string(status.code()))}})
        .add();
  }
}

OperationEngine::OperationEngine(Context& context, BucketMaintainer& maintainer, NodeLatencies& latencies,
                                 TunableRegistry& tunables)
    : context_(context),
      maintainer_(maintainer),
      latencies_(latencies),
      metrics_(context.metrics),
      guard_rails_(tunables, context.metrics, context.clock),
      admission_(tunables, context.metrics,
                 {context.options.pending_operations_max, context.options.pending_bytes_max}),
      reads_when_down_(tunables.declare("distributor.reads_when_cluster_down")),
      unclaimed_(static_cast<std::uint64_t>(context.clock.wall_now().us)),
      next_message_(static_cast<std::uint64_t>(context.clock.wall_now().us)) {}

// --- dispatch --------------------------------------------------------------------------------------------------------

void OperationEngine::dispatch(OpRef ref) {
  Op& op = ref.op();
  ref.attempt = ++op.attempt;
  if (!is_in_time_and_place(ref) || !is_open_for(ref)) return;
  if (ref.request().node) return dispatch_to_replica(ref);
  BucketEntry* entry = entry_for(ref);
  if (entry == nullptr) return;
  if (const std::string* why = entry->unavailable_because()) {
    refuse(ref, StatusCode::Unavailable, op.bucket.to_string() + ": " + *why);
    return;
  }
  if (!entry->serves() && !op.counted) {
    op.last_problem = Status(StatusCode::NotReady, "the bucket's replica set is being written down");
    waiting_for_bucket_[op.bucket.raw()].push_back(ref);
    return;
  }
  if (!ref.is_write()) {
    if (!ref.is_session_read() || may_begin(ref, *entry)) dispatch_read(ref, *entry);
  } else if (Status space = check_space(ref, *entry); !space) {
    settle(ref, std::move(space));
  } else if (!op.counted && op.possibly_applied == 0 && is_clogged(*entry)) {
    refuse_at_once(ref, Admission::Refusal::SlowNode);
  } else if (may_begin(ref, *entry)) {
    if (op.conditional != nullptr) {
      dispatch_conditional(ref, *entry);
    } else {
      dispatch_write(ref, *entry);
    }
  }
}

bool OperationEngine::is_in_time_and_place(const OpRef& ref) {
  Op& op = ref.op();
  if (op.possibly_applied == 0 && context_.clock.now() >= op.deadline) {
    const bool is_known_why = !op.last_problem.is_ok();
    refuse(ref, is_known_why ? StatusCode::Unavailable : StatusCode::Busy,
           "not begun in time: " + (is_known_why ? op.last_problem.to_string() : "too much was waiting"));
    return false;
  }
  const BucketId bucket = context_.snapshot->bucket_of(op.gid);
  if (!op.counted) op.bucket = bucket;  // A counted one stays in its entry until it ends.
  if (context_.snapshot->distributor_of(bucket) != context_.options.index) {
    ref.batch->wrong_distribution = true;
    refuse(ref, StatusCode::WrongDistribution,
           "distributor." + std::to_string(context_.options.index) + " does not own " + bucket.to_string() +
               " in cluster state " + std::to_string(context_.snapshot->state_version()));
    return false;
  }
  if (op.ownership_uncertain) {
    refuse(ref, StatusCode::Unavailable, "the bucket may have had another owner meanwhile");
    return false;
  }
  // A client that chose this distributor before it was away may have asked another one since and received the outcome.
  const std::uint64_t chosen_in = ref.batch->request.state_version;
  const std::uint64_t up_since =
      context_.snapshot->state().node({NodeType::Distributor, context_.options.index}).up_since_version;
  if (ref.is_write() && chosen_in != 0 && chosen_in < up_since) {
    ref.batch->wrong_distribution = true;
    refuse(ref, StatusCode::WrongDistribution,
           "sent in cluster state " + std::to_string(chosen_in) + ", before distributor." +
               std::to_string(context_.options.index) + " was up again");
    return false;
  }
  return true;
}

bool OperationEngine::reads_go_on() const {
  return context_.snapshot->state().is_cluster_up() || reads_when_down_.value() != 0;
}

/// A write that was sent before the cluster went down goes on, so that its outcome is known.
bool OperationEngine::is_open_for(const OpRef& ref) {
  if (context_.snapshot->state().is_cluster_up() || ref.op().possibly_applied > 0) return true;
  if (!ref.is_write() && reads_go_on()) return true;
  refuse(ref, StatusCode::Unavailable, context_.closed_text());
  return false;
}

BucketEntry* OperationEngine::entry_for(const OpRef& ref) {
  Op& op = ref.op();
  BucketEntry* entry = context_.buckets.find_for(op.gid);
  op.bucket = entry != nullptr ? entry->bucket : context_.buckets.missing_for(op.gid, context_.bucket_bits_min());
  if (entry == nullptr ? !context_.ready : entry->is<activity::Collecting>()) {
    op.last_problem = Status(StatusCode::NotReady, "the distributor is collecting bucket information");
    waiting_for_state_.push_back(ref);
    return nullptr;
  }
  if (entry != nullptr) return entry;
  if (context_.unreported_buckets_may_exist()) {
    refuse(ref, StatusCode::Unavailable,
           "the bucket may be on one of the storage nodes that are not up: " + context_.absent_text());
    return nullptr;
  }
  // Creating the bucket asks all nodes that would hold it. So an owner without a lease finds out whether it exists.
  if (!ref.is_write() && context_.may_trust_one(op.bucket)) {
    settle(ref, Status(StatusCode::NotFound, "there is no document " + ref.request().id));
    return nullptr;
  }
  if (context_.snapshot->nodes_for_new(op.bucket).size() < context_.replicas_at_birth()) {
    refuse(ref, StatusCode::Unavailable,
           "a new bucket needs " + std::to_string(context_.replicas_at_birth()) +
               " storage nodes that are up; away: " + context_.absent_text());
    return nullptr;
  }
  return &maintainer_.create(op.bucket);
}

Status OperationEngine::check_space(const OpRef& ref, const BucketEntry& entry) const {
  const Op& op = ref.op();
  // A write that may be on a replica already is finished. A conditional one may have been applied, or may be a remove.
  if (op.counted || op.possibly_applied > 0 || op.conditional != nullptr ||
      ref.request().kind != rpc::OperationKind::Put) {
    return Status::ok();
  }
  if (is_job_record(ref.request())) return Status::ok();
  return context_.space.check_put(entry.set.nodes);
}

bool OperationEngine::may_begin(const OpRef& ref, BucketEntry& entry) {
  Op& op = ref.op();
  // A counted write goes on: a replica set changes only after all counted ones have ended.
  if (op.counted) return true;
  const bool needs_one_for_all = op.conditional != nullptr || ref.is_session_read();
  if (needs_one_for_all && entry.may_differ()) {
    std::string why = "the bucket's replicas are being brought in sync";
    if (!entry.merge_problem.empty()) why += "; the last merge failed: " + entry.merge_problem;
    op.last_problem = Status(StatusCode::NotReady, std::move(why));
    waiting_for_bucket_[op.bucket.raw()].push_back(ref);
    maintainer_.await_sync(entry);
    return false;
  }
  const LockMode mode = op.conditional != nullptr ? LockMode::Exclusive
                        : ref.is_write()          ? LockMode::SharedWrite
                                                  : LockMode::SharedRead;
  if (!op.has_lock) op.has_lock = locks_.acquire(op.gid, mode, ref);
  if (!op.has_lock) op.last_problem = Status(StatusCode::NotReady, "other operations on the document have not ended");
  return op.has_lock;
}

void OperationEngine::release_lock(const OpRef& ref) {
  Op& op = ref.op();
  if (!std::exchange(op.has_lock, false)) return;
  std::vector<OpRef> next = locks_.release(op.gid, [](const OpRef& waiting) { return waiting.is_current(); });
  if (next.empty()) return;
  for (const OpRef& waiting : next) waiting.op().has_lock = true;
  // Posted to avoid recursion: the next operation may end at once and release its lock, and so on.
  context_.executor.post([this, next = std::move(next)] {
    for (const OpRef& waiting : next) {
      if (waiting.is_current()) dispatch(waiting);
    }
    flush();
  });
}

bool OperationEngine::is_clogged(const BucketEntry& entry) const {
  const auto waits = [&](std::uint16_t node) { return latencies_.is_clogged(node, admission_.slow_node_share()); };
  return std::any_of(entry.set.nodes.begin(), entry.set.nodes.end(), waits);
}

void OperationEngine::count(BucketEntry& entry, Op& op) {
  if (op.counted) return;
  op.counted = true;
  ++entry.writes_under_way;
}

/// Reads one intact replica, as each holds what all earlier operations on the document wrote. Reads all members if none
/// is intact or the lease is over.
void OperationEngine::dispatch_conditional(const OpRef& ref, BucketEntry& entry) {
  Op& op = ref.op();
  count(entry, op);
  op.reading = true;
  op.acknowledged = 0;
  op.corrupt = false;
  std::vector<std::uint16_t> candidates = entry.intact();
  if (candidates.empty() || !context_.may_trust_one(op.bucket)) {
    // If all are damaged, the newest version may be left on any of them.
    op.missing = entry.set.nodes;
  } else {
    op.missing.assign(1, choose_reader(ref, entry, candidates));
  }
  for (std::uint16_t node : op.missing) send(ref, node, entry.set.epoch);
}

void OperationEngine::decide(const OpRef& ref) {
  Op& op = ref.op();
  const rpc::OperationResult stored = std::exchange(op.result, {});
  op.result.existed = op.conditional->content().existed;
  const std::int64_t now = context_.clock.wall_now().us / 1'000'000;
  ConditionalWrite::Decision decision = op.conditional->decide(stored, op.timestamp_us, now);
  using Kind = ConditionalWrite::Decision::Kind;
  const ConditionalWrite::Content& content = op.conditional->content();
  if (decision.kind == Kind::Write && !content.remove) {
    if (Status fits = guard_rails_.check(ref.request().id, content.header, content.body); !fits) {
      decision.kind = Kind::Fail;
      decision.status = std::move(fits);
    }
  }
  BucketEntry& entry = *context_.buckets.find(op.bucket);
  if (decision.kind == Kind::Write && !content.remove && op.possibly_applied == 0 && !is_job_record(ref.request())) {
    if (Status space = context_.space.check_put(entry.set.nodes); !space) {
      decision.kind = Kind::Fail;
      decision.status = std::move(space);
    }
  }
  if (decision.kind == Kind::Write) {
    op.reading = false;
    op.result.existed = content.existed;
    op.timestamp_us = context_.next_timestamp(std::max(entry.last_timestamp_us, content.newer_than_us));
    dispatch_write(ref, entry);
    flush();
    return;
  }
  if (decision.kind == Kind::AlreadyApplied) {
    metrics_.known_tokens.add();
    op.result.timestamp_us = decision.timestamp_us;
    op.result.existed = decision.existed;
  } else {
    op.result.version_us = decision.version_us;
  }
  settle(ref, std::move(decision.status));
}

void OperationEngine::dispatch_write(const OpRef& ref, BucketEntry& entry) {
  Op& op = ref.op();
  if (op.timestamp_us == 0) op.timestamp_us = context_.next_timestamp(entry.last_timestamp_us);
  entry.last_timestamp_us = std::max(entry.last_timestamp_us, op.timestamp_us);
  count(entry, op);
  op.missing = entry.set.nodes;
  op.refused.clear();
  op.completing = false;
  op.acknowledged = 0;
  op.partial = false;
  // A conditional one has read whether it was applied, unless an absent node may have it and come back with it.
  op.doubtful = op.possibly_applied > 0 && (op.conditional == nullptr || context_.absent_nodes() > 0);
  // `missing` changes only with answers, which come later.
  for (std::uint16_t node : op.missing) send(ref, node, entry.set.epoch);
}

void OperationEngine::dispatch_read(const OpRef& ref, BucketEntry& entry) {
  Op& op = ref.op();
  op.missing.clear();
  op.acknowledged = 0;
  op.corrupt = false;
  op.result = {};
  std::vector<std::uint16_t> candidates = entry.intact();
  if (entry.dirty || candidates.empty() || !context_.may_trust_one(op.bucket)) {
    op.missing = entry.set.nodes;
  } else {
    std::optional<std::uint16_t>* before = locks_.reader(op.gid);
    const bool is_lost = before != nullptr && *before && !std::count(candidates.begin(), candidates.end(), **before);
    if (is_lost) {
      op.missing = entry.set.nodes;
    } else {
      const std::uint16_t reader = before != nullptr && *before ? **before : choose_reader(ref, entry, candidates);
      if (before != nullptr) *before = reader;
      op.missing.push_back(reader);
    }
  }
  for (std::uint16_t node : op.missing) send(ref, node, entry.set.epoch);
}

std::uint16_t OperationEngine::choose_reader(const OpRef& ref, const BucketEntry& entry,
                                             const std::vector<std::uint16_t>& candidates) {
  const MonotonicTime now = context_.clock.now();
  std::vector<std::uint16_t> fast = latencies_.without_slow(candidates, now);
  if (ref.op().silent && fast.size() > 1) std::erase(fast, *ref.op().silent);
  if (fast.size() < candidates.size()) {
    for (std::uint16_t node : candidates) {
      if (latencies_.wants_probe(node, now)) probe(ref, node, entry.set.epoch);
    }
  }
  return fast[context_.random.below(fast.size())];
}

void OperationEngine::probe(const OpRef& ref, std::uint16_t node, std::uint64_t epoch) {
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
            context_.executor, [this, node, number](Result<rpc::ApplyReply> reply) {
              const bool is_answer = reply.has_value() || reply.error().code() == StatusCode::Timeout;
              latencies_.answered(node, number, is_answer, context_.clock.now());
            });
}

void OperationEngine::send(const OpRef& ref, std::uint16_t node, std::uint64_t epoch) {
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

/// Time limit of a batch of reads. A first attempt uses half of the time left, so that another replica can be asked.
Duration OperationEngine::time_for_reads(const std::vector<OpRef>& refs, MonotonicTime now) {
  Duration longest(1);
  for (const OpRef& ref : refs) {
    const Duration left = ref.op().deadline - now;
    longest = std::max(longest, ref.op().silent ? left : left / 2);
  }
  return longest;
}

void OperationEngine::flush() {
  const MonotonicTime now = context_.clock.now();
  for (auto& [node, outgoing] : outbox_) {
    if (outgoing.operations.empty()) continue;
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
              [this, node = node, number, refs = std::exchange(outgoing.refs, {})](Result<rpc::ApplyReply> reply) {
                const bool is_answer = reply.has_value() || reply.error().code() == StatusCode::Timeout;
                latencies_.answered(node, number, is_answer, context_.clock.now());
                on_reply(node, refs, std::move(reply));
                flush();
              });
  }
}

// --- answers ---------------------------------------------------------------------------------------------------------

void OperationEngine::on_reply(std::uint16_t node, const std::vector<OpRef>& refs, Result<rpc::ApplyReply> reply) {
  Status whole = reply ? reply->status : reply.error();
  if (whole && reply->results.size() != refs.size()) {
    whole = Status(StatusCode::Timeout, "the storage node gave another number of results than operations");
  }
  std::vector<OpRef> again;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    if (refs[i].op().trailing != 0 && refs[i].op().attempt == refs[i].attempt) {
      on_catching_up_result(refs[i], node, whole ? reply->results[i].status : whole);
      continue;
    }
    if (!refs[i].is_current()) continue;
    rpc::OperationResult result;
    if (whole) {
      result = std::move(reply->results[i]);
    } else {
      result.status = whole;
    }
    const StatusCode code = result.status.code();
    const bool corrupt_read = refs[i].is_reading() && !result.status && code != StatusCode::NotFound &&
                              (code != StatusCode::Corruption || reads_elsewhere(refs[i], node));
    if (result.status.code() == StatusCode::Timeout) {
      if (refs[i].is_reading()) {
        refs[i].op().silent = node;
      } else {
        refs[i].op().doubtful = true;
      }
    }
    if (rpc::is_lack_of_space(result.status.code()) && !refs[i].is_reading()) --refs[i].op().possibly_applied;
    // A corrupt document may be whole on another replica.
    if (may_succeed_later(result.status.code()) || corrupt_read) {
      refs[i].op().last_problem = result.status.from_node("storage." + std::to_string(node));
      again.push_back(refs[i]);
    } else if (refs[i].is_reading()) {
      on_read_result(refs[i], node, std::move(result));
    } else {
      on_write_result(refs[i], node, std::move(result));
    }
  }
  if (!again.empty()) retry_later(node, std::move(again));
}

void OperationEngine::retry_later(std::uint16_t node, std::vector<OpRef> refs) {
  context_.executor.post_after(context_.options.retry_delay, [this, node, refs = std::move(refs)] {
    for (const OpRef& ref : refs) {
      if (!ref.is_current()) continue;
      BucketEntry* entry = context_.buckets.find(ref.op().bucket);
      if (ref.is_reading() || entry == nullptr) {
        dispatch(ref);  // Another replica may answer, or the bucket was split or joined.
      } else {
        send(ref, node, entry->set.epoch);
      }
    }
    flush();
  });
}

void OperationEngine::on_write_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result) {
  Op& op = ref.op();
  auto place = std::find(op.missing.begin(), op.missing.end(), node);
  if (place == op.missing.end()) return;
  op.missing.erase(place);
  if (result.status.code() == StatusCode::NoSpace) {
    context_.space.note_refusal(node, op.completing ? StorageSpace::kRefuseAll : StorageSpace::kRefuseExternal,
                                result.status);
  }
  if (result.status) {
    ++op.acknowledged;
    // A conditional operation knows this from its own read.
    if (op.conditional == nullptr) op.result.existed = op.result.existed || result.existed;
  } else {
    // Any other refusal replaces a lack of space, which passes by itself.
    if ((!op.partial && op.refused.empty()) || rpc::is_lack_of_space(op.last_problem.code()))
      op.last_problem = result.status.from_node("storage." + std::to_string(node));
    if (result.status.code() == StatusCode::NoSpace && !op.completing) {
      op.refused.push_back(node);
    } else {
      op.partial = true;
    }
  }
  if (op.missing.empty()) on_all_answered(ref);
}

/// Completes a put that some members have, or may have, and for which others have no space. These are asked again and
/// use the space reserved for merges, since a merge would bring the put anyway.
void OperationEngine::on_all_answered(const OpRef& ref) {
  Op& op = ref.op();
  if (!op.refused.empty() && !op.partial && (op.acknowledged > 0 || op.doubtful)) {
    op.completing = true;
    op.missing = std::exchange(op.refused, {});
    const std::uint64_t epoch = context_.buckets.find(op.bucket)->set.epoch;
    for (std::uint16_t node : op.missing) send(ref, node, epoch);
    return;
  }
  op.partial = op.partial || !op.refused.empty();
  finish_write(ref);
}

/// Sends a write to the replicas that are catching up, once all members have it. The client does not wait for them: one
/// that is silent, full, or slow is filled once more.
void OperationEngine::send_to_catching_up(const OpRef& ref) {
  Op& op = ref.op();
  BucketEntry* entry = op.counted ? context_.buckets.find(op.bucket) : nullptr;
  if (entry == nullptr) return;
  for (std::uint16_t node : entry->catching_up) {
    if (latencies_.is_clogged(node, admission_.slow_node_share()) || !context_.space.takes_merges(node)) {
      maintainer_.note_missed(*entry);
      continue;
    }
    op.missing.push_back(node);
    send(ref, node, entry->set.epoch);
  }
  if (!op.missing.empty()) op.trailing = entry->serial;
}

void OperationEngine::on_catching_up_result(const OpRef& ref, std::uint16_t node, const Status& status) {
  Op& op = ref.op();
  std::erase(op.missing, node);
  BucketEntry* entry = context_.buckets.find(BucketTicket{op.bucket, op.trailing});
  if (entry != nullptr && !status) maintainer_.note_missed(*entry);
  if (!op.missing.empty()) return;
  op.trailing = 0;
  if (entry != nullptr && --entry->writes_under_way == 0) maintainer_.drained(*entry);
}

void OperationEngine::finish_write(const OpRef& ref) {
  Op& op = ref.op();
  op.result.timestamp_us = op.timestamp_us;
  if (!op.partial) {
    send_to_catching_up(ref);
    settle(ref, Status::ok());
  } else if (op.acknowledged == 0 && op.conditional != nullptr &&
             op.last_problem.code() == StatusCode::TestAndSetFailed) {
    // A version that was in flight when this one was read came first everywhere.
    op.reading = true;
    dispatch(ref);
    flush();
  } else if (op.acknowledged == 0 && !op.doubtful) {
    settle(ref, op.last_problem);
  } else {
    // Some replicas have it and some refused it: a merge will bring it to all that can take it.
    if (BucketEntry* entry = context_.buckets.find(op.bucket)) maintainer_.repair(*entry);
    settle(ref, Status(StatusCode::Timeout, "not every replica took it: " + op.last_problem.to_string(),
                       op.last_problem.details()));
  }
}

void OperationEngine::on_read_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result) {
  Op& op = ref.op();
  auto place = std::find(op.missing.begin(), op.missing.end(), node);
  if (place == op.missing.end()) return;
  op.missing.erase(place);
  if (result.status.code() == StatusCode::Corruption) {
    op.corrupt = true;
    op.last_problem = result.status.from_node("storage." + std::to_string(node));
  } else {
    bool newer = op.acknowledged == 0 || result.timestamp_us > op.result.timestamp_us;
    ++op.acknowledged;
    if (newer) op.result = std::move(result);
  }
  if (op.missing.empty()) finish_read(ref);
}

bool OperationEngine::reads_elsewhere(const OpRef& ref, std::uint16_t node) {
  BucketEntry* entry = context_.buckets.find(ref.op().bucket);
  if (entry == nullptr || ref.takes_rest) return false;
  maintainer_.note_damaged(*entry, node);
  return true;
}

void OperationEngine::finish_read(const OpRef& ref) {
  Op& op = ref.op();
  const BucketEntry* entry = context_.buckets.find(op.bucket);
  // An intact member has every acknowledged write. Without one, "not found" may be a consequence of damage.
  const bool is_known = op.acknowledged > 0 && (op.result.status || (entry != nullptr && !entry->intact().empty()));
  op.acknowledged = 0;
  if (op.corrupt && !is_known) {
    const Status problem = op.last_problem;
    refuse(ref, StatusCode::Corruption, problem.to_string());
    return;
  }
  if (op.reading) {
    decide(ref);
    return;
  }
  Status status = std::move(op.result.status);
  if (status.code() == StatusCode::NotFound) {
    status = Status(StatusCode::NotFound, "there is no document " + ref.request().id);
  }
  settle(ref, std::move(status));
}

// --- changes of the cluster state ------------------------------------------------------------------------------------

bool OperationEngine::is_known(BucketId bucket) const {
  const BucketEntry* entry = context_.buckets.find(bucket);
  return entry != nullptr && !entry->is<activity::Collecting>();
}

void OperationEngine::state_changed(const rpc::ClusterSnapshot* before) {
  // Another distributor that owned the bucket may have said that all writes up to a later time have ended.
  const rpc::ClusterSnapshot& now = *context_.snapshot;
  const bool missed_one = before == nullptr || before->state_version() != now.state().follows();
  const auto had_another_owner = [&](GlobalId gid) {
    return missed_one || now.distributor_of(bucket_of(gid, now.distribution_bits())) != context_.options.index;
  };
  std::erase_if(doubts_, [&](const auto& doubt) { return had_another_owner(doubt.second.gid); });
  for (const auto& [number, batch] : batches_) {
    for (Op& op : batch->ops) {
      // A conditional one reads again and gets another timestamp.
      if (op.settled || op.timestamp_us == 0 || op.conditional != nullptr || !had_another_owner(op.gid)) continue;
      if (op.possibly_applied == 0) {
        op.timestamp_us = 0;  // No node has it.
      } else {
        op.ownership_uncertain = true;
      }
    }
  }
}

void OperationEngine::buckets_forgotten() {
  waiting_for_state_.clear();
  std::erase_if(waiting_for_bucket_, [&](const auto& waiting) { return !is_known(BucketId(waiting.first)); });
  std::vector<OpRef> behind;
  for (const auto& [number, batch] : batches_) {
    for (std::uint32_t i = 0; i < batch->ops.size(); ++i) {
      Op& op = batch->ops[i];
      if (op.settled || op.attempt == 0) continue;  // Settled, or a duplicate that waits for the first.
      if (is_known(op.bucket)) continue;
      op.counted = false;  // The entry that counted it is gone.
      // Operations with a document lock go first. A conditional one reads again, since its write may be there or not.
      (op.has_lock ? waiting_for_state_ : behind).push_back({batch, i, ++op.attempt});
    }
  }
  waiting_for_state_.insert(waiting_for_state_.end(), behind.begin(), behind.end());
  locks_.drop_waiting([](const OpRef& waiting) { return !waiting.is_current(); });
}

void OperationEngine::state_ready() {
  std::vector<OpRef> waiting = std::exchange(waiting_for_state_, {});
  for (const OpRef& ref : waiting) {
    if (ref.is_current()) dispatch(ref);
  }
  flush();
}

void OperationEngine::bucket_ready(BucketId bucket) {
  auto waiting = waiting_for_bucket_.find(bucket.raw());
  if (waiting == waiting_for_bucket_.end()) return;
  std::vector<OpRef> refs = std::move(waiting->second);
  waiting_for_bucket_.erase(waiting);
  for (const OpRef& ref : refs) {
    if (ref.is_current()) dispatch(ref);
  }
  flush();
}

}  // namespace fjord::distributor
