#include "http/streamed_visit.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>

#include "entry_writer.h"
#include "http/answers.h"
#include "http/json_body.h"
#include "http/stop_switch.h"
#include "http/unreadable_documents.h"
#include "http/visit_progress.h"

namespace fjord::gateway {
namespace {

using StreamClock = std::chrono::steady_clock;

constexpr std::int64_t kOpenMs = 60'000;
constexpr std::size_t kPieceBytes = 128 << 10;
/// A stream sends its token after this time, or after kTokenBytes.
constexpr auto kTokenPause = std::chrono::seconds(1);
constexpr std::size_t kTokenBytes = std::size_t{8} << 20;

/// The text of one streamed visit.
class StreamText {
 public:
  StreamText(const HttpRequest& request, StreamForm form) : form_(form) {
    if (form_ == StreamForm::Lines) return;
    std::string head = "{\"pathId\":";
    append_json_string(head, request.raw_path());
    text_.append(head);
    text_.append(",\"documents\":[");
  }

  /// A document that cannot be written is named instead: in a line of its own, or at the end of the JSON form.
  Status append(const EntryView& entry, EntryWriter& writer) {
    const bool is_json = form_ == StreamForm::Json;
    const std::size_t before = text_.size();
    if (is_json && count_ > 0) text_.append(",");
    const Status status = writer.append(entry, is_json ? "id" : "put", text_);
    if (status) {
      if (!is_json) text_.append("\n");
      ++count_;
      return status;
    }
    text_.cut_to(before);
    FJORD_TRY(unreadable_.take(entry, status));
    if (is_json) return Status::ok();
    text_.append("{\"unreadable\":" + unreadable_json(entry, status) + "}\n");
    unreadable_.cut_to(0);
    return Status::ok();
  }
  /// Appends how far the visit is. The JSON form has a place for that only at its end.
  void append_progress(const std::string& token, double fraction_done) {
    if (form_ == StreamForm::Json) return;
    text_.append(fmt::format("{{\"continuation\":{{\"token\":\"{}\",\"percentFinished\":{:.1f}}}}}\n", token,
                             100 * std::max(0.0, fraction_done)));
  }
  /// Appends the end. Without a token the visit is complete; otherwise the message says why it is not.
  void append_end(const std::string& token, double fraction_done, const std::string& message) {
    if (form_ == StreamForm::Json) {
      text_.append(fmt::format("],\"documentCount\":{}", count_));
      text_.append(unreadable_.member());
      if (!token.empty()) text_.append(",\"continuation\":\"" + token + "\"");
      if (!message.empty()) append_message(",", message);
      text_.append("}");
      return;
    }
    text_.append(fmt::format("{{\"sessionStats\":{{\"documentCount\":{}}}}}\n", count_));
    if (!token.empty()) append_progress(token, fraction_done);
    if (token.empty()) text_.append("{\"continuation\":{\"percentFinished\":100.0}}\n");
    if (message.empty()) return;
    append_message("{", message);
    text_.append("}\n");
  }
  std::size_t size() const { return text_.size(); }
  std::string take() { return text_.take(); }

 private:
  void append_message(const char* before, const std::string& message) {
    std::string text = std::string(before) + "\"message\":";
    append_json_string(text, message);
    text_.append(text);
  }

  const StreamForm form_;
  JsonLines text_;
  std::uint64_t count_ = 0;
  UnreadableDocuments unreadable_;
};

/// One streamed visit, on a thread that may wait.
class StreamedVisit {
 public:
  StreamedVisit(Client& client, const HttpRequest& request, const VisitWish& wish, StreamForm form, HttpReply reply)
      : client_(client),
        wish_(wish),
        form_(form),
        reply_(std::move(reply)),
        text_(request, form),
        progress_(wish.options.slice) {
    if (wish.timeout_ms) deadline_ = StreamClock::now() + std::chrono::milliseconds(*wish.timeout_ms);
  }

  /// Opens the visit before anything is sent. Errors: those of the visit.
  Status open() {
    if (wish_.is_empty_space) return Status::ok();
    FJORD_TRY(check_selection(client_, wish_.selection, wish_.timeout_ms.value_or(kOpenMs)));
    if (!wish_.continuation.empty()) FJORD_TRY(progress_.parse(wish_.continuation));
    VisitOptions options = wish_.options;
    options.resume = progress_.resume_text({});
    visit_.emplace(client_.visit(std::move(options)));
    FJORD_TRY(visit_->status());
    return progress_.begin(visit_->bucket_cursor());
  }

  void run() {
    const bool is_lines = form_ == StreamForm::Lines;
    reply_.begin({.status = 200,
                  .content_type = is_lines ? "application/jsonl; charset=UTF-8" : "application/json; charset=UTF-8"});
    if (!visit_) return end({}, {});
    const auto stop_switch = std::make_shared<StopSwitch<Visit>>(&*visit_);
    reply_.on_stop([stop_switch] { stop_switch->stop(); });
    const Status status = give_all();
    stop_switch->forget();
    if (!reply_.is_open()) return;
    const bool is_complete = status.is_ok() && visit_->status().is_ok();
    if (is_complete) return end({}, {});
    end(token(), (status ? visit_->status() : status).message());
  }

 private:
  /// Sends documents until the visit is over, was stopped or has lasted too long. Errors: those of writing a document.
  Status give_all() {
    EntryWriter writer(client_, visit_->types(), wish_.options.fields);
    auto next_token = StreamClock::now() + kTokenPause;
    std::size_t bytes_since_token = 0;
    while (true) {
      if (text_.size() >= kPieceBytes || (text_.size() > 0 && visit_->would_wait())) {
        bytes_since_token += text_.size();
        if (!reply_.write_and_wait(text_.take())) {
          visit_->stop();
          return Status::ok();
        }
      }
      const auto now = StreamClock::now();
      if (now >= deadline_) return {StatusCode::Timeout, "the visit has lasted for its timeout"};
      if (now >= next_token || bytes_since_token >= kTokenBytes) {
        next_token = now + kTokenPause;
        bytes_since_token = 0;
        text_.append_progress(token(), visit_->statistics().fraction_done());
      }
      const auto entry = visit_->next_entry();
      if (!entry) return Status::ok();
      FJORD_TRY(text_.append(*entry, writer));
    }
  }

  std::string token() {
    progress_.advance({}, visit_->bucket_cursor());
    return to_token(progress_.to_text());
  }

  void end(const std::string& token, const std::string& message) {
    text_.append_end(token, visit_ ? visit_->statistics().fraction_done() : 1, message);
    if (reply_.write_and_wait(text_.take())) reply_.end();
  }

  Client& client_;
  const VisitWish& wish_;
  const StreamForm form_;
  HttpReply reply_;
  StreamText text_;
  VisitProgress progress_;
  std::optional<Visit> visit_;
  StreamClock::time_point deadline_ = StreamClock::time_point::max();
};

}  // namespace

StreamForm stream_form_of(std::string_view accept) {
  const double lines = quality_of(accept, "application/jsonl");
  return lines > 0 && lines >= quality_of(accept, "application/json") ? StreamForm::Lines : StreamForm::Json;
}

void stream_visit(Client& client, const HttpRequest& request, const VisitWish& wish, StreamForm form, HttpReply reply) {
  StreamedVisit stream(client, request, wish, form, reply);
  if (const Status status = stream.open(); !status) return reply.answer(error_answer(request, status));
  stream.run();
}

}  // namespace fjord::gateway
