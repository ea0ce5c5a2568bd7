#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fmt/format.h>
#include <memory>
#include <mutex>

#include "entry_writer.h"
#include "fjord/library/visit.h"
#include "http/document_api.h"
#include "http/json_body.h"

namespace fjord::gateway {
namespace {

using ChunkClock = std::chrono::steady_clock;

constexpr std::int64_t kWantedMax = 1024;
constexpr std::size_t kChunkBytesMax = std::size_t{16} << 20;
constexpr std::int64_t kReadAheadBytes = 1 << 20;
/// Clients give up after 120 seconds.
constexpr std::int64_t kChunkMsMax = 60'000;
constexpr std::int64_t kSlicesMax = 1024;

std::string quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + '"';
}

std::string selection_of(const DocumentPath& path, const std::string* wanted) {
  std::string selection = wanted == nullptr ? std::string() : "(" + *wanted + ")";
  const auto add = [&](const std::string& term) { selection += (selection.empty() ? "" : " and ") + term; };
  if (path.is_root) return selection;
  add("id.namespace == " + quoted(path.space));
  if (path.location.starts_with("n=")) add("id.user == " + path.location.substr(2));
  if (path.location.starts_with("g=")) add("id.group == " + quoted(path.location.substr(2)));
  return selection;
}

Status set_slice(const HttpQuery& query, VisitOptions& options) {
  FJORD_TRY_ASSIGN(const auto slices, query.number("slices"));
  FJORD_TRY_ASSIGN(const auto slice, query.number("sliceId"));
  if (slices.has_value() != slice.has_value()) {
    return {StatusCode::InvalidArgument, "slices and sliceId have to be given together"};
  }
  if (!slices) return Status::ok();
  if (*slices < 1 || *slices > kSlicesMax || *slice < 0 || *slice >= *slices) {
    return {StatusCode::InvalidArgument,
            fmt::format("sliceId {} of slices {}: expected 1 to {} slices, and 0 to slices - 1", *slice, *slices,
                        kSlicesMax)};
  }
  options.slice = VisitSlice{static_cast<std::uint64_t>(*slice), static_cast<std::uint64_t>(*slices)};
  return Status::ok();
}

void set_fields(const std::string* field_set, VisitOptions& options) {
  if (field_set == nullptr) return;
  std::string_view names = *field_set;
  if (names == "[id]" || names == "[none]") options.ids_only = true;
  if (const std::size_t colon = names.find(':'); colon != std::string_view::npos) names.remove_prefix(colon + 1);
  while (!names.empty() && !names.starts_with('[')) {
    const std::string_view name = names.substr(0, names.find(','));
    options.fields.emplace_back(name);
    names.remove_prefix(std::min(names.size(), name.size() + 1));
  }
}

struct ChunkWish {
  VisitOptions options;
  std::int64_t documents = 1;
  std::int64_t timeout_ms = kChunkMsMax;
  bool is_empty_space = false;  ///< The bucket space without documents was asked for.
};

Result<ChunkWish> read_wish(const DocumentPath& path, const HttpQuery& query) {
  ChunkWish wish;
  if (path.is_root && query.find("cluster") == nullptr) {
    return Status(StatusCode::InvalidArgument,
                  "Must set 'cluster' parameter to a valid content cluster id when "
                  "visiting at a root /document/v1/ level");
  }
  if (const std::string* space = query.find("bucketSpace")) {
    if (!path.is_root) return Status(StatusCode::InvalidArgument, "bucketSpace is possible at the root only");
    if (*space != "default" && *space != "global") {
      return Status(StatusCode::InvalidArgument, fmt::format("bucketSpace '{}': expected default or global", *space));
    }
    wish.is_empty_space = *space == "global";
  }
  VisitOptions& options = wish.options;
  options.type = path.type;
  options.selection = selection_of(path, query.find("selection"));
  options.buffer_bytes = kReadAheadBytes;
  options.visitors_per_node = 1;
  set_fields(query.find("fieldSet"), options);
  FJORD_TRY(set_slice(query, options));
  FJORD_TRY_ASSIGN(options.include_removed, query.flag("includeRemoves", false));
  for (const auto& [name, time] : {std::pair{"fromTimestamp", &options.from}, std::pair{"toTimestamp", &options.to}}) {
    FJORD_TRY_ASSIGN(const auto given, query.number(name));
    if (given && *given < 0) return Status(StatusCode::InvalidArgument, fmt::format("{} is negative", name));
    if (given) *time = Timestamp{static_cast<std::uint64_t>(*given)};
  }
  FJORD_TRY_ASSIGN(const auto wanted, query.number("wantedDocumentCount"));
  if (wanted && *wanted <= 0) {
    return Status(StatusCode::InvalidArgument, fmt::format("wantedDocumentCount is {}: expected 1 or more", *wanted));
  }
  wish.documents = std::min(wanted.value_or(1), kWantedMax);
  FJORD_TRY_ASSIGN(const auto timeout, query.duration_ms("timeout"));
  wish.timeout_ms = std::min(timeout.value_or(kChunkMsMax), kChunkMsMax);
  if (const std::string* token = query.find("continuation")) {
    FJORD_TRY_ASSIGN(options.resume, from_token(*token));
    if (options.resume.empty()) return Status(StatusCode::InvalidArgument, "continuation: malformed token");
  }
  return wish;
}

/// Waits until the visit may have more. Returns false at the deadline and when the process ends; the
/// visit may only be destroyed then.
bool wait_for_more(Visit& visit, const VisitThreads& threads, ChunkClock::time_point deadline) {
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_set = false;
  };
  const auto signal = std::make_shared<Signal>();
  visit.ready().then([signal](const Status&) {
    const std::lock_guard lock(signal->mutex);
    signal->is_set = true;
    signal->changed.notify_all();
  });
  std::unique_lock lock(signal->mutex);
  constexpr auto kEndingCheck = std::chrono::milliseconds(100);
  while (!signal->is_set && !threads.is_ending() && ChunkClock::now() < deadline) {
    signal->changed.wait_until(lock, std::min(deadline, ChunkClock::now() + kEndingCheck));
  }
  return signal->is_set;
}

Status append_entry(const EntryView& entry, EntryWriter& writer, std::string& documents) {
  std::string id;
  std::string json;
  FJORD_TRY(writer.write(entry, id, json));
  documents += documents.empty() ? "{" : ",{";
  documents += entry.removed ? "\"remove\":" : "\"id\":";
  append_json_string(documents, id);
  if (!entry.removed) {
    FJORD_TRY_ASSIGN(const std::string fields, fields_of_document(json));
    documents += ",\"fields\":" + fields;
  }
  documents += '}';
  return Status::ok();
}

struct Chunk {
  std::string documents;
  std::int64_t count = 0;
  std::string cursor;
  bool is_over = false;
};

Result<Chunk> take_chunk(Client& client, const VisitThreads& threads, const ChunkWish& wish) {
  const auto deadline = ChunkClock::now() + std::chrono::milliseconds(wish.timeout_ms);
  Chunk chunk;
  Visit visit = client.visit(wish.options);
  FJORD_TRY(visit.status());
  EntryWriter writer(client, visit.types(), wish.options.fields);
  chunk.cursor = visit.cursor();
  while (!visit.is_over()) {
    while (chunk.count < wish.documents && chunk.documents.size() < kChunkBytesMax) {
      const auto entry = visit.try_next_entry();
      if (!entry) break;
      FJORD_TRY(append_entry(*entry, writer, chunk.documents));
      ++chunk.count;
    }
    chunk.cursor = visit.cursor();
    if (chunk.count >= wish.documents || chunk.documents.size() >= kChunkBytesMax) return chunk;
    if (!visit.is_over() && !wait_for_more(visit, threads, deadline)) {
      const bool has_progress = chunk.count > 0 || visit.statistics().buckets_done > 0;
      if (has_progress) return chunk;
      return Status(StatusCode::Timeout, fmt::format("nothing was visited within {} ms", wish.timeout_ms));
    }
  }
  // After an error, the documents before it are answered, and the next chunk begins behind them.
  if (!visit.status() && chunk.count == 0) return visit.status();
  chunk.is_over = visit.status().is_ok();
  return chunk;
}

}  // namespace

HttpAnswer visit_chunk(Client& client, const VisitThreads& threads, const HttpRequest& request,
                       const DocumentPath& path, const HttpQuery& query) {
  const auto wish = read_wish(path, query);
  if (!wish) return error_answer(request, wish.error());
  Result<Chunk> chunk = Chunk{.documents = {}, .count = 0, .cursor = {}, .is_over = true};
  if (!wish->is_empty_space) chunk = take_chunk(client, threads, *wish);
  if (!chunk) return error_answer(request, chunk.error());
  std::string body = "{\"pathId\":";
  append_json_string(body, request.raw_path());
  body += fmt::format(",\"documents\":[{}],\"documentCount\":{}", chunk->documents, chunk->count);
  if (!chunk->is_over) body += ",\"continuation\":\"" + to_token(chunk->cursor) + "\"";
  body += '}';
  return {.status = 200, .body = std::move(body)};
}

}  // namespace fjord::gateway
