#include "fjord/library/detail/document_lines.h"

#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "fjord/document/document.h"
#include "fjord/document/json.h"

namespace fjord {
namespace {

/// Appends {"remove": ID} and a line end.
void append_remove(const EntryView& entry, bool with_timestamp, std::string& out) {
  rapidjson::StringBuffer text;
  rapidjson::Writer<rapidjson::StringBuffer> line(text);
  line.StartObject();
  line.Key("remove");
  line.String(entry.id.data(), static_cast<rapidjson::SizeType>(entry.id.size()));
  if (with_timestamp) {
    line.Key("timestamp_us");
    line.Uint64(entry.timestamp.us);
  }
  line.EndObject();
  out.append(text.GetString(), text.GetSize());
  out += '\n';
}

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
      append_remove(*entry, timestamps_, out);
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

}  // namespace fjord
