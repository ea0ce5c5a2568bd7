#include "fjord/visitors/visitor_session.h"

#include <algorithm>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "visitor_session_impl.h"

namespace fjord::visitors {
namespace {

constexpr Duration kTick = milliseconds(500);

}  // namespace

VisitorSession::Impl::Impl(VisitorSessionOptions options, VisitorSessionCallbacks callbacks, rpc::Transport& transport,
                           rpc::SnapshotHolder& snapshot, Clock& clock, Random random, Executor& executor)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      transport_(transport),
      snapshot_(snapshot),
      clock_(clock),
      random_(random),
      executor_(executor) {
  FJORD_CHECK_MSG(!options_.snapshot || callbacks_.on_bucket_dropped, "a snapshot cannot be taken back");
  options_.deduplicate = options_.deduplicate && !options_.snapshot;
  while (options_.group == 0) options_.group = random_.next();
}

void VisitorSession::Impl::start() {
  started_ = clock_.now();
  moved();
  if (!check_resume()) return;
  if (options_.buckets) {
    listed_ = named_ = true;
    for (const BucketId bucket : *options_.buckets) add_bucket(bucket);
    buckets_known();
    if (finished_) return;
  }
  if (buckets_.empty() && listed_) {
    executor_.post(guarded([](Impl& self) { self.finish({}); }));
    return;
  }
  tick();
}

bool VisitorSession::Impl::check_resume() {
  if (!options_.resume) return true;
  if (options_.resume->question != options_.fingerprint()) {
    executor_.post(guarded([](Impl& self) {
      self.finish(Status(StatusCode::InvalidArgument,
                         "the progress token is of a visit with another selection, field set, time range or slice"));
    }));
    return false;
  }
  done_before_ = options_.resume->done;
  done_ = done_before_;
  return true;
}

void VisitorSession::Impl::add_bucket(BucketId bucket) {
  const PositionRange range = PositionRange::of(bucket);
  if (!options_.slice.overlaps(range)) {
    ++progress_.skipped_by_slice;
  } else if (done_before_.contains(range)) {
    ++progress_.skipped_as_done;
  } else if (selection_ && !selection_->may_match(bucket)) {
    ++progress_.skipped_by_selection;
  } else if (const auto [place, is_new] = buckets_.try_emplace(bucket); is_new) {
    place->second.partly_wanted = !options_.slice.contains(range) || done_before_.overlaps(range);
    place->second.may_be_missing = named_;
    if (named_) due_.emplace(clock_.now(), bucket);
  }
}

void VisitorSession::Impl::buckets_known() {
  progress_.buckets_total = buckets_.size();
  if (callbacks_.on_buckets_known) callbacks_.on_buckets_known(buckets_.size());
}

/// Does all work that no answer triggers.
void VisitorSession::Impl::tick() {
  wake_at(clock_.now() + kTick);
  check_limits();
  if (finished_) return;
  if (snapshot_.get() == nullptr) {
    refresh_info();
    return;
  }
  drop_runs_of_dead_nodes();
  if (!listed_) look_at_selection();
  if (!listed_ && !locate()) {
    if (listing_ == 0 && clock_.now() >= next_listing_) list_all();
  } else {
    resolve_due();
  }
  relieve_stragglers();
  create_visitors();
}

void VisitorSession::Impl::wake_at(MonotonicTime time) {
  if (awake_at_ && *awake_at_ <= time) return;
  awake_at_ = time;
  executor_.post_after(std::max(Duration(0), time - clock_.now()), guarded([time](Impl& self) {
                         if (self.awake_at_ != time) return;  // an earlier time was requested meanwhile
                         self.awake_at_.reset();
                         self.tick();
                       }));
}

void VisitorSession::Impl::check_limits() {
  if (paused_) moved();
  const MonotonicTime now = clock_.now();
  const std::string why = last_reason_ ? "" : ": " + last_reason_.to_string();
  if (options_.deadline > Duration(0) && now - started_ > options_.deadline) {
    finish(Status(StatusCode::Timeout, "the visit's deadline has passed" + why));
  } else if (now - last_moved_ > options_.no_progress_limit) {
    finish(Status(last_reason_ ? StatusCode::Timeout : last_reason_.code(), "the visit makes no progress" + why));
  }
}

void VisitorSession::Impl::finish_if_done() {
  if (listed_ && buckets_.empty() && !finished_) finish({});
}

void VisitorSession::Impl::finish(Status status) {
  if (finished_) return;
  finished_ = true;
  if (status && !options_.buckets) done_.add(options_.slice);
  for (const auto& [id, run] : runs_) destroy_visitor(run);
  runs_.clear();
  const auto on_finished = std::move(callbacks_.on_finished);
  if (on_finished) on_finished(std::move(status));
}

void VisitorSession::Impl::cancel(UniqueFunction<void()> settled) {
  if (finished_) {
    if (settled) executor_.post(std::move(settled));
    return;
  }
  finished_ = true;
  settling_ = runs_.size();
  settled_ = std::move(settled);
  for (const auto& [id, run] : runs_) {
    // Keeps this object alive until the nodes have answered.
    rpc::call(transport_, run.address, rpc::DestroyVisitor{.visitor_id = id}, options_.call_timeout, executor_,
              [self = shared_from_this()](const Result<rpc::DestroyVisitorReply>&) {
                if (--self->settling_ == 0 && self->settled_) self->settled_();
              });
  }
  if (runs_.empty() && settled_) executor_.post(std::move(settled_));
  runs_.clear();
}

void VisitorSession::Impl::resume() {
  if (!paused_) return;
  paused_ = false;
  moved();
  for (auto& [id, run] : runs_) {
    run.last_event = clock_.now();
    if (!run.polling && !run.creating) poll(run);
  }
  create_visitors();
}

VisitorSession::VisitorSession(VisitorSessionOptions options, VisitorSessionCallbacks callbacks,
                               rpc::Transport& transport, rpc::SnapshotHolder& snapshot, Clock& clock, Random random,
                               Executor& executor)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(callbacks), transport, snapshot, clock, random,
                                   executor)) {}

VisitorSession::~VisitorSession() { impl_->cancel({}); }

void VisitorSession::start() { impl_->start(); }
void VisitorSession::cancel(UniqueFunction<void()> settled) { impl_->cancel(std::move(settled)); }
void VisitorSession::abandon() { impl_->abandon(); }
void VisitorSession::pause() { impl_->pause(); }
void VisitorSession::resume() { impl_->resume(); }
void VisitorSession::set_visitors(std::uint32_t per_node, std::uint32_t buckets_per_visitor) {
  impl_->set_visitors(per_node, buckets_per_visitor);
}
VisitProgress VisitorSession::progress() const { return impl_->progress(); }
VisitToken VisitorSession::token() const { return impl_->token(); }

std::uint64_t VisitorSessionOptions::fingerprint() const {
  std::string text;
  const auto add = [&](std::string_view part) {
    put_varint(text, part.size());
    text += part;
  };
  add(library);
  put_varint(text, parameters.size());
  for (const rpc::Parameter& parameter : parameters) {
    add(parameter.name);
    add(parameter.value);
  }
  add(selection);
  add(field_set);
  for (const std::uint64_t number :
       {std::uint64_t{ids_only}, from.us, to.us, std::uint64_t{include_removed} | (snapshot ? 2U : 0U), slice.first,
        slice.last, std::uint64_t{buckets ? buckets->size() + 1 : 0}}) {
    put_varint(text, number);
  }
  if (buckets) {
    for (const BucketId bucket : *buckets) put_varint(text, bucket.raw());
  }
  return hash64(text);
}

}  // namespace fjord::visitors
