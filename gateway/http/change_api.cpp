// /changes/v1: subscriptions as lines.

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "entry_writer.h"
#include "fjord/library/subscription.h"
#include "http/json_shape.h"
#include "http/own_api.h"
#include "http/stop_switch.h"

namespace fjord::gateway {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kChangePieceBytes = 128 << 10;
constexpr std::size_t kBufferBytes = 2 << 20;
/// A cursor names a position in each bucket and can be long, so there is one at most this often.
constexpr Duration kCursorPause = milliseconds(500);

struct ChangeWish {
  SubscribeOptions options;
  Duration heartbeat = seconds(5);
  bool is_once = false;  ///< Ends when it has caught up.
};

Result<ChangeWish> read_wish(const ApiCall& call) {
  ChangeWish wish;
  SubscribeOptions& options = wish.options;
  FJORD_TRY_ASSIGN(wish.heartbeat, call.duration("heartbeat", wish.heartbeat));
  FJORD_TRY_ASSIGN(wish.is_once, call.query.flag("once", false));
  if (call.request.method == "POST") {
    FJORD_TRY(read_json(call.request.body, JsonShape()
                                               .text("type", options.type)
                                               .text("selection", options.selection)
                                               .texts("fields", options.fields)
                                               .text("cursor", options.resume)
                                               .flag("from_now", options.from_now)));
  } else {
    options.type = call.text("type");
    options.selection = call.text("selection");
    options.fields = call.words("fields");
    options.resume = call.text("cursor");
    FJORD_TRY_ASSIGN(options.from_now, call.query.flag("from_now", false));
  }
  options.buffer_bytes = kBufferBytes;
  options.decode = false;
  return wish;
}

/// One subscription, on a thread that may wait.
class ChangeStream {
 public:
  ChangeStream(Client& client, const ChangeWish& wish, HttpReply reply)
      : reply_(std::move(reply)),
        heartbeat_(wish.heartbeat),
        is_once_(wish.is_once),
        changes_(client.subscribe(wish.options)),
        writer_(client, changes_.status() ? changes_.types() : nullptr, wish.options.fields) {}

  /// Waits a moment for the first change, so that what is wrong with the cursor becomes a status of the answer.
  /// Errors: those of the subscription.
  Status begin() {
    FJORD_TRY(changes_.status());
    first_ = changes_.next_within(std::min(heartbeat_, kCursorPause));
    return changes_.status();
  }

  void run() {
    reply_.begin({.status = 200, .content_type = "application/jsonl; charset=UTF-8"});
    const auto stop_switch = std::make_shared<StopSwitch<Subscription>>(&changes_);
    reply_.on_stop([stop_switch] { stop_switch->stop(); });
    const Status status = give_all();
    stop_switch->forget();
    if (!reply_.is_open()) return;
    append_end(status ? changes_.status() : status);
    if (flush()) reply_.end();
  }

 private:
  /// Gives changes until the subscription is over. Errors: those of writing a document.
  Status give_all() {
    while (true) {
      const Change* change = first_ != nullptr ? std::exchange(first_, nullptr) : changes_.try_next();
      if (change == nullptr && !changes_.is_over()) {
        if (!rest()) return Status::ok();
        change = changes_.next_within(std::min(heartbeat_, kCursorPause));
        if (change == nullptr && !changes_.is_over()) continue;
      }
      if (change == nullptr) return Status::ok();
      FJORD_TRY(give(*change));
      if (is_once_ && is_caught_up_) return Status::ok();
      if (text_.size() >= kChangePieceBytes && !flush()) return Status::ok();
    }
  }

  /// Sends what there is before a wait. Returns false if the client is away.
  bool rest() {
    const auto now = SteadyClock::now();
    if (has_news_ && now >= next_cursor_) append_cursor("");
    if (now - last_line_ >= heartbeat_) append_cursor("\"heartbeat\":true,");
    return flush();
  }

  Status give(const Change& change) {
    switch (change.kind) {
      case Change::Kind::Put:
      case Change::Kind::Remove:
        FJORD_TRY(writer_.append(*change.entry, "put", text_));
        text_.append("\n");
        has_news_ = true;
        is_caught_up_ = false;
        if (SteadyClock::now() >= next_cursor_) append_cursor("");
        break;
      case Change::Kind::CaughtUp:
        // The subscription catches up again and again while nothing changes; the client is told once.
        if (!std::exchange(is_caught_up_, true)) append_cursor("\"caught_up\":true,");
        break;
      case Change::Kind::Resync:
        text_.append(fmt::format("{{\"resync\":true,\"horizon_unix_us\":{}}}\n", change.version.us));
        is_resync_ = true;
        break;
    }
    return Status::ok();
  }

  void append_cursor(const char* more) {
    text_.append(fmt::format("{{{}\"cursor\":\"{}\"}}\n", more, changes_.cursor()));
    has_news_ = false;
    next_cursor_ = SteadyClock::now() + kCursorPause;
  }

  /// After Resync there is no position to go on from.
  void append_end(const Status& status) {
    if (is_resync_ || (status && !has_news_)) return;
    if (status) return append_cursor("");
    JsonText json;
    json.begin_object().member("message", status.message()).member("code", to_string(status.code()));
    json.member("cursor", changes_.cursor()).end_object();
    text_.append(json.str());
    text_.append("\n");
  }

  bool flush() {
    if (text_.size() == 0) return reply_.is_open();
    last_line_ = SteadyClock::now();
    if (reply_.write_and_wait(text_.take())) return true;
    changes_.stop();
    return false;
  }

  const HttpReply reply_;
  const Duration heartbeat_;
  const bool is_once_;
  Subscription changes_;
  EntryWriter writer_;
  const Change* first_ = nullptr;
  JsonLines text_;
  bool has_news_ = false;  ///< There are changes after the last cursor.
  bool is_caught_up_ = false;
  bool is_resync_ = false;
  SteadyClock::time_point next_cursor_ = SteadyClock::now() + kCursorPause;
  SteadyClock::time_point last_line_ = SteadyClock::now();
};

void follow(Client& client, const ApiCall& call, const HttpReply& reply) {
  const auto wish = read_wish(call);
  if (!wish) return reply(error_answer(call.request, wish.error()));
  ChangeStream stream(client, *wish, reply);
  if (const Status status = stream.begin(); !status) return reply(error_answer(call.request, status));
  stream.run();
}

}  // namespace

void add_change_routes(RouteTable& routes, Client& client) {
  const auto handler = [&client](const ApiCall& call, const HttpReply& reply) { follow(client, call, reply); };
  routes.add_streaming("GET", "/changes/v1", {"type", "selection", "fields", "cursor", "from_now", "heartbeat", "once"},
                       handler);
  routes.add_streaming("POST", "/changes/v1", {"heartbeat", "once"}, handler);
}

}  // namespace fjord::gateway
