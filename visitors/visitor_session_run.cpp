// The part of a session that creates visitors, polls them and handles their events.

#include <algorithm>
#include <utility>

#include "fjord/common/retry.h"
#include "fjord/document/docblock.h"
#include "visitor_session_impl.h"

namespace fjord::visitors {
namespace {

constexpr std::uint32_t kVisitorsPerNodeDefault = 16;  // the node limits how many run and queues the others
constexpr std::uint32_t kBatchMax = 64;
constexpr std::uint32_t kRounds = 4;
constexpr unsigned kSilentCallsMax = 3;

}  // namespace

VisitorSession::Impl::Fault VisitorSession::Impl::classify(const Status& status) {
  const StatusCode code = status.code();
  const RetryClass retry = retry_class(code);
  if (retry == RetryClass::Transient || code == StatusCode::NotFound) return Fault::NotHere;
  // A map task may write documents: there may be space again, and another writer may be done.
  const bool is_of_write =
      code == StatusCode::NoSpace || code == StatusCode::TestAndSetFailed || code == StatusCode::AlreadyExists;
  return retry == RetryClass::Permanent && !is_of_write ? Fault::Permanent : Fault::TryAgain;
}

bool VisitorSession::Impl::node_up(std::uint16_t node) const {
  const auto snapshot = snapshot_.get();
  return snapshot != nullptr && snapshot->storage_serves(node) && node < snapshot->info().storage_addresses.size();
}

std::uint32_t VisitorSession::Impl::batch_size(std::size_t queued, unsigned runs) const {
  if (options_.buckets_per_visitor != 0) return options_.buckets_per_visitor;
  const std::size_t visitors = options_.visitors_per_node == 0 ? kVisitorsPerNodeDefault : options_.visitors_per_node;
  if (options_.one_round) {
    const std::size_t left = visitors - runs;  // positive: create_visitors() continues only while runs < visitors
    return std::clamp(static_cast<std::uint32_t>((queued + left - 1) / left), 1u, kBatchMax);
  }
  return std::clamp(static_cast<std::uint32_t>(queued / (visitors * kRounds)), 1u, kBatchMax);
}

void VisitorSession::Impl::create_visitors() {
  if (finished_ || paused_) return;
  const std::uint32_t limit = options_.visitors_per_node == 0 ? kVisitorsPerNodeDefault : options_.visitors_per_node;
  while (auto* next = next_node(limit)) {
    auto& [index, node] = *next;
    const std::size_t count = std::min<std::size_t>(batch_size(node.queue.size(), node.runs), node.queue.size());
    if (const Duration wait = callbacks_.on_begin ? callbacks_.on_begin(count) : Duration(0); wait > Duration(0)) {
      held_back_ = true;
      moved();
      wake_at(clock_.now() + wait);
      return;
    }
    held_back_ = false;
    const auto end = node.queue.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<BucketId> batch(node.queue.begin(), end);
    node.queue.erase(node.queue.begin(), end);
    ++node.runs;
    if (!std::exchange(node.has_begun, true)) node.first_begun = clock_.now();
    create_visitor(index, std::move(batch));
  }
}

std::pair<const std::uint16_t, VisitorSession::Impl::Node>* VisitorSession::Impl::next_node(std::uint32_t limit) {
  std::pair<const std::uint16_t, Node>* best = nullptr;
  for (auto& one : nodes_) {
    const Node& node = one.second;
    const bool could = !node.queue.empty() && node.runs < limit && node_up(one.first);
    if (could && (best == nullptr || node.runs < best->second.runs)) best = &one;
  }
  return best;
}

void VisitorSession::Impl::create_visitor(std::uint16_t node, std::vector<BucketId> buckets) {
  const auto snapshot = snapshot_.get();
  Run run;
  do {
    run.id = random_.next();
  } while (run.id == 0 || runs_.contains(run.id));
  run.node = node;
  run.address = snapshot->info().storage_addresses[node];
  run.last_event = clock_.now();
  run.unfinished.insert(buckets.begin(), buckets.end());
  for (const BucketId bucket : buckets) {
    Bucket& known = buckets_.at(bucket);
    if (++known.attempts > 1) ++progress_.buckets_repeated;
    if (std::exchange(known.is_begun, false) && options_.snapshot) callbacks_.on_bucket_dropped(bucket);
  }
  rpc::CreateVisitor request;
  request.refuses_damaged = true;
  for (const BucketId bucket : buckets) {
    if (buckets_.at(bucket).even_damaged) request.even_damaged.push_back(bucket);
  }
  request.visitor_id = run.id;
  request.library = options_.library;
  request.parameters = options_.parameters;
  request.buckets = std::move(buckets);
  request.selection = options_.selection;
  request.ids_only = options_.ids_only;
  request.field_set = options_.field_set;
  request.header_only = options_.header_only;
  request.docblock_bytes = options_.docblock_bytes;
  request.buckets_at_once = options_.buckets_at_once;
  request.from_us = options_.from.us;
  request.to_us = options_.to.us;
  request.include_removed = options_.include_removed;
  request.snapshot = options_.snapshot;
  request.priority = options_.priority;
  request.group = options_.group;
  request.weight = options_.weight;
  if (!options_.slice.is_all()) {
    request.first_position = options_.slice.first;
    request.last_position = options_.slice.last;
  }
  request.schema_version = std::max(options_.schema_version, snapshot->schema_version());
  const std::uint64_t id = run.id;
  const rpc::Address address = run.address;
  runs_.emplace(id, std::move(run));
  rpc::call(
      transport_, address, std::move(request), options_.call_timeout, executor_,
      guarded([id](Impl& self, Result<rpc::CreateVisitorReply> reply) { self.on_created(id, std::move(reply)); }));
}

void VisitorSession::Impl::on_created(std::uint64_t run_id, Result<rpc::CreateVisitorReply> reply) {
  const auto it = runs_.find(run_id);
  if (it == runs_.end()) return;
  if (!reply) {
    refresh_info();
    abandon_queue(it->second.node, reply.error());
    drop_run(run_id, reply.error());
  } else if (reply->status) {
    it->second.creating = false;
    poll(it->second);
  } else if (classify(reply->status) == Fault::Permanent) {
    finish(reply->status);
  } else {
    if (reply->status.code() == StatusCode::Busy)
      moved();  // The visitor waits for room on the node, which counts as progress.
    drop_run(run_id, reply->status);
  }
}

void VisitorSession::Impl::poll(Run& run) {
  run.polling = !paused_;
  if (paused_) return;
  const rpc::VisitorNext request{
      .visitor_id = run.id, .acknowledged = run.acknowledged, .max_bytes = 0, .wait_us = options_.poll_wait.count()};
  rpc::call(transport_, run.address, request, options_.poll_wait + options_.call_timeout, executor_,
            guarded([id = run.id](Impl& self, Result<rpc::VisitorNextReply> reply) {
              self.on_polled(id, std::move(reply));
            }));
}

void VisitorSession::Impl::on_polled(std::uint64_t run_id, Result<rpc::VisitorNextReply> reply) {
  const auto it = runs_.find(run_id);
  if (it == runs_.end()) return;
  Run& run = it->second;
  if (!reply) {
    refresh_info();
    if (++run.silent_calls < kSilentCallsMax && node_up(run.node)) {
      // The call or its answer was lost; the unacknowledged events are sent again.
      executor_.post_after(options_.retry_first * 4, guarded([run_id](Impl& self) {
                             const auto again = self.runs_.find(run_id);
                             if (again != self.runs_.end()) self.poll(again->second);
                           }));
      return;
    }
    abandon_queue(run.node, reply.error());
    drop_run(run_id, reply.error());
    return;
  }
  run.polling = false;
  run.silent_calls = 0;
  if (!reply->status) {
    drop_run(run_id, reply->status);
    return;
  }
  if (reply->processor_us > run.processor_us) {
    progress_.processor_us += reply->processor_us - std::exchange(run.processor_us, reply->processor_us);
    if (callbacks_.on_processor_time) callbacks_.on_processor_time();
    if (finished_) return;
  }
  if (reply->events.empty()) moved();  // the visitor is alive and busy
  for (rpc::VisitorEvent& event : reply->events) {
    if (!on_event(run, std::move(event))) return;
  }
  if (reply->finished || run.unfinished.empty()) {  // the visitor has no further events then
    drop_run(run_id, Status(StatusCode::Unknown, "the visitor ended before its buckets"));
    finish_if_done();
  } else {
    poll(run);
  }
}

/// Returns false if the run is gone or the session has finished.
bool VisitorSession::Impl::on_event(Run& run, rpc::VisitorEvent event) {
  if (event.sequence <= run.acknowledged) return true;  // a repeated event, sent before the acknowledgement arrived
  if (event.sequence != run.acknowledged + 1) {
    drop_run(run.id, Status(StatusCode::Corruption, "events of a visitor are missing"));
    return false;
  }
  run.acknowledged = event.sequence;
  if (!run.unfinished.contains(event.bucket)) return true;
  bucket_time_ += clock_.now() - std::exchange(run.last_event, clock_.now());
  if (!event.docblock.empty()) {
    moved();
    give(event.bucket, std::move(event.docblock));
  }
  if (!finished_ && event.bucket_done) {
    run.unfinished.erase(event.bucket);
    if (event.status) {
      moved();
      progress_.documents_read += event.documents_read;
      progress_.documents_matched += event.documents_matched;
      ++progress_.buckets_by_node[run.node];
      bucket_complete(event.bucket, std::move(event.result));
    } else {
      on_bucket_error(event.bucket, event.status);
    }
  }
  finish_if_done();  // Checked here because the answer that says "finished" may be lost together with its node.
  return !finished_;
}

void VisitorSession::Impl::give(BucketId bucket, std::string docblock) {
  Bucket& known = buckets_.at(bucket);
  if (options_.deduplicate || known.partly_wanted) docblock = without_unwanted(known, std::move(docblock));
  if (docblock.empty()) return;
  known.is_begun = true;
  progress_.docblock_bytes += docblock.size();
  if (callbacks_.on_docblock) callbacks_.on_docblock(bucket, std::move(docblock));
}

std::string VisitorSession::Impl::without_unwanted(Bucket& bucket, std::string docblock) const {
  std::vector<bool> wanted;  // Usually all wanted; then the block is passed on unchanged.
  bool leaves_out = false;
  DocBlockReader reader(docblock);
  while (const auto entry = reader.next()) {
    const bool is_wanted = (!bucket.partly_wanted || wants(entry->gid)) &&
                           (!options_.deduplicate || bucket.given.insert(entry->gid).second);
    wanted.push_back(is_wanted);
    leaves_out = leaves_out || !is_wanted;
  }
  if (!leaves_out) return docblock;
  DocBlockBuilder kept;
  DocBlockReader again(docblock);
  for (const bool is_wanted : wanted) {
    const auto entry = again.next();
    if (is_wanted) kept.add(*entry);
  }
  return kept.take();
}

bool VisitorSession::Impl::wants(const GlobalId& gid) const {
  const std::uint64_t position = position_of(gid);
  return options_.slice.contains(position) && !done_before_.contains(position);
}

void VisitorSession::Impl::bucket_complete(BucketId bucket, std::string result) {
  buckets_.erase(bucket);
  done_.add(PositionRange::of(bucket));
  ++progress_.buckets_done;
  if (callbacks_.on_bucket_done) callbacks_.on_bucket_done(bucket, std::move(result));
}

void VisitorSession::Impl::on_bucket_error(BucketId bucket, const Status& status) {
  const Fault fault = classify(status);
  if (fault == Fault::Permanent) {
    finish(status);
  } else if (fault == Fault::TryAgain && ++buckets_.at(bucket).errors >= options_.bucket_tries_max) {
    finish(status.with_context(bucket.to_string() + " failed " + std::to_string(options_.bucket_tries_max) + " times"));
  } else {
    again_later(bucket, status);
  }
}

void VisitorSession::Impl::drop_run(std::uint64_t run_id, const Status& reason) {
  const auto it = runs_.find(run_id);
  const Run run = std::move(it->second);
  runs_.erase(it);
  --nodes_.at(run.node).runs;
  destroy_visitor(run);
  const Status named = reason.with_details({.node = "storage." + std::to_string(run.node)});
  for (const BucketId bucket : run.unfinished) again_later(bucket, named);
  create_visitors();
}

void VisitorSession::Impl::abandon_queue(std::uint16_t node, const Status& reason) {
  const auto queue = std::exchange(nodes_[node].queue, {});
  for (const BucketId bucket : queue) again_later(bucket, reason);
}

void VisitorSession::Impl::drop_runs_of_dead_nodes() {
  const Status reason(StatusCode::NotReady, "the storage node went down");
  for (auto& [index, node] : nodes_) {
    if (!node_up(index)) abandon_queue(index, reason);
  }
  std::vector<std::uint64_t> dead;
  for (const auto& [id, run] : runs_) {
    if (!node_up(run.node)) dead.push_back(id);
  }
  for (const std::uint64_t id : dead) drop_run(id, reason);
}

void VisitorSession::Impl::destroy_visitor(const Run& run) {
  rpc::call(transport_, run.address, rpc::DestroyVisitor{.visitor_id = run.id}, options_.call_timeout, executor_,
            [](const Result<rpc::DestroyVisitorReply>&) {});
}

}  // namespace fjord::visitors
