#include "visit_run.h"

#include <utility>

namespace fjord::cli {

VisitRun::VisitRun(Connection& connection, VisitRunOptions options, VisitRunCallbacks callbacks)
    : connection_(connection), options_(std::move(options)), callbacks_(std::move(callbacks)) {}

VisitRun::~VisitRun() = default;

Status VisitRun::run() {
  const auto updated = snapshots_.update(connection_.client().snapshot()->info());
  if (!updated) return updated.error();
  connection_.executor().post([this] { start(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return result_.has_value(); });
  is_over_ = true;  // No interrupt() posts after this; tasks posted earlier run before the next one.
  connection_.executor().post([this] {
    final_progress_ = progress();
    sessions_.clear();
    const std::lock_guard settled(mutex_);
    settled_ = true;
    changed_.notify_one();
  });
  changed_.wait(lock, [&] { return settled_; });
  return *result_;
}

void VisitRun::start() {
  left_ = options_.slices;
  for (std::size_t slice = 0; slice < options_.slices; ++slice) start_slice(slice);
  for (auto& session : sessions_) session->start();
}

void VisitRun::start_slice(std::size_t slice) {
  visitors::VisitorSessionOptions options = options_.session;
  if (options_.slices > 1) options.slice = visitors::PositionRange::slice(slice, options_.slices);
  if (!options_.resume.empty()) options.resume = options_.resume[slice];
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_docblock = [this, slice](BucketId bucket, const std::string& block) {
    if (ended_) return;
    const VisitedBucket visited{slice, bucket};
    if (Status status = callbacks_.on_docblock(visited, block); !status) end(status, &visited);
  };
  callbacks.on_bucket_done = [this, slice](BucketId bucket, const std::string&) {
    if (ended_ || !callbacks_.on_bucket_done) return;
    const VisitedBucket visited{slice, bucket};
    if (Status status = callbacks_.on_bucket_done(visited); !status) end(status, &visited);
  };
  if (callbacks_.on_bucket_dropped) {
    callbacks.on_bucket_dropped = [this, slice](BucketId bucket) { callbacks_.on_bucket_dropped({slice, bucket}); };
  }
  callbacks.on_finished = [this](const Status& status) {
    if (!status || --left_ == 0) end(status);
  };
  sessions_.push_back(std::make_unique<visitors::VisitorSession>(
      std::move(options), std::move(callbacks), connection_.transport(), snapshots_, connection_.runtime().clock,
      Random::from_system(), connection_.executor()));
}

void VisitRun::end(const Status& status, const VisitedBucket* unfinished) {
  if (ended_) return;
  // Taken now, because the sessions still handle received events, for which no callback is called any more.
  final_tokens_ = tokens();
  if (unfinished != nullptr) {
    final_tokens_[unfinished->slice].done.remove(visitors::PositionRange::of(unfinished->bucket));
  }
  ended_ = true;
  for (auto& session : sessions_) session->pause();
  const std::lock_guard lock(mutex_);
  result_ = status;
  changed_.notify_one();
}

void VisitRun::stop(const VisitedBucket& bucket) { end(Status::ok(), &bucket); }

void VisitRun::interrupt(Status why) {
  const std::lock_guard lock(mutex_);
  if (is_over_) return;
  connection_.executor().post([this, why = std::move(why)] { end(why); });
}

void VisitRun::pause() {
  for (auto& session : sessions_) session->pause();
}

void VisitRun::resume() {
  if (ended_) return;
  for (auto& session : sessions_) session->resume();
}

visitors::VisitProgress VisitRun::progress() const {
  if (final_progress_) return *final_progress_;
  visitors::VisitProgress sum;
  for (const auto& session : sessions_) {
    const visitors::VisitProgress one = session->progress();
    sum.buckets_total += one.buckets_total;
    sum.buckets_done += one.buckets_done;
    sum.buckets_repeated += one.buckets_repeated;
    sum.docblock_bytes += one.docblock_bytes;
    sum.documents_read += one.documents_read;
    sum.documents_matched += one.documents_matched;
    sum.skipped_by_selection += one.skipped_by_selection;
    sum.skipped_by_slice += one.skipped_by_slice;
    sum.skipped_as_done += one.skipped_as_done;
    sum.located = sum.located || one.located;
    for (const auto& [node, buckets] : one.buckets_by_node) sum.buckets_by_node[node] += buckets;
  }
  return sum;
}

double VisitRun::part_done() const {
  const visitors::VisitProgress now = progress();
  if (now.buckets_total == 0) return -1;
  return static_cast<double>(now.buckets_done) / static_cast<double>(now.buckets_total);
}

std::vector<visitors::VisitToken> VisitRun::tokens() const {
  if (ended_) return final_tokens_;
  std::vector<visitors::VisitToken> tokens;
  for (const auto& session : sessions_) tokens.push_back(session->token());
  return tokens;
}

}  // namespace fjord::cli
