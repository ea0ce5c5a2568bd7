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

Result<std::uint64_t> DocumentLines::append(const std::string& docblock, std::string& out) {
  std::uint64_t count = 0;
  DocBlockReader reader(docblock);
  while (const auto entry = reader.next()) {
    FJORD_TRY(append_entry(*entry, out));
    ++count;
  }
  if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
  return count;
}

Status DocumentLines::append_entry(const EntryView& entry, std::string& out) {
  if (entry.removed) {
    append_remove(entry, timestamps_, out);
    return Status::ok();
  }
  if (entry.header.empty()) return Status::ok();
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types_, entry.header, entry.body));
  if (view.type() == nullptr) {
    return {StatusCode::UnknownType, fmt::format("the schema of {} is not known here", view.id())};
  }
  FJORD_TRY_ASSIGN(const std::string json, to_json_document(view, fields_of(*view.type())));
  out += json;
  if (timestamps_) {
    out.pop_back();
    out += fmt::format(",\"timestamp_us\":{}}}", entry.timestamp.us);
  }
  out += '\n';
  return Status::ok();
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
