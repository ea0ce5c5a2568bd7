#include "operation_engine.h"

#include <algorithm>
#include <utility>

#include "fjord/common/retry.h"
#include "fjord/rpc/refusal.h"
#include "unreported_buckets.h"

namespace fjord::distributor {

OperationEngine::OperationEngine(Context& context, BucketMaintainer& maintainer, NodeLatencies& latencies,
                                 TunableRegistry& tunables)
    : context_(context),
      maintainer_(maintainer),
      metrics_(context.metrics),
      guard_rails_(tunables, context.metrics, context.clock),
      admission_(tunables, context.metrics,
                 {context.options.pending_operations_max, context.options.pending_bytes_max}),
      reads_when_down_(tunables.declare("distributor.reads_when_cluster_down")),
      records_(metrics_.duplicates),
      answers_(context, admission_, metrics_,
               {[this](const OpRef& ref) { settler_.expire(ref); }, [this] { messenger_.flush(); }}),
      settler_(context, {maintainer, admission_, metrics_, records_, answers_},
               [this](const std::vector<OpRef>& next) { dispatch_all(next); }),
      messenger_(context, latencies, tunables,
                 {[this](std::uint16_t node, const std::vector<OpRef>& refs, Result<rpc::ApplyReply> reply) {
                    on_answer(node, refs, std::move(reply));
                  },
                  [this](const OpRef& ref) { dispatch(ref); }}),
      intake_(context, {admission_, guard_rails_, records_, metrics_},
              {[this](std::shared_ptr<Batch> batch, const auto& arrival) { begin(batch, arrival); },
               [this](std::uint64_t number, std::uint64_t client, rpc::Responder respond) {
                 answers_.answer_rest(number, client, std::move(respond));
               }}),
      reads_(context, {maintainer, messenger_, settler_}),
      writes_(context, {maintainer, admission_, latencies, messenger_, settler_}),
      conditionals_(context, {guard_rails_, metrics_, messenger_, settler_, reads_, writes_}) {}

void OperationEngine::begin(const std::shared_ptr<Batch>& batch, const OperationIntake::Arrival& arrival) {
  answers_.add(batch);
  const MonotonicTime now = context_.clock.now();
  for (std::uint32_t i = 0; i < batch->ops.size(); ++i) {
    const OpRef ref{batch, i, 0};
    if (const auto refusal = arrival.refused[static_cast<std::size_t>(Admission::class_of(ref.request()))]) {
      settler_.refuse_at_once(ref, *refusal);
    } else if (now >= ref.op().deadline) {
      settler_.refuse_at_once(ref, Admission::Refusal::Expired);
    } else {
      admit(ref);
    }
  }
  messenger_.flush();
  answers_.watch(batch);
}

void OperationEngine::admit(const OpRef& ref) {
  if (context_.snapshot != nullptr && context_.snapshot->is_of_another_cluster(ref.batch->request.cluster_id)) {
    settler_.refuse(ref, StatusCode::WrongDistribution, context_.other_cluster().message());
    return;
  }
  if (Status prepared = intake_.prepare(ref); !prepared) {
    settler_.settle(ref, std::move(prepared));
    return;
  }
  if (context_.snapshot == nullptr) {
    settler_.settle(ref, Status(StatusCode::NotReady,
                                "distributor." + std::to_string(context_.options.index) + " has no cluster state yet"));
    return;
  }
  if (ref.is_write()) {
    auto [found, status] = records_.recognise_duplicate(ref, context_.clock.now());
    if (found == RequestRecords::Found::Ends) settler_.settle(ref, std::move(status));
    if (found != RequestRecords::Found::New) return;
  }
  dispatch(ref);
}

void OperationEngine::dispatch(OpRef ref) {
  Op& op = ref.op();
  ref.attempt = ++op.attempt;
  if (!is_in_time_and_place(ref) || !is_open_for(ref)) return;
  BucketEntry* entry = find_entry(op);
  if (waits_for_state(ref, entry)) return;
  if (ref.request().node) return reads_.dispatch_to_replica(ref, entry);
  if (entry == nullptr && (entry = create_entry(ref)) == nullptr) return;
  if (const std::string* why = entry->unavailable_because()) {
    settler_.refuse(ref, StatusCode::Unavailable, op.bucket.to_string() + ": " + *why);
    return;
  }
  if (!entry->serves() && !op.counted) {
    op.last_problem = Status(StatusCode::NotReady, "the bucket's replica set is being written down");
    waiting_for_bucket_[op.bucket.raw()].push_back(ref);
    return;
  }
  if (!ref.is_write()) {
    if (!ref.is_session_read() || may_begin(ref, *entry)) reads_.dispatch(ref, *entry);
  } else if (Status space = writes_.check_space(ref, *entry); !space) {
    settler_.settle(ref, std::move(space));
  } else if (!op.counted && op.possibly_applied == 0 && writes_.is_clogged(*entry)) {
    settler_.refuse_at_once(ref, Admission::Refusal::SlowNode);
  } else if (may_begin(ref, *entry)) {
    if (op.conditional != nullptr) {
      conditionals_.dispatch(ref, *entry);
    } else {
      writes_.dispatch(ref, *entry);
    }
  }
}

bool OperationEngine::is_in_time_and_place(const OpRef& ref) {
  Op& op = ref.op();
  if (op.possibly_applied == 0 && context_.clock.now() >= op.deadline) {
    const bool is_known_why = !op.last_problem.is_ok();
    settler_.refuse(ref, is_known_why ? StatusCode::Unavailable : StatusCode::Busy,
                    "not begun in time: " + (is_known_why ? op.last_problem.to_string() : "too much was waiting"));
    return false;
  }
  const BucketId bucket = context_.snapshot->bucket_of(op.gid);
  if (!op.counted) op.bucket = bucket;  // A counted write stays with the bucket that counts it until it ends.
  if (context_.snapshot->distributor_of(bucket) != context_.options.index) {
    ref.batch->wrong_distribution = true;
    settler_.refuse(ref, StatusCode::WrongDistribution,
                    "distributor." + std::to_string(context_.options.index) + " does not own " + bucket.to_string() +
                        " in cluster state " + std::to_string(context_.snapshot->state_version()));
    return false;
  }
  if (op.ownership_uncertain) {
    settler_.refuse(ref, StatusCode::Unavailable, "the bucket may have had another owner meanwhile");
    return false;
  }
  // Refuses a write if the client chose this distributor by an older state: the client may have asked another
  // distributor since and received the outcome.
  const std::uint64_t chosen_in = ref.batch->request.state_version;
  const std::uint64_t up_since =
      context_.snapshot->state().node({NodeType::Distributor, context_.options.index}).up_since_version;
  if (ref.is_write() && chosen_in != 0 && chosen_in < up_since) {
    ref.batch->wrong_distribution = true;
    settler_.refuse(ref, StatusCode::WrongDistribution,
                    "sent in cluster state " + std::to_string(chosen_in) + ", before distributor." +
                        std::to_string(context_.options.index) + " was up again");
    return false;
  }
  return true;
}

bool OperationEngine::reads_go_on() const {
  return context_.snapshot->state().is_cluster_up() || reads_when_down_.value() != 0;
}

/// Returns whether the operation may continue. A write that was sent before the cluster went down may, so that its
/// outcome becomes known.
bool OperationEngine::is_open_for(const OpRef& ref) {
  if (context_.snapshot->state().is_cluster_up() || ref.op().possibly_applied > 0) return true;
  if (!ref.is_write() && reads_go_on()) return true;
  settler_.refuse(ref, StatusCode::Unavailable, context_.closed_text());
  return false;
}

BucketEntry* OperationEngine::find_entry(Op& op) {
  BucketEntry* entry = context_.buckets.find_for(op.gid);
  op.bucket = entry != nullptr ? entry->bucket : context_.buckets.missing_for(op.gid, context_.bucket_bits_min());
  return entry;
}

bool OperationEngine::waits_for_state(const OpRef& ref, const BucketEntry* entry) {
  if (entry == nullptr ? context_.ready : !entry->is<activity::Collecting>()) return false;
  ref.op().last_problem = Status(StatusCode::NotReady, "the distributor is collecting bucket information");
  waiting_for_state_.push_back(ref);
  return true;
}

BucketEntry* OperationEngine::create_entry(const OpRef& ref) {
  const Op& op = ref.op();
  if (context_.unreported_buckets_may_exist()) {
    settler_.refuse(ref, StatusCode::Unavailable, unreported(context_).message());
    return nullptr;
  }
  // Creating the bucket asks all nodes that would hold it. This is how an owner without a lease finds out whether it
  // exists.
  if (!ref.is_write() && context_.may_trust_one(op.bucket)) {
    settler_.settle(ref, Status(StatusCode::NotFound, "there is no document " + ref.request().id));
    return nullptr;
  }
  if (!context_.has_nodes_for_new(op.bucket)) {
    settler_.refuse(ref, StatusCode::Unavailable, too_few_for_new(context_).message());
    return nullptr;
  }
  return &maintainer_.create(op.bucket);
}

bool OperationEngine::may_begin(const OpRef& ref, BucketEntry& entry) {
  Op& op = ref.op();
  // A counted write continues: a replica set changes only after all counted writes have ended.
  if (op.counted) return true;
  const bool needs_one_for_all = op.conditional != nullptr || ref.is_session_read();
  if (needs_one_for_all && entry.may_differ()) {
    op.last_problem = entry.not_in_sync();
    waiting_for_bucket_[op.bucket.raw()].push_back(ref);
    maintainer_.await_sync(entry);
    return false;
  }
  const LockMode mode = op.conditional != nullptr ? LockMode::Exclusive
                        : ref.is_write()          ? LockMode::SharedWrite
                                                  : LockMode::SharedRead;
  if (!op.has_lock) op.has_lock = settler_.locks().acquire(op.gid, mode, ref);
  if (!op.has_lock) op.last_problem = Status(StatusCode::NotReady, "other operations on the document have not ended");
  return op.has_lock;
}

// --- answers of storage nodes ----------------------------------------------------------------------------------------

void OperationEngine::on_answer(std::uint16_t node, const std::vector<OpRef>& refs, Result<rpc::ApplyReply> reply) {
  Status whole = reply ? reply->status : reply.error();
  if (whole && reply->results.size() != refs.size()) {
    whole = Status(StatusCode::Timeout, "the storage node gave another number of results than operations");
  }
  std::vector<OpRef> again;
  for (std::size_t i = 0; i < refs.size(); ++i) {
    const OpRef& ref = refs[i];
    if (ref.op().trailing != 0 && ref.op().attempt == ref.attempt) {
      writes_.on_catching_up_result(ref, node, whole ? reply->results[i].status : whole);
    } else if (ref.is_current()) {
      rpc::OperationResult result;
      if (whole) {
        result = std::move(reply->results[i]);
      } else {
        result.status = whole;
      }
      if (on_result(ref, node, std::move(result))) again.push_back(ref);
    }
  }
  if (!again.empty()) messenger_.retry_later(node, std::move(again));
}

bool OperationEngine::on_result(const OpRef& ref, std::uint16_t node, rpc::OperationResult result) {
  Op& op = ref.op();
  const StatusCode code = result.status.code();
  // A document that is corrupt on this replica may be intact on another one.
  const bool corrupt_read = ref.is_reading() && !result.status && code != StatusCode::NotFound &&
                            (code != StatusCode::Corruption || reads_.reads_elsewhere(ref, node));
  if (code == StatusCode::Timeout) {
    if (ref.is_reading()) {
      op.silent = node;
    } else {
      op.doubtful = true;
    }
  }
  if (rpc::is_lack_of_space(code) && !ref.is_reading()) --op.possibly_applied;
  if (may_succeed_later(code) || corrupt_read) {
    op.last_problem = result.status.from_node("storage." + std::to_string(node));
    return true;
  }
  if (!ref.is_reading()) {
    writes_.on_result(ref, node, std::move(result));
  } else if (reads_.take_result(ref, node, std::move(result)) && reads_.is_known(ref)) {
    if (op.reading) {
      conditionals_.decide(ref);
    } else {
      reads_.finish(ref);
    }
  }
  return false;
}

// --- changes of the cluster state ------------------------------------------------------------------------------------

bool OperationEngine::is_known(BucketId bucket) const {
  const BucketEntry* entry = context_.buckets.find(bucket);
  return entry != nullptr && !entry->is<activity::Collecting>();
}

void OperationEngine::state_changed(const rpc::ClusterSnapshot* before) {
  // Another distributor that owned the bucket may have told clients that all writes up to a later time have ended.
  const rpc::ClusterSnapshot& now = *context_.snapshot;
  const bool missed_one = before == nullptr || before->state_version() != now.state().follows();
  const auto had_another_owner = [&](GlobalId gid) {
    return missed_one || now.distributor_of(bucket_of(gid, now.distribution_bits())) != context_.options.index;
  };
  records_.drop_doubts(had_another_owner);
  for (const auto& [number, batch] : answers_.batches()) {
    for (Op& op : batch->ops) {
      // A conditional operation reads again and gets another timestamp.
      if (op.settled || op.timestamp_us == 0 || op.conditional != nullptr || !had_another_owner(op.gid)) continue;
      if (op.possibly_applied == 0) {
        op.timestamp_us = 0;  // No node has the write, so it may get another timestamp.
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
  for (const auto& [number, batch] : answers_.batches()) {
    for (std::uint32_t i = 0; i < batch->ops.size(); ++i) {
      Op& op = batch->ops[i];
      // The operation has ended, or is a duplicate that waits for the first message.
      if (op.settled || op.attempt == 0) continue;
      if (is_known(op.bucket)) continue;
      op.counted = false;  // The entry that counted the write is gone.
      // Operations with a document lock come first. A conditional operation reads again, since its write may or may not
      // be applied.
      (op.has_lock ? waiting_for_state_ : behind).push_back({batch, i, ++op.attempt});
    }
  }
  waiting_for_state_.insert(waiting_for_state_.end(), behind.begin(), behind.end());
  settler_.locks().drop_waiting([](const OpRef& waiting) { return !waiting.is_current(); });
}

void OperationEngine::dispatch_all(const std::vector<OpRef>& refs) {
  for (const OpRef& ref : refs) {
    if (ref.is_current()) dispatch(ref);
  }
  messenger_.flush();
}

void OperationEngine::state_ready() { dispatch_all(std::exchange(waiting_for_state_, {})); }

void OperationEngine::bucket_ready(BucketId bucket) {
  auto waiting = waiting_for_bucket_.find(bucket.raw());
  if (waiting == waiting_for_bucket_.end()) return;
  std::vector<OpRef> refs = std::move(waiting->second);
  waiting_for_bucket_.erase(waiting);
  dispatch_all(refs);
}

std::map<std::uint64_t, std::uint64_t> OperationEngine::oldest_under_way() {
  std::map<std::uint64_t, std::uint64_t> oldest;
  const auto add = [&](GlobalId gid, std::uint64_t timestamp_us) {
    const auto [place, is_new] = oldest.emplace(bucket_of(gid, BucketId::kUsedBitsMax).position(), timestamp_us);
    if (!is_new) place->second = std::min(place->second, timestamp_us);
  };
  for (const auto& [number, batch] : answers_.batches()) {
    for (const Op& op : batch->ops) {
      // A write that waits until its bucket is known again counts too: it keeps its timestamp.
      if (op.settled || op.timestamp_us == 0) continue;
      add(op.gid, op.timestamp_us);
    }
  }
  records_.visit_doubts(context_.clock.now(), add);
  return oldest;
}

}  // namespace fjord::distributor
