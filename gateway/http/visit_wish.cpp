#include "http/visit_wish.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <utility>

#include "fjord/document/selection.h"
#include "fjord/library/detail/client_core.h"

namespace fjord::gateway {
namespace {

constexpr std::int64_t kWantedMax = 1024;
constexpr std::int64_t kSlicesMax = 1024;
constexpr std::int64_t kReadAheadBytes = 1 << 20;
/// Clients give up after 120 seconds. A chunk has to end before, with the calls that are in progress.
constexpr std::int64_t kChunkMsMax = 60'000;
constexpr std::int64_t kWriteMs = 20'000;
constexpr std::int64_t kReachMsMax = 5'000;
constexpr std::int64_t kVisitorsPerNodeMax = 16;

Status invalid(std::string message) { return {StatusCode::InvalidArgument, std::move(message)}; }

std::string quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + '"';
}

/// Returns the condition for the documents below the path. `wanted` is evaluated for these only: it may cost much, or
/// fail for a document elsewhere.
std::string selection_of(const DocumentPath& path, const std::string& wanted) {
  std::string selection;
  const auto add = [&](const std::string& term) { selection += (selection.empty() ? "" : " and ") + term; };
  if (path.is_root) return wanted.empty() ? std::string() : "(" + wanted + ")";
  add("id.namespace == " + quoted(path.space));
  if (path.location.starts_with("n=")) {
    const std::string number = path.location.substr(2);
    // Numbers in selections have 63 bits. The selection for other numbers reads all buckets.
    const bool is_small = number.size() < std::to_string(std::numeric_limits<std::int64_t>::max()).size();
    add(is_small ? "id.user == " + number : "id =~ \"^id:[^:]*:[^:]*:n=" + number + ":\"");
  }
  if (path.location.starts_with("g=")) add("id.group == " + quoted(path.location.substr(2)));
  if (!wanted.empty()) add("(" + wanted + ")");
  return selection;
}

Result<std::optional<VisitSlice>> read_slice(const HttpQuery& query) {
  FJORD_TRY_ASSIGN(const auto slices, query.number("slices"));
  FJORD_TRY_ASSIGN(const auto slice, query.number("sliceId"));
  if (slices.has_value() != slice.has_value()) return invalid("slices and sliceId have to be given together");
  if (!slices) return std::optional<VisitSlice>();
  if (*slices < 1 || *slices > kSlicesMax || *slice < 0 || *slice >= *slices) {
    return invalid(fmt::format("sliceId {} of slices {}: expected 1 to {} slices, and 0 to slices - 1", *slice, *slices,
                               kSlicesMax));
  }
  return std::optional(VisitSlice{static_cast<std::uint64_t>(*slice), static_cast<std::uint64_t>(*slices)});
}

/// Returns true if the bucket space that the request names has no documents.
Result<bool> names_empty_space(const HttpQuery& query) {
  const std::string* space = query.find("bucketSpace");
  if (space == nullptr) return false;
  if (*space != "default" && *space != "global") {
    return invalid(fmt::format("bucketSpace '{}': expected default or global", *space));
  }
  return *space == "global";
}

Result<std::string> read_continuation(const HttpQuery& query) {
  const std::string* token = query.find("continuation");
  if (token == nullptr) return std::string();
  FJORD_TRY_ASSIGN(std::string text, from_token(*token));
  if (text.empty()) return invalid("continuation: malformed token");
  return text;
}

Status read_fields(const HttpQuery& query, VisitOptions& options) {
  const std::string* field_set = query.find("fieldSet");
  if (field_set == nullptr) return Status::ok();
  if (*field_set == "[id]" || *field_set == "[none]") {
    options.ids_only = true;
    return Status::ok();
  }
  // A field set is sent to the servers as one text.
  const bool is_list = field_set->find_first_of("[:") == std::string::npos;
  std::string_view rest = *field_set;
  while (!rest.empty()) {
    const std::string_view name = is_list ? rest.substr(0, rest.find(',')) : rest;
    if (!name.empty()) options.fields.emplace_back(name);
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
  }
  return Status::ok();
}

Status read_times(const HttpQuery& query, VisitOptions& options) {
  for (const auto& [name, time] : {std::pair{"fromTimestamp", &options.from}, std::pair{"toTimestamp", &options.to}}) {
    FJORD_TRY_ASSIGN(const auto given, query.number(name));
    if (given && *given < 0) return invalid(fmt::format("{} is negative", name));
    if (given) *time = Timestamp{static_cast<std::uint64_t>(*given)};
  }
  if (query.find("toTimestamp") != nullptr && options.from > options.to) {
    return invalid("fromTimestamp is after toTimestamp");
  }
  return Status::ok();
}

Status read_concurrency(const HttpQuery& query, VisitWish& wish) {
  FJORD_TRY_ASSIGN(const auto given, query.number("concurrency"));
  if (given && *given <= 0) return invalid(fmt::format("concurrency is {}: expected 1 or more", *given));
  const std::int64_t otherwise = wish.is_stream ? 4 : 1;
  wish.options.visitors_per_node = static_cast<std::uint32_t>(std::min(given.value_or(otherwise), kVisitorsPerNodeMax));
  return Status::ok();
}

}  // namespace

Result<VisitWish> read_visit_wish(const DocumentPath& path, const HttpQuery& query) {
  VisitWish wish;
  if (path.is_root && query.find("cluster") == nullptr) {
    return invalid(
        "Must set 'cluster' parameter to a valid content cluster id when "
        "visiting at a root /document/v1/ level");
  }
  FJORD_TRY_ASSIGN(wish.is_empty_space, names_empty_space(query));
  VisitOptions& options = wish.options;
  options.type = path.type;
  if (const std::string* selection = query.find("selection")) wish.selection = *selection;
  options.selection = selection_of(path, wish.selection);
  options.buffer_bytes = kReadAheadBytes;
  FJORD_TRY(read_fields(query, options));
  FJORD_TRY_ASSIGN(options.slice, read_slice(query));
  FJORD_TRY_ASSIGN(options.include_removed, query.flag("includeRemoves", false));
  FJORD_TRY(read_times(query, options));
  FJORD_TRY_ASSIGN(wish.is_stream, query.flag("stream", false));
  FJORD_TRY(read_concurrency(query, wish));
  FJORD_TRY_ASSIGN(const auto wanted, query.number("wantedDocumentCount"));
  if (wanted && *wanted <= 0) return invalid(fmt::format("wantedDocumentCount is {}: expected 1 or more", *wanted));
  wish.documents = std::min(wanted.value_or(1), kWantedMax);
  FJORD_TRY_ASSIGN(wish.timeout_ms, query.duration_ms("timeout"));
  if (!wish.is_stream) wish.timeout_ms = std::min(wish.timeout_ms.value_or(kChunkMsMax), kChunkMsMax);
  FJORD_TRY_ASSIGN(wish.continuation, read_continuation(query));
  return wish;
}

Result<SelectionWish> read_selection_wish(const HttpRequest& request, const DocumentPath& path,
                                          const HttpQuery& query) {
  SelectionWish wish;
  const std::string_view at = request.raw_path();
  for (const char* name : {"cluster", "selection"}) {
    if (query.find(name) == nullptr) return invalid(fmt::format("Must specify '{}' at '{}'", name, at));
  }
  if (request.method == "POST" && query.find("destinationCluster") == nullptr) {
    return invalid(fmt::format("Must specify 'destinationCluster' at '{}'", at));
  }
  FJORD_TRY_ASSIGN(wish.is_empty_space, names_empty_space(query));
  wish.selection = *query.find("selection");
  wish.condition = selection_of(path, wish.selection);
  FJORD_TRY_ASSIGN(wish.slice, read_slice(query));
  FJORD_TRY_ASSIGN(const auto chunk, query.duration_ms("timeChunk"));
  wish.chunk_ms = std::min(chunk.value_or(kChunkMsMax), kChunkMsMax);
  FJORD_TRY_ASSIGN(const auto timeout, query.duration_ms("timeout"));
  wish.timeout_ms = std::min(timeout.value_or(kWriteMs), kWriteMs);
  FJORD_TRY_ASSIGN(wish.continuation, read_continuation(query));
  if (const std::string* confirm = query.find("confirm"); confirm != nullptr && *confirm == "all") {
    wish.confirmed = kConfirmsAll;
  } else {
    FJORD_TRY_ASSIGN(wish.confirmed, query.number("confirm"));
    if (wish.confirmed && *wish.confirmed < 0)
      return invalid(fmt::format("confirm is {}: expected 0 or more, or all", *confirm));
  }
  return wish;
}

Status check_selection(Client& client, const std::string& selection, std::int64_t timeout_ms) {
  const auto answer = std::make_shared<Answer<Status>>();
  client.core().client().refresh_schemas(milliseconds(std::min(timeout_ms, kReachMsMax)),
                                         [answer](const Status& status) { answer->set(status); });
  FJORD_TRY(answer->wait());
  return selection.empty() ? Status::ok() : Selection::parse(selection, *client.core().types()).status();
}

}  // namespace fjord::gateway
