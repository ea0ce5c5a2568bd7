#include "visit_stream.h"

#include <utility>

namespace fjord {

VisitStream::VisitStream(ClientCore& core, std::vector<visitors::VisitorSessionOptions> sessions,
                         std::size_t buffer_bytes, Drops drops)
    : core_(core), buffer_bytes_(buffer_bytes), drops_(drops), options_(std::move(sessions)) {}

VisitStream::~VisitStream() {
  if (!core_.settings_error()) return;
  core_.run([this] {
    guard_.end();
    sessions_.clear();
    wait_.end(mutex_, Status(StatusCode::Cancelled, "the visit was destroyed"));
  });
}

template <typename F>
void VisitStream::post(F f) {
  core_.executor().post(while_alive(guard_.of(*this), std::move(f)));
}

Status VisitStream::start() {
  FJORD_TRY(core_.copy_snapshot(snapshots_));
  post([](VisitStream& self) { self.open_sessions(std::exchange(self.options_, {})); });
  return Status::ok();
}

void VisitStream::open_sessions(std::vector<visitors::VisitorSessionOptions> options) {
  if (has_result()) return;  // It was stopped before it began.
  running_ = options.size();
  for (std::size_t slice = 0; slice < options.size(); ++slice) {
    visitors::VisitorSessionCallbacks callbacks =
        callbacks_of(slice, options[slice].snapshot && drops_ == Drops::Never);
    sessions_.push_back(std::make_unique<visitors::VisitorSession>(std::move(options[slice]), std::move(callbacks),
                                                                   core_.transport(), snapshots_, core_.clock(),
                                                                   core_.new_random(), core_.executor()));
  }
  for (auto& session : sessions_) session->start();
}

visitors::VisitorSessionCallbacks VisitStream::callbacks_of(std::size_t slice, bool holds) {
  using Kind = VisitItem::Kind;
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_docblock = [this, slice, holds](BucketId bucket, std::string block) {
    if (holds) {
      held_[{slice, bucket}].push_back(std::move(block));
    } else {
      push({{slice, bucket}, Kind::Documents, std::move(block)});
    }
  };
  callbacks.on_bucket_done = [this, slice](BucketId bucket, const std::string&) {
    if (auto held = held_.extract({slice, bucket}); !held.empty()) {
      for (std::string& block : held.mapped()) push({{slice, bucket}, Kind::Documents, std::move(block)});
    }
    push({{slice, bucket}, Kind::BucketEnd, {}});
  };
  if (holds) {
    callbacks.on_bucket_dropped = [this, slice](BucketId bucket) { held_.erase({slice, bucket}); };
  } else if (drops_ == Drops::Tell) {
    callbacks.on_bucket_dropped = [this, slice](BucketId bucket) { push({{slice, bucket}, Kind::BucketDropped, {}}); };
  }
  callbacks.on_finished = [this](const Status& status) {
    if (!status || --running_ == 0) finish(status);
  };
  return callbacks;
}

void VisitStream::push(VisitItem item) {
  note_progress();
  const std::lock_guard lock(mutex_);
  if (result_) return;
  bytes_ += item.docblock.size();
  items_.push_back(std::move(item));
  wake();
  if (bytes_ <= buffer_bytes_ || std::exchange(paused_, true)) return;
  for (auto& session : sessions_) session->pause();
}

void VisitStream::note_progress() {
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
  const std::lock_guard lock(mutex_);
  progress_ = std::move(sum);
}

void VisitStream::finish(const Status& status) {
  note_progress();
  const std::lock_guard lock(mutex_);
  if (!result_) result_ = status;
  wake();
  end_sessions();
}

bool VisitStream::has_result() const {
  const std::lock_guard lock(mutex_);
  return result_.has_value();
}

/// Ends the other slices, whose documents the caller does not take any more. Storage nodes stop reading for them.
void VisitStream::end_sessions() {
  post([](VisitStream& self) {
    self.sessions_.clear();
    self.held_.clear();
  });
}

/// Wakes the thread or the callback that waits.
void VisitStream::wake() {
  changed_.notify_one();
  if (wait_.has_to_wake()) post([](VisitStream& self) { self.wait_.end(self.mutex_, Status::ok()); });
}

Pending<Status> VisitStream::ready() {
  const std::lock_guard lock(mutex_);
  return wait_.begin(core_, !items_.empty() || result_.has_value());
}

bool VisitStream::pop(VisitItem& item) {
  std::unique_lock lock(mutex_);
  core_.wait(lock, changed_, [this] { return !items_.empty() || result_.has_value(); });
  if (items_.empty()) return false;
  item = std::move(items_.front());
  items_.pop_front();
  bytes_ -= item.docblock.size();
  if (paused_ && bytes_ <= buffer_bytes_ / 2) {
    paused_ = false;
    post([](VisitStream& self) {
      for (auto& session : self.sessions_) session->resume();
    });
  }
  return true;
}

bool VisitStream::is_empty() const {
  const std::lock_guard lock(mutex_);
  return items_.empty() && !result_.has_value();
}

Status VisitStream::result() const {
  const std::lock_guard lock(mutex_);
  return result_.value_or(Status::ok());
}

void VisitStream::stop(Status why) {
  const std::lock_guard lock(mutex_);
  if (!result_ || !items_.empty()) result_ = std::move(why);  // A visit that ended with no item left keeps its result.
  items_.clear();
  bytes_ = 0;
  wake();
  end_sessions();
}

visitors::VisitProgress VisitStream::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

}  // namespace fjord
