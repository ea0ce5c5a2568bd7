#include "fjord/library/subscription.h"

#include <condition_variable>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mutex>
#include <utility>

#include "decode_entry.h"
#include "fjord/common/callback_guard.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/document/docblock.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/library/detail/document_query.h"
#include "fjord/visitors/change_feed.h"
#include "projection.h"
#include "ready_wait.h"

namespace fjord {

namespace {

/// One item of a change feed: changes of one bucket, or an event.
struct FeedItem {
  Change::Kind kind = Change::Kind::Put;
  std::string docblock = {};
  BucketId bucket = {};
  visitors::ChangePosition position = {};  ///< Position in the bucket after the docblock.
  std::optional<visitors::ChangeCursor> cursor =
      {};               ///< Cursor of the whole feed; set if it caught up or listed buckets.
  bool is_told = true;  ///< False: the item only updates the cursor; the caller gets no change.
  Timestamp horizon{0};
};

}  // namespace

class Subscription::Impl {
 public:
  Impl(ClientCore& core, const SubscribeOptions& options)
      : core_(core), buffer_bytes_(options.buffer_bytes), decodes_(options.decode), status_(open(options)) {}

  /// The destructor resumes a waiting coroutine, which may use the subscription until it waits again.
  ~Impl() {
    if (!core_.settings_error()) return;
    core_.run([this] {
      if (!has_ended()) status_ = Status(StatusCode::Cancelled, "the subscription was destroyed");
      guard_.end();
      feed_.reset();
      wait_.end(mutex_, Status(StatusCode::Cancelled, "the subscription was destroyed"));
    });
  }

  /// Waits for at most `timeout`; without a limit if it is absent.
  const Change* next(std::optional<Duration> timeout) {
    while (status_.is_ok() && !is_over_) {
      if (const std::optional<EntryView> entry = reader_.next()) {
        if (give(*entry)) return &change_;
        continue;
      }
      if (!reader_.ok()) {
        end(Status(StatusCode::Corruption, "a block of documents is malformed"));
        continue;
      }
      if (is_in_block_) cursor_.set(item_.bucket, item_.position);
      is_in_block_ = false;
      if (!pop(timeout)) return nullptr;
      if (item_.kind == Change::Kind::Put) {
        reader_ = DocBlockReader(item_.docblock);
        is_in_block_ = true;
        continue;
      }
      if (item_.cursor) cursor_ = std::move(*item_.cursor);
      if (!item_.is_told) continue;
      change_ = Change{item_.kind, {}, nullptr, std::nullopt, item_.horizon};
      if (item_.kind == Change::Kind::Resync) is_over_ = true;
      return &change_;
    }
    return nullptr;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    if (!end_) end_ = Status(StatusCode::Cancelled, "the subscription was stopped");
    items_.clear();
    bytes_ = 0;
    wake();
    // The caller takes no further changes, so storage nodes need not read them.
    post([this] { feed_.reset(); });
  }

  Pending<Status> ready() {
    const std::lock_guard lock(mutex_);
    return wait_.begin(core_, has_ended() || reader_.remaining() != 0 || !items_.empty() || end_.has_value());
  }

  /// Not named is_over(), because while_alive() would then call it on the executor; it is for the caller's thread.
  bool has_ended() const { return is_over_ || !status_; }
  const Status& status() const { return status_; }
  const std::shared_ptr<const DocumentTypeRepo>& types() const { return types_; }
  std::string cursor() const { return cursor_.to_text(); }

 private:
  Status open(const SubscribeOptions& options) {
    FJORD_TRY(core_.refresh());
    types_ = core_.types();
    const std::string fields = fmt::format("{}", fmt::join(options.fields, ","));
    FJORD_TRY_ASSIGN(DocumentQuery query, DocumentQuery::make(options.type, options.selection, fields, *types_));
    projection_ = Projection(std::move(query.names));
    visitors::ChangeFeedOptions feed;
    feed.selection = query.selection;
    feed.field_set = query.field_set;
    feed.from_now = options.from_now;
    feed.poll_interval = options.poll_interval;
    if (!options.resume.empty()) {
      auto cursor = visitors::ChangeCursor::parse(options.resume);
      if (!cursor) return cursor.error().with_context("resume");
      feed.resume = std::move(*cursor);
    }
    cursor_ = feed.resume.value_or(visitors::ChangeCursor(feed.fingerprint()));
    FJORD_TRY(core_.copy_snapshot(snapshots_));
    post([this, feed = std::move(feed)]() mutable { start(std::move(feed)); });
    return Status::ok();
  }

  void start(visitors::ChangeFeedOptions options) {
    visitors::ChangeFeedCallbacks callbacks;
    // Each callback posts a task, because the feed's cursor includes a block only after its callback has returned.
    callbacks.on_changes = [this](BucketId bucket, std::string block, bool) {
      post([this, bucket, block = std::move(block)]() mutable {
        if (feed_ != nullptr)
          push({.docblock = std::move(block), .bucket = bucket, .position = feed_->cursor().at(bucket)});
      });
    };
    callbacks.on_listed = [this] { push_cursor(false); };
    callbacks.on_caught_up = [this] { push_cursor(true); };
    callbacks.on_resync = [this](Timestamp horizon) {
      post([this, horizon] { push({.kind = Change::Kind::Resync, .horizon = horizon}); });
    };
    callbacks.on_end = [this](const Status& status) { post([this, status] { finish(status); }); };
    feed_ = std::make_unique<visitors::ChangeFeed>(std::move(options), std::move(callbacks), core_.transport(),
                                                   snapshots_, core_.clock(), core_.new_random(), core_.executor());
    feed_->start();
  }

  /// Posts a task. It does not run after the end of the subscription.
  template <typename F>
  void post(F task) {
    core_.executor().post(while_alive(guard_.of(*this), [task = std::move(task)](Impl&) mutable { task(); }));
  }

  /// Queues the feed's cursor after all blocks that the cursor includes.
  void push_cursor(bool is_caught_up) {
    post([this, cursor = feed_->cursor(), is_caught_up]() mutable {
      push({.kind = Change::Kind::CaughtUp, .cursor = std::move(cursor), .is_told = is_caught_up});
    });
  }

  void push(FeedItem item) {
    const std::lock_guard lock(mutex_);
    if (end_ || feed_ == nullptr) return;
    bytes_ += item.docblock.size();
    items_.push_back(std::move(item));
    wake();
    if (bytes_ > buffer_bytes_ && !std::exchange(paused_, true)) feed_->pause();
  }

  void finish(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!end_) end_ = status;
    wake();
  }

  /// Wakes the thread or the callback that waits.
  void wake() FJORD_REQUIRES(mutex_) {
    changed_.notify_one();
    if (wait_.has_to_wake()) post([this] { wait_.end(mutex_, Status::ok()); });
  }

  /// Takes the next item. Returns false after the timeout and at the end of the feed.
  bool pop(std::optional<Duration> timeout) {
    std::unique_lock lock(mutex_);
    const auto has_news = [this] { return !items_.empty() || end_.has_value(); };
    if (!timeout) {
      core_.wait(lock, changed_, has_news);
    } else if (!changed_.wait_for(lock, *timeout, has_news)) {
      return false;
    }
    if (items_.empty()) {
      status_ = *end_;
      is_over_ = true;
      return false;
    }
    item_ = std::move(items_.front());
    items_.pop_front();
    bytes_ -= item_.docblock.size();
    if (paused_ && bytes_ <= buffer_bytes_ / 2) {
      paused_ = false;
      post([this] {
        if (feed_ != nullptr) feed_->resume();
      });
    }
    return true;
  }

  /// Turns an entry into the current change. Returns false if an error ended the subscription.
  bool give(const EntryView& entry) {
    change_ = Change{};
    change_.version = entry.timestamp;
    change_.entry = entry;
    if (entry.removed) {
      change_.kind = Change::Kind::Remove;
      change_.id = std::string(entry.id);
      return true;
    }
    if (const Status status = decodes_ ? decode(entry) : know_type(core_, types_, entry).status(); !status) {
      end(status);
      return false;
    }
    return true;
  }

  Status decode(const EntryView& entry) {
    FJORD_TRY_ASSIGN(document_, decode_entry(core_, types_, projection_, entry));
    change_.id = document_->id().str();
    change_.document = &*document_;
    return Status::ok();
  }

  void end(const Status& status) {
    status_ = status;
    stop();
  }

  ClientCore& core_;
  const std::size_t buffer_bytes_;
  const bool decodes_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  Projection projection_;
  rpc::SnapshotHolder snapshots_;
  std::unique_ptr<visitors::ChangeFeed> feed_;  ///< Used on the executor only.
  /// Used on the executor only. Ends with the feed, so that tasks behind that end do not run.
  CallbackGuard guard_;

  FeedItem item_;
  DocBlockReader reader_{std::string_view()};
  std::optional<Document> document_;
  Change change_;
  visitors::ChangeCursor cursor_;  ///< Position after the last block given completely.
  bool is_in_block_ = false;       ///< The caller is taking the changes of the block in `item_`.
  bool is_over_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<FeedItem> items_ FJORD_GUARDED_BY(mutex_);
  std::size_t bytes_ FJORD_GUARDED_BY(mutex_) = 0;
  bool paused_ FJORD_GUARDED_BY(mutex_) = false;
  std::optional<Status> end_ FJORD_GUARDED_BY(mutex_);
  ReadyWait wait_;  ///< The wait of ready(); under mutex_, except for its end.
  Status status_;   ///< Last member: its initialiser open() sets the other members.
};

Subscription::Subscription(ClientCore& core, SubscribeOptions options) : impl_(std::make_unique<Impl>(core, options)) {}
Subscription::Subscription(Subscription&&) noexcept = default;
Subscription& Subscription::operator=(Subscription&&) noexcept = default;
Subscription::~Subscription() = default;

Next<Subscription, Change> Subscription::next() { return Next<Subscription, Change>(*this); }
const Change* Subscription::wait_next() { return impl_->next(std::nullopt); }
const Change* Subscription::next_within(Duration timeout) { return impl_->next(timeout); }
const Change* Subscription::try_next() { return impl_->next(Duration(0)); }
Pending<Status> Subscription::ready() { return impl_->ready(); }
bool Subscription::is_over() const { return impl_->has_ended(); }
std::shared_ptr<const DocumentTypeRepo> Subscription::types() const { return impl_->types(); }
const Status& Subscription::status() const { return impl_->status(); }
std::string Subscription::cursor() const { return impl_->cursor(); }
void Subscription::stop() { impl_->stop(); }

}  // namespace fjord
