#include "document_lines.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "fjord/document/document.h"
#include "fjord/document/json.h"
#include "json_text.h"

namespace fjord::cli {
namespace {

constexpr std::uint64_t kSlicesMax = 1'000'000;

}  // namespace

Result<std::uint64_t> DocumentLines::append(const std::string& docblock, std::uint64_t limit, std::string& out,
                                            const Filter& is_wanted) {
  std::uint64_t count = 0;
  DocBlockReader reader(docblock);
  while (count < limit) {
    const auto entry = reader.next();
    if (!entry) break;
    if (is_wanted && !is_wanted(*entry)) continue;
    ++count;
    if (entry->removed) {
      JsonText line;
      line.begin_object().key("remove").text(entry->id);
      if (timestamps_) line.key("timestamp_us").number(entry->timestamp.us);
      out += line.end_object().str() + '\n';
      continue;
    }
    if (entry->header.empty()) continue;  // The result of the field set [none].
    FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types_, entry->header, entry->body));
    if (view.type() == nullptr) {
      return Status(StatusCode::UnknownType, fmt::format("the schema of {} is not known here", view.id()));
    }
    FJORD_TRY_ASSIGN(const std::string json, to_json_document(view, fields_of(*view.type())));
    out += json;
    if (timestamps_) {
      out.pop_back();
      out += fmt::format(",\"timestamp_us\":{}}}", entry->timestamp.us);
    }
    out += '\n';
  }
  if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
  return count;
}

std::span<const Field* const> DocumentLines::fields_of(const DocumentType& type) {
  auto [at, is_new] = by_type_.try_emplace(&type);
  if (is_new) {
    for (const std::string& name : names_) {
      if (const Field* field = type.field(name)) at->second.push_back(field);
    }
  }
  return at->second;
}

Result<visitors::PositionRange> parse_slice(const std::string& text) {
  std::uint64_t index = 0;
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, index);
  const bool has_slash = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  const auto second = has_slash ? std::from_chars(first.ptr + 1, end, count) : first;
  if (!has_slash || second.ec != std::errc() || second.ptr != end || index == 0 || index > count ||
      count > kSlicesMax) {
    return Status(StatusCode::InvalidArgument, fmt::format("\"{}\" is no slice: 1/4 to 4/4, for example", text));
  }
  return visitors::PositionRange::slice(index - 1, count);
}

}  // namespace fjord::cli
