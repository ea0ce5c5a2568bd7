#include "fjord/visitors/visitor_session.h"

#include <algorithm>
#include <utility>

#include "bucket_finder.h"
#include "fjord/common/callback_guard.h"
#include "fjord/common/check.h"
#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "session_context.h"
#include "visit_buckets.h"
#include "visit_runner.h"

namespace fjord::visitors {
namespace {

constexpr Duration kTick = milliseconds(500);

VisitorSessionOptions with_group(VisitorSessionOptions options, Random& random) {
  options.deduplicate = options.deduplicate && !options.snapshot;
  while (options.group == 0) options.group = random.next();
  return options;
}

}  // namespace

/// Puts the parts of a session together: ticks, limits, pause and end.
class VisitorSession::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(VisitorSessionOptions options, VisitorSessionCallbacks callbacks, rpc::Transport& transport,
       rpc::SnapshotHolder& snapshot, Clock& clock, Random random, Executor& executor);

  void start();
  void cancel(UniqueFunction<void()> settled);
  void abandon() { context_.finished = true; }
  void pause() { context_.paused = true; }
  void resume();
  void set_visitors(std::uint32_t per_node, std::uint32_t buckets_per_visitor);
  VisitProgress progress() const { return context_.progress; }
  SessionCursor cursor() const { return buckets_.cursor(); }
  bool is_over() const { return context_.finished; }

 private:
  /// Takes the cursor of the visit that is resumed. Returns false if it is of another visit; then the visit ends soon.
  bool resume_from_cursor();
  /// Ends the visit after the return of the present call.
  void finish_later(Status status);
  /// Does all work that no answer triggers.
  void tick();
  void wake_at(MonotonicTime time);
  void check_limits();
  void finish(Status status);
  void on_caught_up();

  SessionContext context_;
  VisitBuckets buckets_;
  BucketFinder finder_;
  VisitRunner runner_;
  std::optional<MonotonicTime> awake_at_;
};

VisitorSession::Impl::Impl(VisitorSessionOptions options, VisitorSessionCallbacks callbacks, rpc::Transport& transport,
                           rpc::SnapshotHolder& snapshot, Clock& clock, Random random, Executor& executor)
    : context_{.options = with_group(std::move(options), random),
               .callbacks = std::move(callbacks),
               .transport = transport,
               .snapshot = snapshot,
               .clock = clock,
               .random = random,
               .executor = executor,
               .finish = [this](Status status) { finish(std::move(status)); },
               .wake_at = [this](MonotonicTime time) { wake_at(time); }},
      buckets_(context_),
      finder_(context_, buckets_,
              {.found = [this](BucketId bucket, std::uint16_t node) { runner_.enqueue(bucket, node); },
               .caught_up = [this] { on_caught_up(); },
               .snapshot_came = [this] { tick(); },
               .nodes_changed = [this] { runner_.drop_dead_nodes(); }}),
      runner_(context_, buckets_, finder_) {
  FJORD_CHECK_MSG(!context_.options.snapshot || context_.callbacks.on_bucket_dropped,
                  "a snapshot cannot be taken back");
}

void VisitorSession::Impl::start() {
  finder_.set_self(std::shared_ptr<BucketFinder>(shared_from_this(), &finder_));
  runner_.set_self(std::shared_ptr<VisitRunner>(shared_from_this(), &runner_));
  context_.started = context_.clock.now();
  context_.moved();
  if (!resume_from_cursor()) return;
  if (context_.options.buckets) {
    finder_.name_buckets(*context_.options.buckets);
    if (context_.finished) return;
    if (buckets_.empty()) return finish_later({});
  }
  tick();
}

bool VisitorSession::Impl::resume_from_cursor() {
  const std::optional<SessionCursor>& cursor = context_.options.resume;
  if (!cursor) return true;
  if (cursor->question != context_.options.fingerprint()) {
    finish_later(Status(StatusCode::InvalidArgument,
                        "the cursor is of a visit with another selection, field set, time range or slice"));
    return false;
  }
  buckets_.resume_from(*cursor);
  return true;
}

void VisitorSession::Impl::finish_later(Status status) {
  context_.executor.post(while_alive(
      weak_from_this(), [status = std::move(status)](Impl& self) mutable { self.finish(std::move(status)); }));
}

void VisitorSession::Impl::tick() {
  wake_at(context_.clock.now() + kTick);
  check_limits();
  if (context_.finished) return;
  if (context_.snapshot.get() == nullptr) return finder_.refresh_info();
  runner_.drop_dead_nodes();
  finder_.tick();
  if (finder_.is_listed() && !finder_.has_waiting()) runner_.relieve_stragglers();
  runner_.create_visitors();
}

void VisitorSession::Impl::wake_at(MonotonicTime time) {
  if (awake_at_ && *awake_at_ <= time) return;
  awake_at_ = time;
  context_.executor.post_after(std::max(Duration(0), time - context_.clock.now()),
                               while_alive(weak_from_this(), [time](Impl& self) {
                                 if (self.awake_at_ != time) return;  // An earlier time was requested meanwhile.
                                 self.awake_at_.reset();
                                 self.tick();
                               }));
}

void VisitorSession::Impl::check_limits() {
  if (context_.paused) context_.moved();
  const MonotonicTime now = context_.clock.now();
  const Status& reason = context_.last_reason;
  const std::string why = reason ? "" : ": " + reason.to_string();
  const Duration deadline = context_.options.deadline;
  if (deadline > Duration(0) && now - context_.started > deadline) {
    finish(Status(StatusCode::Timeout, "the visit's deadline has passed" + why));
  } else if (now - context_.last_moved > context_.options.no_progress_limit) {
    finish(Status(reason ? StatusCode::Timeout : reason.code(), "the visit makes no progress" + why));
  }
}

void VisitorSession::Impl::on_caught_up() {
  runner_.create_visitors();
  if (buckets_.empty()) finish({});
}

void VisitorSession::Impl::finish(Status status) {
  if (std::exchange(context_.finished, true)) return;
  if (status && !context_.options.buckets) buckets_.complete_all();
  runner_.stop();
  const auto on_finished = std::move(context_.callbacks.on_finished);
  if (on_finished) on_finished(std::move(status));
}

void VisitorSession::Impl::cancel(UniqueFunction<void()> settled) {
  if (std::exchange(context_.finished, true)) {
    if (settled) context_.executor.post(std::move(settled));
    return;
  }
  runner_.stop_and_settle(std::move(settled));
}

void VisitorSession::Impl::resume() {
  if (!std::exchange(context_.paused, false)) return;
  context_.moved();
  runner_.resume();
  runner_.create_visitors();
}

void VisitorSession::Impl::set_visitors(std::uint32_t per_node, std::uint32_t buckets_per_visitor) {
  context_.options.visitors_per_node = per_node;
  context_.options.buckets_per_visitor = buckets_per_visitor;
  runner_.create_visitors();
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
SessionCursor VisitorSession::cursor() const { return impl_->cursor(); }

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
