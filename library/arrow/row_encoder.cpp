#include "arrow/row_encoder.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "arrow/arrow_memory.h"
#include "arrow/arrow_types.h"
#include "fjord/common/coding.h"
#include "fjord/document/document_format.h"
#include "fjord/document/json.h"

namespace fjord {

Result<std::unique_ptr<RowEncoder>> RowEncoder::make(const ArrowSchema& table, const DocumentTypeRepo& types,
                                                     const DocumentType& type, std::int64_t id_column,
                                                     std::vector<std::string>& warnings) {
  std::unique_ptr<RowEncoder> encoder(new RowEncoder(types, type));
  for (std::int64_t i = 0; i < table.n_children; ++i)
    FJORD_TRY(encoder->add(*table.children[i], i, id_column, warnings));
  std::sort(encoder->columns_.begin(), encoder->columns_.end(),
            [](const Column& a, const Column& b) { return a.field->id < b.field->id; });
  return encoder;
}

Status RowEncoder::add(const ArrowSchema& column, std::int64_t child, std::int64_t id_column,
                       std::vector<std::string>& warnings) {
  const std::string name = column.name;
  const Field* field = type_.field(name);
  if (field == nullptr) {
    if (child != id_column && name != kIdColumn && name != kVersionColumn) {
      warnings.push_back(fmt::format("the column \"{}\" is not a field of {}", name, type_.name()));
    }
    return Status::ok();
  }
  for (const Column& other : columns_) {
    if (other.field == field) {
      return {StatusCode::InvalidArgument, fmt::format("the column \"{}\" is there twice", name)};
    }
  }
  const auto metadata = metadata_of(column);
  const auto kind = metadata.find(kArrowKey);
  const bool is_json = kind != metadata.end() && kind->second == kArrowJson;
  const auto text = DataType::primitive(TypeTag::String);
  auto reader = ColumnReader::make(column, is_json ? *text : *field->type);
  if (!reader) return reader.error().with_context("column " + name);
  columns_.push_back({field, child, is_json, std::move(*reader)});
  return Status::ok();
}

Status RowEncoder::set(const ArrowArray& batch) {
  offset_ = batch.offset;
  for (const Column& column : columns_) {
    if (column.child >= batch.n_children) return {StatusCode::InvalidArgument, "a batch lacks a column of its table"};
    FJORD_TRY(column.reader->set(*batch.children[column.child]));
  }
  return Status::ok();
}

Result<EncodedDocument> RowEncoder::encode(std::int64_t row, std::string_view id) const {
  EncodedDocument document;
  put_fixed(document.header, kDocumentFormatVersion);
  put_fixed(document.header, type_.id());
  put_string(document.header, id);
  std::string value;
  for (const Column& column : columns_) {
    if (column.reader->is_null(offset_ + row)) continue;
    value.clear();
    if (Status status = append_value(column, offset_ + row, id, value); !status) {
      return status.with_context("column " + column.field->name);
    }
    std::string& part = column.field->in_header ? document.header : document.body;
    put_fixed(part, column.field->id);
    part.push_back(static_cast<char>(column.field->type->tag()));
    put_string(part, value);
  }
  return document;
}

Status RowEncoder::append_value(const Column& column, std::int64_t row, std::string_view id, std::string& out) const {
  FJORD_TRY(column.reader->append(row, out));
  if (!column.is_json) return Status::ok();
  FJORD_TRY_ASSIGN(const DocumentId parsed, DocumentId::parse(id));
  FJORD_TRY_ASSIGN(const EncodedDocument encoded,
                   fields_from_json(type_, parsed, fmt::format("{{\"{}\":{}}}", column.field->name, out)));
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(types_, encoded.header, encoded.body));
  const std::optional<FieldSlice> slice = view.field(*column.field);
  if (!slice)
    return {StatusCode::InvalidField, fmt::format("\"{}\" is not a value of {}", out, column.field->type->name())};
  out = slice->bytes;
  return Status::ok();
}

}  // namespace fjord
