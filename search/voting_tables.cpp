#include "fjord/search/voting_tables.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

namespace fjord::search {
namespace {

constexpr const char* kTableType = "fjord_affinity";
/// All parts of a table lie in one bucket.
constexpr std::uint64_t kTableLocation = 0x766f7465;

}  // namespace

std::string table_part_id(std::uint64_t number, std::uint32_t part) {
  return fmt::format("id:fjord:{}:n={}:{}/{}", kTableType, kTableLocation, number, part);
}

std::uint32_t table_parts(std::size_t bytes) {
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, (bytes + kTablePartBytes - 1) / kTablePartBytes));
}

Result<Document> table_part(const DocumentTypeRepo& types, std::uint64_t number, std::string_view bytes,
                            std::uint32_t part) {
  const DocumentType* type = types.find(kTableType);
  if (type == nullptr) return Status(StatusCode::NotReady, "there is no document type fjord_affinity yet");
  FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(table_part_id(number, part)));
  Document document(*type, id);
  FJORD_TRY(document.set("number", static_cast<std::int64_t>(number)));
  FJORD_TRY(document.set("part", static_cast<std::int32_t>(part)));
  FJORD_TRY(document.set("parts", static_cast<std::int32_t>(table_parts(bytes.size()))));
  const std::size_t begin = std::min(bytes.size(), part * kTablePartBytes);
  FJORD_TRY(document.set("content", RawValue{std::string(bytes.substr(begin, kTablePartBytes))}));
  return document;
}

std::string corpus_of(const DocumentTypeRepo& types) {
  std::vector<std::string> fields;
  for (const auto& type : types.types()) {
    if (const Field* field = type->indexed_field()) fields.push_back(type->name() + "." + field->name);
  }
  std::sort(fields.begin(), fields.end());
  std::string corpus;
  for (const std::string& field : fields) corpus += (corpus.empty() ? "" : ", ") + field;
  return corpus;
}

}  // namespace fjord::search
