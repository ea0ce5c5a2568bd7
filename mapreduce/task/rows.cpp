#include "rows.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/document/json.h"
#include "fjord/mapreduce/passes.h"

namespace fjord::mapreduce {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

std::string text_of(const rapidjson::StringBuffer& buffer) { return {buffer.GetString(), buffer.GetSize()}; }

void write_text(Writer& json, std::string_view text) {
  json.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

/// Returns the number of an estimate, an object that also has its error. Other JSON is returned unchanged.
std::string number_of(std::string_view json) {
  rapidjson::Document estimate;
  estimate.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag>(json.data(), json.size());
  if (estimate.HasParseError() || !estimate.IsObject() || !estimate.HasMember("estimate")) return std::string(json);
  const rapidjson::Value& number = estimate["estimate"];
  return number.IsString() ? std::string(number.GetString(), number.GetStringLength()) : std::string(json);
}

}  // namespace

Result<std::string> row_fields(const std::vector<AggregateColumn>& columns, std::string_view row) {
  FJORD_TRY_ASSIGN(const std::vector<std::string_view> cells, row_cells(row));
  if (cells.size() != columns.size()) {
    return Status(StatusCode::Corruption, "a malformed row: " + std::string(row.substr(0, 200)));
  }
  rapidjson::StringBuffer buffer;
  Writer json(buffer);
  json.StartObject();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] == "null") continue;
    json.Key(columns[i].name.c_str());
    if (columns[i].kind == ColumnKind::Json) {
      write_text(json, cells[i]);
    } else {
      const std::string value = cells[i].starts_with('{') ? number_of(cells[i]) : std::string(cells[i]);
      json.RawValue(value.data(), value.size(), rapidjson::kNullType);
    }
  }
  json.EndObject();
  return text_of(buffer);
}

Result<EncodedDocument> row_document(const std::vector<AggregateColumn>& columns, const DocumentType& type,
                                     const DocumentId& id, std::string_view row) {
  FJORD_TRY_ASSIGN(const std::string fields, row_fields(columns, row));
  return fields_from_json(type, id, fields);
}

Result<DocumentId> row_target_id(const rpc::RowTarget& into, std::string_view key) {
  return DocumentId::parse(row_document_id(into.name_space, into.type, into.name, key));
}

Result<SinkOperation> row_operation(const TaskSpec& spec, const Application& application, const DocumentTypeRepo& types,
                                    std::string_view key, std::string_view row) {
  const DocumentType* type = types.find(spec.into.type);
  if (type == nullptr || application.columns() == nullptr) {
    return Status(StatusCode::UnknownType, "rows cannot be documents of type " + spec.into.type);
  }
  FJORD_TRY_ASSIGN(const DocumentId id, row_target_id(spec.into, key));
  FJORD_TRY_ASSIGN(EncodedDocument document, row_document(*application.columns(), *type, id, row));
  return SinkOperation{id.str(), std::move(document)};
}

Result<SinkOperation> result_operation(const TaskSpec& spec, const DocumentTypeRepo& types, const std::string& id,
                                       std::string_view key, std::string value) {
  FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
  const DocumentType* type = types.find(kResultType);
  FJORD_CHECK(type != nullptr);
  Document document(*type, parsed);
  FJORD_TRY(document.set("job", spec.job));
  FJORD_TRY(document.set("key", std::string(key)));
  FJORD_TRY(document.set("value", std::move(value)));
  return SinkOperation{parsed.str(), encode(document)};
}

void RowPage::add(std::string_view key, std::string_view row) {
  if (tuples_.empty()) tuples_.push_back(static_cast<char>(kTuplesVersion));
  put_string(tuples_, key);
  put_varint(tuples_, 1);
  put_string(tuples_, row);
}

Result<EncodedDocument> page_document(const TaskSpec& spec, const DocumentTypeRepo& types, bool is_whole,
                                      std::uint32_t destination, std::uint32_t counter, std::string page,
                                      std::string& id) {
  const std::string job = spec.rows_job(is_whole);
  id = fmt::format("id:fjord:{}:n={}:{}/{}/{}", kTuplesType, spec.location(destination), job, destination, counter);
  FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
  const DocumentType* type = types.find(kTuplesType);
  FJORD_CHECK(type != nullptr);
  Document document(*type, parsed);
  FJORD_TRY(document.set("job", job));
  FJORD_TRY(document.set("source", std::int64_t{0}));
  FJORD_TRY(document.set("destination", static_cast<std::int32_t>(destination)));
  FJORD_TRY(document.set("counter", static_cast<std::int32_t>(counter)));
  FJORD_TRY(document.set("tuples", RawValue{std::move(page)}));
  return encode(document);
}

Result<std::unique_ptr<RowReader>> RowReader::open(const TaskSpec& spec,
                                                   std::shared_ptr<const DocumentTypeRepo> types) {
  auto reader = std::unique_ptr<RowReader>(new RowReader());
  reader->type_ = types->find(kRowType);
  FJORD_CHECK(reader->type_ != nullptr);
  FJORD_TRY_ASSIGN(reader->selection_, Selection::parse(spec.row_selection, *types, *reader->type_));
  reader->types_ = std::move(types);
  reader->columns_ = spec.columns;
  return reader;
}

Status RowReader::for_each(const DocumentView& page, const Take& take) const {
  const auto tuples = page.field("tuples");
  if (!tuples) return Status(StatusCode::Corruption, "no rows in it");
  return for_each_tuple(tuples->as_string_view(), [&](std::string_view key, std::string_view row) -> Status {
    const std::string shown = printable_key(key);
    FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse("id:fjord:row::" + key_in_id(shown)));
    std::string fields;
    if (columns_.empty()) {
      rapidjson::StringBuffer buffer;
      Writer json(buffer);
      json.StartObject();
      json.Key("key");
      write_text(json, shown);
      json.Key("value");
      write_text(json, row);
      json.EndObject();
      fields = text_of(buffer);
    } else {
      FJORD_TRY_ASSIGN(fields, row_fields(columns_, row));
    }
    FJORD_TRY_ASSIGN(const EncodedDocument document, fields_from_json(*type_, id, fields));
    FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types_, document.header, document.body));
    FJORD_TRY_ASSIGN(const Match match, selection_.try_evaluate(view));
    return take(document.header.size() + document.body.size(), match == Match::True, view);
  });
}

}  // namespace fjord::mapreduce
