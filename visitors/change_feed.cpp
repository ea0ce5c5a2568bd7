#include "fjord/visitors/change_feed.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fjord/common/callback_guard.h"
#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/retry.h"
#include "fjord/document/docblock.h"
#include "fjord/rpc/cluster_news.h"

namespace fjord::visitors {
namespace {

std::uint64_t entries_in(const std::string& docblock) {
  std::uint64_t count = 0;
  DocBlockReader reader(docblock);
  while (reader.next()) ++count;
  return count;
}

}  // namespace

std::uint64_t ChangeFeedOptions::fingerprint() const {
  std::string text;
  for (const std::string& part : {selection, field_set}) {
    put_varint(text, part.size());
    text += part;
  }
  return hash64(text);
}

/// Works in rounds: asks all distributors for their buckets, then storage nodes for the changes of buckets that have
/// any.
class ChangeFeed::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(ChangeFeedOptions options, ChangeFeedCallbacks callbacks, rpc::Transport& transport,
       rpc::SnapshotHolder& snapshot, Clock& clock, Random random, Executor& executor)
      : options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        transport_(transport),
        snapshot_(snapshot),
        clock_(clock),
        random_(random),
        executor_(executor),
        cursor_(options_.resume.value_or(ChangeCursor(options_.fingerprint()))) {}

  void start();
  void cancel() { ended_ = true; }
  bool is_over() const { return ended_; }
  void pause() { paused_ = true; }
  void resume();
  const ChangeCursor& cursor() const { return cursor_; }
  const ChangeFeedProgress& progress() const { return progress_; }
  const Status& last_problem() const { return last_problem_; }

 private:
  using Wanted = std::vector<rpc::ChangesWanted>;

  void begin_round();
  void on_listed(Result<rpc::GetBucketNodesReply> reply);
  void add(const rpc::BucketNode& found);
  void read(std::uint16_t node, Wanted wanted);
  void on_read(std::uint16_t node, Wanted wanted, Result<rpc::ReadChangesReply> reply);
  /// True if the feed begins now in this bucket: it asks only for the checksum of the entries that exist, not for them.
  bool is_first_look(const rpc::ChangesWanted& wanted) const {
    return options_.from_now && !cursor_.knows(wanted.bucket);
  }
  /// Takes the changes of one bucket. Returns false if they have ended the feed.
  bool take(const rpc::ChangesWanted& wanted, rpc::BucketChanges& found);
  void one_done();
  void round_later(Duration delay);
  void refresh_info();
  void note(const Status& problem) {
    last_problem_ = problem;
    troubled_ = true;
  }
  void end(Status status);

  ChangeFeedOptions options_;
  ChangeFeedCallbacks callbacks_;
  rpc::Transport& transport_;
  rpc::SnapshotHolder& snapshot_;
  Clock& clock_;
  Random random_;
  Executor& executor_;

  ChangeCursor cursor_;
  ChangeFeedProgress progress_;
  Status last_problem_;
  bool ended_ = false;
  bool paused_ = false;
  bool waiting_to_resume_ = false;
  bool first_round_ = true;  ///< No round has read every bucket.
  bool troubled_ = false;    ///< A call or bucket of this round failed.
  bool more_ = false;        ///< A bucket of this round was not read to its end.
  bool has_noted_ = false;   ///< The cursor has recorded buckets that it did not have before.
  std::size_t open_ = 0;     ///< Calls of this round in flight.
  std::uint64_t buckets_ = 0;
  std::uint64_t waiting_ = 0;
  std::map<std::uint16_t, Wanted> by_node_;
};

void ChangeFeed::Impl::start() {
  if (options_.resume && options_.resume->question() != options_.fingerprint()) {
    executor_.post(while_alive(weak_from_this(), [](Impl& self) {
      self.end(
          Status(StatusCode::InvalidArgument, "the cursor is of a subscription with another selection or field set"));
    }));
    return;
  }
  begin_round();
}

void ChangeFeed::Impl::begin_round() {
  if (paused_) {
    waiting_to_resume_ = true;
    return;
  }
  buckets_ = waiting_ = 0;
  troubled_ = more_ = false;
  const auto snapshot = snapshot_.get();
  if (snapshot == nullptr) {
    refresh_info();
    return;
  }
  std::vector<rpc::Address> up;
  for (std::size_t i = 0; i < snapshot->info().distributor_addresses.size(); ++i) {
    if (snapshot->state().is_up({NodeType::Distributor, static_cast<std::uint16_t>(i)})) {
      up.push_back(snapshot->info().distributor_addresses[i]);
    }
  }
  if (up.empty()) {
    refresh_info();
    return;
  }
  open_ = up.size();
  rpc::GetBucketNodes request;
  request.state_version = snapshot->state_version();
  request.for_changes = true;
  for (const rpc::Address& address : up) {
    rpc::call(transport_, address, request, options_.call_timeout, executor_,
              while_alive(weak_from_this(), [](Impl& self, Result<rpc::GetBucketNodesReply> reply) {
                self.on_listed(std::move(reply));
              }));
  }
}

void ChangeFeed::Impl::on_listed(Result<rpc::GetBucketNodesReply> reply) {
  if (reply && (reply->newer_info.state_version != 0 || reply->newer_info.schema_version != 0)) {
    if (const auto updated = snapshot_.update(reply->newer_info); !updated) note(updated.error());
  }
  if (!reply || !reply->status) {
    note(reply ? reply->status : reply.error());
  } else {
    for (const rpc::BucketNode& found : reply->buckets) add(found);
  }
  if (ended_) return;
  if (std::exchange(has_noted_, false) && callbacks_.on_listed) callbacks_.on_listed();
  if (ended_ || --open_ != 0) return;
  progress_.buckets = buckets_;
  progress_.waiting = waiting_;
  if (by_node_.empty()) {
    open_ = 1;
    one_done();
    return;
  }
  open_ = by_node_.size();
  for (auto& [node, wanted] : std::exchange(by_node_, {})) read(node, std::move(wanted));
}

void ChangeFeed::Impl::add(const rpc::BucketNode& found) {
  ++buckets_;
  if (!found.status) {
    ++waiting_;
    note(found.status);
    return;
  }
  if (found.epoch == 0) return end(Status(StatusCode::NotImplemented, "a distributor is of a version without changes"));
  rpc::ChangesWanted wanted{.bucket = found.bucket, .epoch = found.epoch, .until_us = found.stable_us};
  ChangePosition position = cursor_.at(found.bucket);
  const bool is_new = !cursor_.knows_part_of(found.bucket);
  if (is_new && first_round_ && options_.from_now && !options_.resume) {
    position.after_us = found.stable_us;  // An empty range of changes: the answer has only the checksum.
  } else if (is_new && !options_.resume) {
    // The cursor must say since when this bucket has been read, because it may be stored now and resumed later.
    position.until_us = found.stable_us;
    cursor_.set(found.bucket, position);
    has_noted_ = true;
  } else if (cursor_.knows(found.bucket) && position.epoch == found.epoch && found.stable_us == position.until_us) {
    return;  // The bucket has no new changes.
  }
  wanted.after_us = position.after_us;
  wanted.seen_epoch = position.epoch;
  wanted.seen_checksum = position.checksum;
  wanted.seen_horizon_us = position.horizon_us;
  if (wanted.after_us != 0 && is_new) wanted.seen_epoch = found.epoch;
  by_node_[found.node].push_back(wanted);
}

void ChangeFeed::Impl::read(std::uint16_t node, Wanted wanted) {
  const auto snapshot = snapshot_.get();
  const auto& addresses = snapshot->info().storage_addresses;
  if (node >= addresses.size()) {
    const std::string name = "storage." + std::to_string(node);
    note(Status(StatusCode::NotReady, name + " is not known here", {.node = name}));
    return one_done();
  }
  rpc::ReadChanges request;
  const std::size_t count = std::min<std::size_t>(options_.buckets_per_call, wanted.size());
  request.buckets.assign(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(count));
  request.selection = options_.selection;
  request.field_set = options_.field_set;
  request.max_bytes = options_.block_bytes;
  request.schema_version = snapshot->schema_version();
  rpc::call(transport_, addresses[node], std::move(request), options_.call_timeout, executor_,
            while_alive(weak_from_this(),
                        [node, asked = std::move(wanted)](Impl& self, Result<rpc::ReadChangesReply> reply) mutable {
                          self.on_read(node, std::move(asked), std::move(reply));
                        }));
}

void ChangeFeed::Impl::on_read(std::uint16_t node, Wanted wanted, Result<rpc::ReadChangesReply> reply) {
  if (!reply || !reply->status) {
    const Status problem =
        (reply ? reply->status : reply.error()).with_details({.node = "storage." + std::to_string(node)});
    if (reply && is_permanent_for_read(problem.code())) return end(problem);
    note(problem);
    return one_done();
  }
  Wanted left;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= reply->buckets.size()) {
      left.push_back(wanted[i]);
      continue;
    }
    rpc::BucketChanges& found = reply->buckets[i];
    if (found.bucket != wanted[i].bucket) return end(Status(StatusCode::Corruption, "changes of another bucket"));
    if (!take(wanted[i], found)) return;
    if (found.status && found.more) {
      const ChangePosition now = cursor_.at(found.bucket);
      wanted[i].after_us = now.after_us;
      wanted[i].seen_epoch = now.epoch;
      wanted[i].seen_checksum = now.checksum;
      wanted[i].seen_horizon_us = now.horizon_us;
      left.push_back(wanted[i]);
    }
  }
  if (left.empty() || paused_ || reply->buckets.empty()) {
    more_ = more_ || !left.empty();
    one_done();
  } else {
    read(node, std::move(left));
  }
}

bool ChangeFeed::Impl::take(const rpc::ChangesWanted& wanted, rpc::BucketChanges& found) {
  if (!found.status) {
    note(found.status);
    return true;
  }
  // Two distributors may have named the bucket for a moment. The second result is then for an old position: drop it.
  if (!is_first_look(wanted) && cursor_.at(found.bucket).after_us != wanted.after_us) return true;
  const ChangePosition before = cursor_.at(found.bucket);
  // If the horizon has risen past the subscriber's position, removes that it has not seen were dropped. This includes
  // buckets that the cursor does not know: after a resume the subscriber may hold documents of them.
  const bool is_rise = !is_first_look(wanted) && found.horizon_us > before.horizon_us;
  if (found.resync || (is_rise && found.horizon_us > before.until_us + 1)) {
    ended_ = true;
    if (callbacks_.on_resync) callbacks_.on_resync(Timestamp{found.horizon_us});
    return false;
  }
  if (found.again) ++progress_.begun_again;
  if (!found.docblock.empty()) {
    progress_.changes += entries_in(found.docblock);
    if (callbacks_.on_changes) callbacks_.on_changes(found.bucket, std::move(found.docblock), found.again);
    if (ended_) return false;
  }
  const std::uint64_t until = found.more ? found.after_us : std::max(wanted.until_us, found.after_us);
  cursor_.set(found.bucket, {found.after_us, wanted.epoch, found.checksum, until, found.horizon_us});
  return true;
}

void ChangeFeed::Impl::one_done() {
  if (--open_ != 0) return;
  if (troubled_) refresh_info();
  if (!more_ && !troubled_) {
    first_round_ = false;
    if (callbacks_.on_caught_up) callbacks_.on_caught_up();
    if (ended_) return;
  }
  if (!troubled_) round_later(more_ ? Duration(0) : options_.poll_interval);
}

void ChangeFeed::Impl::round_later(Duration delay) {
  executor_.post_after(delay, while_alive(weak_from_this(), [](Impl& self) { self.begin_round(); }));
}

void ChangeFeed::Impl::resume() {
  paused_ = false;
  if (std::exchange(waiting_to_resume_, false)) round_later(Duration(0));
}

/// Fetches the cluster information, then starts the next round.
void ChangeFeed::Impl::refresh_info() {
  const rpc::Address address = rpc::any_distributor(snapshot_.get().get(), options_.bootstrap, random_);
  if (address.empty()) return end(Status(StatusCode::InvalidArgument, "no distributor is known"));
  rpc::call(transport_, address, rpc::question_for_news(snapshot_), options_.call_timeout, executor_,
            while_alive(weak_from_this(), [](Impl& self, Result<rpc::GetClusterInfoReply> reply) {
              if (const auto changed = rpc::take_news(self.snapshot_, reply); !changed) self.note(changed.error());
              self.round_later(self.options_.retry);
            }));
}

void ChangeFeed::Impl::end(Status status) {
  if (std::exchange(ended_, true)) return;
  const auto on_end = std::move(callbacks_.on_end);
  if (on_end) on_end(std::move(status));
}

ChangeFeed::ChangeFeed(ChangeFeedOptions options, ChangeFeedCallbacks callbacks, rpc::Transport& transport,
                       rpc::SnapshotHolder& snapshot, Clock& clock, Random random, Executor& executor)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(callbacks), transport, snapshot, clock, random,
                                   executor)) {}

ChangeFeed::~ChangeFeed() { impl_->cancel(); }

void ChangeFeed::start() { impl_->start(); }
void ChangeFeed::cancel() { impl_->cancel(); }
void ChangeFeed::pause() { impl_->pause(); }
void ChangeFeed::resume() { impl_->resume(); }
const ChangeCursor& ChangeFeed::cursor() const { return impl_->cursor(); }
const ChangeFeedProgress& ChangeFeed::progress() const { return impl_->progress(); }
const Status& ChangeFeed::last_problem() const { return impl_->last_problem(); }

}  // namespace fjord::visitors
