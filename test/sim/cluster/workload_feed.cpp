#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <rapidjson/document.h>
#include <set>

#include "fjord/document/docblock.h"
#include "fjord/document/document.h"
#include "fjord/document/document_format.h"
#include "fjord/document/json.h"
#include "fjord/visitors/change_feed.h"
#include "fjord/visitors/visitor_session.h"
#include "operations_workload.h"
#include "workload.h"

namespace fjord::sim {
namespace {

/// A visit in slices. Each slice is interrupted now and then and resumed from the text of its cursor. Like an export,
/// it keeps the documents of a bucket only when the bucket is done; each document then has to occur exactly once.
class SliceWorkload final : public Workload {
 public:
  SliceWorkload(WorkloadContext context, Bug bug) : context_(std::move(context)), bug_(bug) {}

  std::string name() const override { return "slices"; }

  bool prepare() override {
    const auto documents = static_cast<unsigned>(20 + context_.random().below(60));
    std::vector<rpc::Operation> puts;
    std::vector<rpc::Operation> removes;
    for (unsigned i = 0; i < documents; ++i) {
      const std::string place = context_.random().chance(0.3) ? fmt::format("n={}", i) : "";
      const std::string id = fmt::format("id:sim:trade:{}:e{}", place, i);
      puts.push_back(put_json_operation(id, R"({"city": "exported", "price": 1})"));
      if (i % 5 == 4) {
        removes.push_back(remove_operation(id));
      } else {
        stay_.insert(id);
      }
    }
    return feed_operations(context_, puts) && feed_operations(context_, removes);
  }

  void start() override { begin(); }
  void stop() override { stopped_ = true; }
  bool is_idle() const override { return session_ == nullptr; }

  std::string check() override {
    if (!failure_.empty()) return failure_;
    ++generation_;
    stopped_ = false;
    last_ = true;
    if (slice_ == slices_) {
      begin();
    } else {
      visit();  // Brings the current visit to its end.
    }
    if (!context_.cluster.run_until([&] { return ended_; }, seconds(120))) return "I16: a visit in slices never ended";
    return failure_;
  }

  std::string summary() const override {
    return fmt::format("slices: {} visits of all, {} interruptions", visits_, interruptions_);
  }

 private:
  void begin() {
    if (stopped_) return;
    ++visits_;
    ended_ = false;
    slice_ = 0;
    slices_ = 1 + context_.random().below(5);
    cursor_.clear();
    seen_.clear();
    visit();
  }

  visitors::PositionRange slice() const {
    visitors::PositionRange range = visitors::PositionRange::slice(slice_, slices_);
    if (bug_ == Bug::SliceHole) range.last -= (range.last - range.first) / 20;
    return range;
  }

  void visit() {
    if (stopped_) return;
    visitors::VisitorSessionOptions options;
    options.selection = "trade.city == \"exported\"";
    options.field_set = "[id]";
    options.docblock_bytes = 300;
    options.visitors_per_node = 1 + static_cast<std::uint32_t>(context_.random().below(3));
    options.buckets_per_visitor = static_cast<std::uint32_t>(context_.random().below(3));
    options.buckets_at_once = 1 + static_cast<std::uint32_t>(context_.random().below(3));
    options.bootstrap = context_.clients.front()->options().addresses;
    options.call_timeout = seconds(1);
    options.follow_bits = true;
    options.slice = slice();
    if (!cursor_.empty()) options.resume = resumed();
    visitors::VisitorSessionCallbacks callbacks;
    callbacks.on_docblock = [this](BucketId bucket, const std::string& block) { spool(bucket, block); };
    callbacks.on_bucket_done = [this](BucketId bucket, const std::string&) {
      for (const std::string& id : spools_[bucket]) {
        if (++seen_[id] > 1) fail("I8: a visit in slices gave {} twice", id);
      }
      spools_.erase(bucket);
      cursor_ = session_->cursor().to_text();
    };
    callbacks.on_bucket_dropped = [this](BucketId bucket) { spools_.erase(bucket); };
    callbacks.on_finished = [this](const Status& status) { finish(status); };
    AsyncClient& client = *context_.clients.front();
    client.executor().post([this, options, callbacks, &client]() mutable {
      session_ = std::make_unique<visitors::VisitorSession>(
          std::move(options), std::move(callbacks), client.transport(), snapshots_,
          context_.cluster.scheduler().clock(), context_.random().fork(), client.executor());
      session_->start();
      if (context_.random().chance(last_ ? 0.2 : 0.6)) interrupt_later();
    });
  }

  visitors::SessionCursor resumed() {
    Result<visitors::SessionCursor> cursor = visitors::SessionCursor::parse(cursor_);
    FJORD_CHECK_MSG(cursor.has_value(), cursor.status().to_string());
    if (bug_ == Bug::TokenSkipsBucket) {
      const BucketId any(6, context_.random().next());
      cursor->done.add(visitors::PositionRange::of(any));
    }
    return *cursor;
  }

  /// Ends the client process; another process resumes the visit.
  void interrupt_later() {
    const Duration pause(context_.random().below(400'000));
    context_.cluster.scheduler().outside().post_after(pause, [this, number = ++number_] {
      context_.clients.front()->executor().post([this, number] {
        if (number != number_ || session_ == nullptr || stopped_) return;
        ++interruptions_;
        session_.reset();
        spools_.clear();
        visit_later();
      });
    });
  }

  void visit_later() {
    context_.later([this, generation = generation_] {
      if (generation == generation_) visit();
    });
  }

  void spool(BucketId bucket, const std::string& block) {
    DocBlockReader reader(block);
    while (const auto entry = reader.next()) {
      const std::string id(document_id_of_header(entry->header));
      if (!stay_.contains(id)) fail("I8: a visit in slices gave '{}', which is not there", id);
      spools_[bucket].push_back(id);
    }
  }

  void finish(const Status& status) {
    ++number_;
    session_.reset();
    spools_.clear();
    context_.exposure.note(8);
    if (!status && last_) fail("I16: a slice failed when all faults were over: {}", status.to_string());
    if (status) {
      cursor_.clear();
      ++slice_;
    }
    if (status && slice_ == slices_) {
      for (const std::string& id : stay_) {
        if (!seen_.contains(id)) fail("I8: {} slices together did not give {}", slices_, id);
      }
      ended_ = true;
      if (last_) return;
      context_.later([this, generation = generation_] {
        if (generation == generation_) begin();
      });
    } else if (failure_.empty() || !last_) {
      visit_later();
    } else {
      ended_ = true;
    }
  }

  template <typename... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (failure_.empty()) failure_ = fmt::format(format, std::forward<Args>(args)...);
  }

  WorkloadContext context_;
  const Bug bug_;
  rpc::SnapshotHolder snapshots_;
  std::unique_ptr<visitors::VisitorSession> session_;
  std::set<std::string> stay_;
  std::map<std::string, int> seen_;
  std::map<BucketId, std::vector<std::string>> spools_;
  std::uint64_t slice_ = 0;
  std::uint64_t slices_ = 0;
  std::uint64_t number_ = 0;
  unsigned generation_ = 0;
  std::string cursor_;
  std::string failure_;
  unsigned visits_ = 0;
  unsigned interruptions_ = 0;
  bool last_ = false;
  bool ended_ = false;
  bool stopped_ = false;
};

/// Writes, and a subscriber that keeps a copy of the matching documents. The subscriber is restarted from older
/// cursors. In the end the copy has to equal the stored documents, and no document may ever go back to an older
/// version.
class SubscribeWorkload final : public Workload {
 public:
  explicit SubscribeWorkload(WorkloadContext context) : context_(std::move(context)) {}

  std::string name() const override { return "subscribe"; }

  bool prepare() override {
    keys_ = static_cast<unsigned>(20 + context_.random().below(150));
    std::vector<rpc::Operation> puts;
    for (unsigned i = 0; i < keys_; i += 2) puts.push_back(next_write(i, true));
    return feed_operations(context_, puts);
  }

  void start() override {
    subscribe();
    look_later();
    for (unsigned lane = 0; lane < kLanes; ++lane) write(lane);
  }
  void stop() override { stopped_ = true; }
  bool is_idle() const override { return writing_ == 0; }

  std::string check() override {
    if (!failure_.empty()) return failure_;
    std::map<std::string, Version> stored;
    std::size_t left = keys_;
    for (unsigned i = 0; i < keys_; ++i) {
      context_.clients.back()->get_json(id_of(i), seconds(30), [&, i](const OperationOutcome& got) {
        --left;
        if (got.is_ok() && got.json.find("subscribed") != std::string::npos) {
          stored[id_of(i)] = {got.timestamp_us, price_of(got.json)};
        } else if (!got.is_ok() && got.status.code() != StatusCode::NotFound) {
          fail("I16: {} cannot be read when all faults are over: {}", id_of(i), got.status.to_string());
        }
      });
    }
    if (!context_.cluster.run_until([&] { return left == 0; }, seconds(60))) return "I16: a get never ended";
    const int until = rounds_ + 2;
    if (!context_.cluster.run_until([&] { return rounds_ >= until || !failure_.empty(); }, seconds(60))) {
      return "I16: a subscriber never caught up: " + problem_;
    }
    // Waits for the last changes: the subscriber gets none of them while a client may retry an earlier write in doubt.
    std::string wrong;
    int looked = 0;
    const auto is_right = [&] {
      if (!failure_.empty()) return true;
      if (std::exchange(looked, rounds_) == rounds_) return false;
      wrong = compare(stored);
      return wrong.empty();
    };
    const bool ended = context_.cluster.run_until(is_right, seconds(30));
    if (!failure_.empty()) return failure_;
    if (!ended) return wrong;
    context_.exposure.note(8);
    end_feed();
    return {};
  }

  std::string summary() const override {
    return fmt::format("subscribe: {} writes, {} changes told, {} restarts, {} buckets begun anew, {} times RESYNC",
                       writes_, told_, restarts_, begun_again_, resyncs_);
  }

 private:
  static constexpr unsigned kLanes = 12;
  struct Version {
    std::uint64_t timestamp_us = 0;
    std::int64_t price = 0;
  };

  /// Returns an empty string if the copy equals the stored documents.
  std::string compare(const std::map<std::string, Version>& stored) const {
    for (const auto& [id, version] : stored) {
      const auto mine = copy_.find(id);
      if (mine == copy_.end()) return fmt::format("I8: the subscriber was not told of {} {}", id, version.timestamp_us);
      if (mine->second.timestamp_us != version.timestamp_us || mine->second.price != version.price) {
        return fmt::format("I8: the subscriber has version {} of {} instead of {}", mine->second.timestamp_us, id,
                           version.timestamp_us);
      }
    }
    for (const auto& [id, version] : copy_) {
      if (!stored.contains(id)) return fmt::format("I8: the subscriber was not told that {} is gone", id);
    }
    return {};
  }

  std::string id_of(unsigned key) const { return fmt::format("id:sim:trade::s{}", key); }

  static std::int64_t price_of(const std::string& json) {
    rapidjson::Document document;
    document.Parse(json.c_str());
    FJORD_CHECK(!document.HasParseError());
    return document["fields"]["price"].GetInt64();
  }

  rpc::Operation next_write(unsigned key, bool must_match) {
    ++writes_;
    Random& random = context_.random();
    if (!must_match && random.chance(0.25)) return remove_operation(id_of(key));
    const char* const city = must_match || random.chance(0.8) ? "subscribed" : "elsewhere";
    return put_json_operation(id_of(key), fmt::format(R"({{"city": "{}", "price": {}}})", city, writes_));
  }

  void write(unsigned lane) {
    if (stopped_) return;
    ++writing_;
    AsyncClient& client = *context_.clients[lane % context_.clients.size()];
    const auto key = static_cast<unsigned>(context_.random().below(keys_));
    client.execute(next_write(key, false), seconds(4), [this, lane](const OperationOutcome&) {
      --writing_;
      context_.later([this, lane] { write(lane); });
    });
  }

  void subscribe() {
    AsyncClient& client = *context_.clients.front();
    client.executor().post([this, &client] {
      visitors::ChangeFeedOptions options;
      options.selection = "trade and trade.city == \"subscribed\"";
      options.bootstrap = client.options().addresses;
      options.poll_interval = milliseconds(20);
      options.block_bytes = 400;
      options.buckets_per_call = 1 + static_cast<std::uint32_t>(context_.random().below(5));
      options.call_timeout = seconds(1);
      if (!cursor_.empty()) {
        Result<visitors::ChangeCursor> cursor = visitors::ChangeCursor::parse(cursor_);
        FJORD_CHECK_MSG(cursor.has_value(), cursor.status().to_string());
        options.resume = std::move(*cursor);
      } else {
        copy_.clear();  // A subscription without a cursor begins a new copy: it does not report dropped removes.
      }
      visitors::ChangeFeedCallbacks callbacks;
      callbacks.on_changes = [this](BucketId, const std::string& block, bool) { take(block); };
      callbacks.on_caught_up = [this] { ++rounds_; };
      callbacks.on_resync = [this](Timestamp) { on_resync(); };
      callbacks.on_end = [this](const Status& status) { fail("I16: the subscription ended: {}", status.to_string()); };
      feed_ = std::make_unique<visitors::ChangeFeed>(std::move(options), std::move(callbacks), client.transport(),
                                                     snapshots_, context_.cluster.scheduler().clock(),
                                                     context_.random().fork(), client.executor());
      feed_->start();
    });
  }

  /// Drops the copy and subscribes from the start.
  void on_resync() {
    if (!context_.forgets) return fail("I8: RESYNC although no remove was ever forgotten");
    ++resyncs_;
    cursor_.clear();
    context_.clients.front()->executor().post([this] {
      cursor_.clear();               // Cleared again: a cursor may have been saved since.
      if (feed_ == nullptr) return;  // A restart is already in progress.
      end_feed();
      subscribe();
    });
  }

  void take(const std::string& block) {
    DocBlockReader reader(block);
    while (const auto entry = reader.next()) {
      ++told_;
      const bool removed = entry->removed;
      const std::string id(removed ? entry->id : document_id_of_header(entry->header));
      std::uint64_t& newest = newest_[id];
      if (entry->timestamp.us < newest) fail("I8: after version {} of {}, version {}", newest, id, entry->timestamp.us);
      newest = std::max(newest, entry->timestamp.us);
      if (removed) {
        copy_.erase(id);
        continue;
      }
      const Result<DocumentView> view = DocumentView::open(*snapshots_.get()->types(), entry->header, entry->body);
      if (!view) return fail("I8: a change is malformed: {}", view.status().to_string());
      const Result<std::string> json = to_json_document(*view);
      if (!json) return fail("I8: a change is malformed: {}", json.status().to_string());
      copy_[id] = {entry->timestamp.us, price_of(*json)};
    }
    if (!reader.ok()) fail("I8: a block of changes is malformed");
  }

  /// Now and then saves the cursor, and later restarts the subscriber from the saved cursor.
  void look_later() {
    const Duration pause(200'000 + context_.random().below(1'500'000));
    context_.cluster.scheduler().outside().post_after(pause, [this] {
      context_.clients.front()->executor().post([this] {
        if (feed_ == nullptr && stopped_) return;
        look_later();
        if (feed_ == nullptr) return;
        problem_ = feed_->last_problem().to_string();
        if (stopped_) return;
        if (context_.random().chance(0.5)) {
          cursor_ = feed_->cursor().to_text();
          return;
        }
        ++restarts_;
        end_feed();
        context_.later([this] { subscribe(); });
      });
    });
  }

  void end_feed() {
    begun_again_ += feed_->progress().begun_again;
    feed_.reset();
  }

  template <typename... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    if (failure_.empty()) failure_ = fmt::format(format, std::forward<Args>(args)...);
  }

  WorkloadContext context_;
  rpc::SnapshotHolder snapshots_;
  std::unique_ptr<visitors::ChangeFeed> feed_;
  std::map<std::string, Version> copy_;
  std::map<std::string, std::uint64_t> newest_;
  std::string cursor_;
  std::string failure_;
  std::string problem_;
  unsigned keys_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t told_ = 0;
  std::uint64_t begun_again_ = 0;
  unsigned restarts_ = 0;
  unsigned resyncs_ = 0;
  unsigned writing_ = 0;
  int rounds_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::string feed_schema() {
  return "document trade { field city type string { header } field price type long { header } }";
}

bool feed_operations(const WorkloadContext& context, const std::vector<rpc::Operation>& operations) {
  std::size_t left = operations.size();
  bool ok = true;
  for (const rpc::Operation& operation : operations) {
    context.clients.front()->execute(operation, seconds(60), [&](const OperationOutcome& outcome) {
      ok = ok && outcome.is_ok();
      --left;
    });
  }
  return context.cluster.run_until([&] { return left == 0; }, seconds(90)) && ok;
}

std::unique_ptr<Workload> make_slice_workload(WorkloadContext context, Bug bug) {
  return std::make_unique<SliceWorkload>(std::move(context), bug);
}

std::unique_ptr<Workload> make_subscribe_workload(WorkloadContext context) {
  return std::make_unique<SubscribeWorkload>(std::move(context));
}

}  // namespace fjord::sim
