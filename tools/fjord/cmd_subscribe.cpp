#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <unistd.h>

#include "commands.h"
#include "fjord/client/connect.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/library/detail/document_lines.h"
#include "fjord/library/detail/document_query.h"
#include "fjord/library/detail/small_file.h"
#include "fjord/visitors/change_feed.h"
#include "json_text.h"

namespace fjord::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A subscription that a command waits for.
/// Threading: run() on the command's thread, all other members on the connection's executor.
class Subscription {
 public:
  Subscription(Connection& connection, const SubscribeArgs& args, const DocumentQuery& query)
      : connection_(connection), args_(args), lines_(connection.client().snapshot()->types(), query.names, true) {
    options_.selection = query.selection;
    options_.field_set = query.field_set;
    options_.from_now = args.from == "now";
    options_.poll_interval = Duration(static_cast<std::int64_t>(args.interval_s * 1e6));
  }

  Status load_token() {
    if (args_.token.empty() || ::access(args_.token.c_str(), F_OK) != 0) return Status::ok();
    FJORD_TRY_ASSIGN(const std::string text, read_small_file(args_.token));
    auto token = visitors::ChangeToken::parse(text);
    if (!token) return token.error().with_context(args_.token);
    options_.resume = std::move(*token);
    return Status::ok();
  }

  int run() {
    const auto updated = snapshots_.update(connection_.client().snapshot()->info());
    if (!updated) return report(updated.error());
    connection_.executor().post([this] { start(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return exit_.has_value(); });
    const int exit = *exit_;
    exit_.reset();
    connection_.executor().post([this] {
      feed_.reset();
      end(kOk);
    });
    changed_.wait(lock, [&] { return exit_.has_value(); });
    return exit;
  }

 private:
  void start() {
    visitors::ChangeFeedCallbacks callbacks;
    callbacks.on_changes = [this](BucketId, const std::string& block, bool) {
      if (Status status = take(block); !status) fail(status);
    };
    callbacks.on_caught_up = [this] {
      if (Status status = save(true); !status) return fail(status);
      if (args_.once) stop(kOk);
    };
    callbacks.on_resync = [this](Timestamp horizon) {
      print_line(JsonText()
                     .begin_object()
                     .key("resync")
                     .boolean(true)
                     .key("horizon_us")
                     .number(horizon.us)
                     .end_object()
                     .str());
      complain("RESYNC: removes that were not given yet are forgotten; make the copy anew, without the token file");
      end(kRefused);
    };
    callbacks.on_end = [this](const Status& status) { end(report(status)); };
    feed_ = std::make_unique<visitors::ChangeFeed>(options_, std::move(callbacks), connection_.transport(), snapshots_,
                                                   connection_.runtime().clock, Random::from_system(),
                                                   connection_.executor());
    feed_->start();
  }

  Status take(const std::string& block) {
    text_.clear();
    auto count = lines_.append(block, text_);
    if (!count && count.error().code() == StatusCode::UnknownType) {
      // The schema is newer than the one in lines_; the feed has fetched it by now.
      lines_ = DocumentLines(snapshots_.get()->types(), {}, true);
      text_.clear();
      count = lines_.append(block, text_);
    }
    if (!count) return count.error();
    print(text_);
    // Detects a closed standard output before the token counts these documents as given.
    if (std::fflush(stdout) != 0) return {StatusCode::IoError, "standard output cannot be written"};
    return save(false);
  }

  /// Saves the position after the printed changes. It does not include the current block.
  Status save(bool at_once) {
    const auto now = SteadyClock::now();
    const bool is_wanted = args_.print_tokens || !args_.token.empty();
    if (!is_wanted || (!at_once && now < next_save_)) return Status::ok();
    next_save_ = now + std::chrono::seconds(1);
    std::string text = feed_->token().to_text();
    if (text == saved_) return Status::ok();
    if (args_.print_tokens) print_line(JsonText().begin_object().key("token").text(text).end_object().str());
    if (!args_.token.empty()) FJORD_TRY(replace_file(args_.token, text + '\n'));
    saved_ = std::move(text);
    return Status::ok();
  }

  void fail(const Status& status) { stop(report(status)); }
  void stop(int exit) {
    feed_->cancel();
    end(exit);
  }
  void end(int exit) {
    const std::lock_guard lock(mutex_);
    exit_ = exit;
    changed_.notify_one();
  }

  Connection& connection_;
  const SubscribeArgs& args_;
  DocumentLines lines_;
  visitors::ChangeFeedOptions options_;
  rpc::SnapshotHolder snapshots_;
  std::unique_ptr<visitors::ChangeFeed> feed_;
  std::string text_;
  std::string saved_;
  SteadyClock::time_point next_save_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<int> exit_ FJORD_GUARDED_BY(mutex_);
};

}  // namespace

int run_subscribe(const SubscribeArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  if (Status status = (*connection)->sync().refresh_schemas(); !status) return report(status);
  const auto query =
      DocumentQuery::make(args.type, args.selection, args.fields, *(*connection)->client().snapshot()->types());
  if (!query) return report(query.error());
  Subscription subscription(**connection, args, *query);
  if (Status status = subscription.load_token(); !status) return report(status);
  return subscription.run();
}

}  // namespace fjord::cli
