#include "visit_runner.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "fjord/common/callback_guard.h"
#include "fjord/common/log.h"
#include "fjord/common/retry.h"

namespace fjord::visitors {
namespace {

constexpr std::uint32_t kVisitorsPerNodeDefault = 16;  // The node itself limits how many visitors run.
constexpr std::uint32_t kBatchMax = 64;
constexpr std::uint32_t kRounds = 4;
constexpr unsigned kSilentCallsMax = 3;
constexpr int kSlowerThanMean = 3;

}  // namespace

VisitRunner::Fault VisitRunner::classify(const Status& status) {
  const StatusCode code = status.code();
  if (retry_class(code) == RetryClass::Transient || code == StatusCode::NotFound) return Fault::NotHere;
  return is_permanent_for_read(code) ? Fault::Permanent : Fault::TryAgain;
}

void VisitRunner::finish_if_done() {
  if (finder_.is_listed() && buckets_.empty()) context_.finish({});
}

// ---------------------------------------------------------------------------------------------------------------------
// Creating visitors

std::uint32_t VisitRunner::visitors_max() const {
  const std::uint32_t wanted = context_.options.visitors_per_node;
  return wanted == 0 ? kVisitorsPerNodeDefault : wanted;
}

std::uint32_t VisitRunner::batch_size(const Node& node) const {
  if (context_.options.buckets_per_visitor != 0) return context_.options.buckets_per_visitor;
  const std::size_t queued = node.queue.size();
  const std::size_t visitors = visitors_max();
  if (context_.options.one_round) {
    const std::size_t left = visitors - node.runs;  // Positive: create_visitors() continues only while runs < visitors.
    return std::clamp(static_cast<std::uint32_t>((queued + left - 1) / left), 1u, kBatchMax);
  }
  return std::clamp(static_cast<std::uint32_t>(queued / (visitors * kRounds)), 1u, kBatchMax);
}

void VisitRunner::create_visitors() {
  if (context_.finished || context_.paused) return;
  const auto& on_begin = context_.callbacks.on_begin;
  while (auto* next = next_node()) {
    auto& [index, node] = *next;
    const std::size_t count = std::min<std::size_t>(batch_size(node), node.queue.size());
    if (const Duration wait = on_begin ? on_begin(count) : Duration(0); wait > Duration(0)) {
      is_held_back_ = true;
      context_.moved();
      context_.wake_at(context_.clock.now() + wait);
      return;
    }
    is_held_back_ = false;
    const auto end = node.queue.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<BucketId> batch(node.queue.begin(), end);
    node.queue.erase(node.queue.begin(), end);
    ++node.runs;
    if (!std::exchange(node.has_begun, true)) node.first_begun = context_.clock.now();
    create_visitor(index, std::move(batch));
  }
}

std::pair<const std::uint16_t, VisitRunner::Node>* VisitRunner::next_node() {
  std::pair<const std::uint16_t, Node>* best = nullptr;
  for (auto& one : nodes_) {
    const Node& node = one.second;
    const bool could = !node.queue.empty() && node.runs < visitors_max() && context_.node_up(one.first);
    if (could && (best == nullptr || node.runs < best->second.runs)) best = &one;
  }
  return best;
}

rpc::CreateVisitor VisitRunner::request_for(std::vector<BucketId> buckets) {
  const VisitorSessionOptions& options = context_.options;
  rpc::CreateVisitor request;
  request.refuses_damaged = true;
  for (const BucketId bucket : buckets) {
    if (buckets_.at(bucket).even_damaged) request.even_damaged.push_back(bucket);
  }
  request.library = options.library;
  request.parameters = options.parameters;
  request.buckets = std::move(buckets);
  request.selection = options.selection;
  request.ids_only = options.ids_only;
  request.field_set = options.field_set;
  request.header_only = options.header_only;
  request.docblock_bytes = options.docblock_bytes;
  request.buckets_at_once = options.buckets_at_once;
  request.from_us = options.from.us;
  request.to_us = options.to.us;
  request.include_removed = options.include_removed;
  request.snapshot = options.snapshot;
  request.priority = options.priority;
  request.group = options.group;
  request.weight = options.weight;
  if (!options.slice.is_all()) {
    request.first_position = options.slice.first;
    request.last_position = options.slice.last;
  }
  request.schema_version = std::max(options.schema_version, context_.snapshot.get()->schema_version());
  return request;
}

void VisitRunner::create_visitor(std::uint16_t node, std::vector<BucketId> buckets) {
  Run run;
  do {
    run.id = context_.random.next();
  } while (run.id == 0 || runs_.contains(run.id));
  run.node = node;
  run.address = context_.snapshot.get()->info().storage_addresses[node];
  run.last_event = context_.clock.now();
  run.unfinished.insert(buckets.begin(), buckets.end());
  for (const BucketId bucket : buckets) {
    VisitBuckets::Bucket& known = buckets_.at(bucket);
    if (++known.attempts > 1) ++context_.progress.buckets_repeated;
    if (std::exchange(known.is_begun, false) && context_.options.snapshot) {
      context_.callbacks.on_bucket_dropped(bucket);
    }
  }
  rpc::CreateVisitor request = request_for(std::move(buckets));
  request.visitor_id = run.id;
  const std::uint64_t id = run.id;
  const rpc::Address address = run.address;
  runs_.emplace(id, std::move(run));
  rpc::call(context_.transport, address, std::move(request), context_.options.call_timeout, context_.executor,
            while_alive(self_, [id](VisitRunner& self, Result<rpc::CreateVisitorReply> reply) {
              self.on_created(id, std::move(reply));
            }));
}

void VisitRunner::on_created(std::uint64_t run_id, Result<rpc::CreateVisitorReply> reply) {
  const auto it = runs_.find(run_id);
  if (it == runs_.end()) return;
  if (!reply) {
    finder_.refresh_info();
    abandon_queue(it->second.node, reply.error());
    drop_run(run_id, reply.error());
  } else if (reply->status) {
    it->second.creating = false;
    poll(it->second);
  } else if (classify(reply->status) == Fault::Permanent) {
    context_.finish(reply->status);
  } else {
    // A visitor that waits for room on the node counts as progress.
    if (reply->status.code() == StatusCode::Busy) context_.moved();
    drop_run(run_id, reply->status);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Polling visitors

void VisitRunner::poll(Run& run) {
  run.polling = !context_.paused;
  if (context_.paused) return;
  const Duration wait = context_.options.poll_wait;
  const rpc::VisitorNext request{
      .visitor_id = run.id, .acknowledged = run.acknowledged, .max_bytes = 0, .wait_us = wait.count()};
  rpc::call(context_.transport, run.address, request, wait + context_.options.call_timeout, context_.executor,
            while_alive(self_, [id = run.id](VisitRunner& self, Result<rpc::VisitorNextReply> reply) {
              self.on_polled(id, std::move(reply));
            }));
}

void VisitRunner::on_silence(Run& run, const Status& reason) {
  finder_.refresh_info();
  if (++run.silent_calls < kSilentCallsMax && context_.node_up(run.node)) {
    // The call or its answer was lost; the unacknowledged events are sent again.
    context_.executor.post_after(context_.options.retry_first * 4, while_alive(self_, [id = run.id](VisitRunner& self) {
                                   const auto again = self.runs_.find(id);
                                   if (again != self.runs_.end()) self.poll(again->second);
                                 }));
    return;
  }
  abandon_queue(run.node, reason);
  drop_run(run.id, reason);
}

void VisitRunner::on_polled(std::uint64_t run_id, Result<rpc::VisitorNextReply> reply) {
  const auto it = runs_.find(run_id);
  if (it == runs_.end()) return;
  Run& run = it->second;
  if (!reply) return on_silence(run, reply.error());
  run.polling = false;
  run.silent_calls = 0;
  if (!reply->status) {
    drop_run(run_id, reply->status);
    return;
  }
  context_.progress.documents_open += reply->documents_open - std::exchange(run.documents_open, reply->documents_open);
  if (reply->processor_us > run.processor_us) {
    context_.progress.processor_us += reply->processor_us - std::exchange(run.processor_us, reply->processor_us);
    if (context_.callbacks.on_processor_time) context_.callbacks.on_processor_time();
    if (context_.finished) return;
  }
  if (reply->events.empty()) context_.moved();  // The visitor is alive and busy.
  for (rpc::VisitorEvent& event : reply->events) {
    if (!on_event(run, std::move(event))) return;
  }
  if (reply->finished || run.unfinished.empty()) {  // In both cases the visitor has no further events.
    drop_run(run_id, Status(StatusCode::Unknown, "the visitor ended before its buckets"));
    finish_if_done();
  } else {
    poll(run);
  }
}

bool VisitRunner::on_event(Run& run, rpc::VisitorEvent event) {
  if (event.sequence <= run.acknowledged) return true;  // A repeated event, sent before the acknowledgement arrived.
  if (event.sequence != run.acknowledged + 1) {
    drop_run(run.id, Status(StatusCode::Corruption, "events of a visitor are missing"));
    return false;
  }
  run.acknowledged = event.sequence;
  if (!run.unfinished.contains(event.bucket)) return true;
  bucket_time_ += context_.clock.now() - std::exchange(run.last_event, context_.clock.now());
  if (!event.docblock.empty()) {
    context_.moved();
    buckets_.give(event.bucket, std::move(event.docblock));
  }
  if (!context_.finished && event.bucket_done) {
    run.unfinished.erase(event.bucket);
    if (event.status) {
      context_.moved();
      context_.progress.documents_read += event.documents_read;
      context_.progress.documents_matched += event.documents_matched;
      ++context_.progress.buckets_by_node[run.node];
      buckets_.complete(event.bucket, std::move(event.result));
    } else {
      on_bucket_error(run, event.bucket, event.status);
    }
  }
  finish_if_done();  // Checked here because the answer that says "finished" may be lost together with its node.
  return !context_.finished;
}

void VisitRunner::on_bucket_error(const Run& run, BucketId bucket, const Status& status) {
  const Fault fault = classify(status);
  const unsigned tries_max = context_.options.bucket_tries_max;
  if (fault == Fault::Permanent) {
    context_.finish(status);
  } else if (fault == Fault::TryAgain && ++buckets_.at(bucket).errors >= tries_max) {
    context_.finish(status.with_context(
        fmt::format("{} failed {} times, the last time on storage.{}", bucket.to_string(), tries_max, run.node)));
  } else {
    // The distributor may not have heard yet that this replica is damaged.
    if (fault == Fault::TryAgain) buckets_.at(bucket).avoid = run.node;
    finder_.again_later(bucket, status);
  }
}

void VisitRunner::resume() {
  for (auto& [id, run] : runs_) {
    run.last_event = context_.clock.now();
    if (!run.polling && !run.creating) poll(run);
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// Ending visitors

void VisitRunner::drop_run(std::uint64_t run_id, const Status& reason) {
  const auto it = runs_.find(run_id);
  const Run run = std::move(it->second);
  context_.progress.documents_open -= run.documents_open;
  runs_.erase(it);
  --nodes_.at(run.node).runs;
  destroy_visitor(run);
  const Status named = reason.with_details({.node = "storage." + std::to_string(run.node)});
  for (const BucketId bucket : run.unfinished) finder_.again_later(bucket, named);
  create_visitors();
}

void VisitRunner::abandon_queue(std::uint16_t node, const Status& reason) {
  const auto queue = std::exchange(nodes_[node].queue, {});
  for (const BucketId bucket : queue) finder_.again_later(bucket, reason);
}

void VisitRunner::drop_dead_nodes() {
  const Status reason(StatusCode::NotReady, "the storage node went down");
  for (auto& [index, node] : nodes_) {
    if (!context_.node_up(index)) abandon_queue(index, reason);
  }
  std::vector<std::uint64_t> dead;
  for (const auto& [id, run] : runs_) {
    if (!context_.node_up(run.node)) dead.push_back(id);
  }
  for (const std::uint64_t id : dead) drop_run(id, reason);
}

void VisitRunner::destroy_visitor(const Run& run) {
  rpc::call(context_.transport, run.address, rpc::DestroyVisitor{.visitor_id = run.id}, context_.options.call_timeout,
            context_.executor, [](const Result<rpc::DestroyVisitorReply>&) {});
}

void VisitRunner::stop() {
  for (const auto& [id, run] : runs_) destroy_visitor(run);
  runs_.clear();
  context_.progress.documents_open = 0;
}

void VisitRunner::stop_and_settle(UniqueFunction<void()> settled) {
  struct Settling {
    std::size_t open;
    UniqueFunction<void()> settled;
  };
  if (runs_.empty() && settled) context_.executor.post(std::move(settled));
  const auto settling = std::make_shared<Settling>(Settling{runs_.size(), std::move(settled)});
  for (const auto& [id, run] : runs_) {
    rpc::call(context_.transport, run.address, rpc::DestroyVisitor{.visitor_id = id}, context_.options.call_timeout,
              context_.executor, [settling](const Result<rpc::DestroyVisitorReply>&) {
                if (--settling->open == 0 && settling->settled) settling->settled();
              });
  }
  runs_.clear();
  context_.progress.documents_open = 0;
}

// ---------------------------------------------------------------------------------------------------------------------
// Relieving nodes that are slower than others

void VisitRunner::relieve_stragglers() {
  if (context_.options.backup_after <= Duration(0) || context_.paused || is_held_back_ || !has_idle_node()) return;
  const Duration patience = std::max(context_.options.backup_after, kSlowerThanMean * mean_bucket_time());
  for (auto& [index, node] : nodes_) take_from_queue(index, node, patience);
  const MonotonicTime now = context_.clock.now();
  std::vector<std::uint64_t> stuck;
  for (const auto& [id, run] : runs_) {
    const bool has_new = std::any_of(run.unfinished.begin(), run.unfinished.end(),
                                     [&](BucketId bucket) { return !buckets_.at(bucket).avoid.has_value(); });
    if (has_new && now - run.last_event > patience) stuck.push_back(id);
  }
  const std::uint64_t before = context_.progress.buckets_relieved;
  for (const std::uint64_t id : stuck) {
    const Run& run = runs_.at(id);
    for (const BucketId bucket : run.unfinished) buckets_.at(bucket).avoid = run.node;
    context_.progress.buckets_relieved += run.unfinished.size();
    drop_run(id, Status(StatusCode::Busy, "storage." + std::to_string(run.node) + " keeps the others waiting"));
  }
  if (context_.progress.buckets_relieved > before) {
    log::info("visit", "{} buckets are begun again elsewhere, as their nodes keep the others waiting",
              context_.progress.buckets_relieved - before);
  }
}

bool VisitRunner::has_idle_node() const {
  const std::size_t nodes = context_.snapshot.get()->info().storage_addresses.size();
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto index = static_cast<std::uint16_t>(i);
    const auto node = nodes_.find(index);
    const bool has_work = node != nodes_.end() && (!node->second.queue.empty() || node->second.runs != 0);
    if (!has_work && context_.node_up(index)) return true;
  }
  return false;
}

void VisitRunner::take_from_queue(std::uint16_t index, Node& node, Duration patience) {
  if (node.queue.empty()) return;
  const auto done = context_.progress.buckets_by_node.find(index);
  const double count = done == context_.progress.buckets_by_node.end() ? 0 : static_cast<double>(done->second);
  const auto elapsed = static_cast<double>((context_.clock.now() - node.first_begun).count());
  if (elapsed < static_cast<double>(patience.count())) return;  // Too early to estimate the rate.
  const auto keeps = static_cast<std::size_t>(std::floor(count / elapsed * static_cast<double>(patience.count())));
  std::deque<BucketId> kept;
  const Status reason(StatusCode::Busy, "storage." + std::to_string(index) + " has more to do than others");
  for (const BucketId bucket : node.queue) {
    VisitBuckets::Bucket& known = buckets_.at(bucket);
    if (kept.size() < keeps || known.avoid) {
      kept.push_back(bucket);
      continue;
    }
    known.avoid = index;
    ++context_.progress.buckets_relieved;
    finder_.again_later(bucket, reason);
  }
  node.queue = std::move(kept);
}

Duration VisitRunner::mean_bucket_time() const {
  const std::uint64_t done = context_.progress.buckets_done;
  return done == 0 ? Duration(0) : bucket_time_ / static_cast<std::int64_t>(done);
}

}  // namespace fjord::visitors
