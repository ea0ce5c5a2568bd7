// Update, delete and copy of all documents that a selection matches.

#include "http/selection_write.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/retry.h"
#include "fjord/library/bulk.h"
#include "fjord/library/detail/bulk_run.h"
#include "http/answers.h"
#include "http/json_body.h"
#include "http/visit_progress.h"
#include "http/visit_wish.h"

namespace fjord::gateway {
namespace {

/// A count may take this long, however short the client wants its requests: half of a count is of no use.
constexpr std::int64_t kCountMs = 10'000;

/// Returns whether the same request may succeed later. A run that was stopped, because the gateway ends or the client
/// has gone, continues from its cursor.
bool may_be_repeated(StatusCode code) { return code == StatusCode::Cancelled || may_succeed_later(code); }

SelectionRun run_change(Client& client, const BulkChange& change, const DocumentPath& path, const SelectionWish& wish,
                        bool only_counts, std::stop_token stop) {
  SelectionRun run;
  BulkOptions options;
  options.dry_run = only_counts;
  options.type = path.type;
  options.all_types = path.is_root;
  options.slice = wish.slice;
  options.resume = wish.continuation;
  options.timeout = milliseconds(wish.timeout_ms);
  options.time_limit = milliseconds(only_counts ? std::max(wish.chunk_ms, kCountMs) : wish.chunk_ms);
  options.stop = std::move(stop);
  options.on_failure = [&](const std::string& id, const Status& error) { run.note_failure(id, error); };
  run.summary = run_bulk(client.core(), change, std::move(options));
  return run;
}

/// Returns the token for clients of a cursor, whose first line names the run and whose second line is the cursor of its
/// visit.
std::string token_of(const std::string& cursor) {
  const std::size_t line_end = cursor.find('\n');
  auto position = visitors::SessionCursor::parse(std::string_view(cursor).substr(line_end + 1));
  if (!position) return to_token(cursor);
  position->done = largest_ranges(position->done);
  return to_token(cursor.substr(0, line_end + 1) + position->to_text() + '\n');
}

}  // namespace

void SelectionRun::note_failure(const std::string& id, const Status& error) {
  if (failure || !may_be_repeated(error.code())) failure = error.with_context(id);
}

HttpAnswer selection_answer(const HttpRequest& request, const SelectionRun& run) {
  const BulkSummary& summary = run.summary;
  const Status& status = summary.status ? run.failure : summary.status;
  const bool has_progress = summary.applied + summary.skipped > 0;
  if (!status && (!has_progress || !may_be_repeated(status.code()))) return error_answer(request, status);
  std::string body = "{\"pathId\":";
  append_json_string(body, request.raw_path());
  body += fmt::format(",\"documentCount\":{}", summary.applied);
  if (!status || summary.has_more) body += ",\"continuation\":\"" + token_of(summary.cursor) + "\"";
  body += '}';
  return {.status = 200, .body = std::move(body)};
}

std::optional<HttpAnswer> unconfirmed_answer(const HttpRequest& request, const SelectionWish& wish,
                                             const BulkSummary& counted) {
  if (!counted.status) return error_answer(request, counted.status);
  const auto confirmed = static_cast<std::uint64_t>(wish.confirmed.value_or(0));
  if (!counted.has_more && counted.matched <= confirmed) return std::nullopt;
  const std::string how_many = (counted.has_more ? "at least " : "") + std::to_string(counted.matched);
  const std::string value = counted.has_more ? "all" : std::to_string(counted.matched);
  const std::string text = wish.confirmed ? fmt::format("{} documents match, and confirm is {}", how_many, confirmed)
                                          : fmt::format("{} documents match", how_many);
  HttpAnswer answer = message_answer(
      request, 428, fmt::format("{}; nothing was removed. confirm={} in the query removes them", text, value));
  answer.body.pop_back();
  answer.body += fmt::format(",\"documentCount\":{}}}", counted.matched);
  return answer;
}

HttpAnswer write_by_selection(Client& client, const HttpRequest& request, const DocumentPath& path,
                              const SelectionWish& wish, bool asks, std::stop_token stop) {
  BulkChange change{.selection = wish.condition, .changes = std::nullopt};
  // A copy within the cluster writes each document again as it is: an update without changes. A put of the content that
  // was read could undo a write that came in between.
  if (request.method == "POST") change.changes = "{}";
  if (request.method == "PUT") {
    auto body = read_document_body(request.body);
    if (!body) return error_answer(request, body.error());
    change.changes = std::move(body->fields);
  }
  SelectionRun run;
  if (!wish.is_empty_space) {
    const Status status = check_selection(client, wish.selection, wish.timeout_ms);
    if (!status) return error_answer(request, status);
    const bool is_first = wish.continuation.empty();  // Later requests go on with what was confirmed.
    if (asks && request.method == "DELETE" && is_first && wish.confirmed != kConfirmsAll) {
      const SelectionRun counted = run_change(client, change, path, wish, true, stop);
      if (auto refused = unconfirmed_answer(request, wish, counted.summary)) return std::move(*refused);
    }
    run = run_change(client, change, path, wish, false, std::move(stop));
  }
  return selection_answer(request, run);
}

}  // namespace fjord::gateway
