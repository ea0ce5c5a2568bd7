#include "arrow/document_columns.h"

#include <algorithm>
#include <fmt/format.h>

#include "arrow/arrow_types.h"
#include "fjord/document/json.h"

namespace fjord {

std::unique_ptr<DocumentColumns> DocumentColumns::make(std::shared_ptr<const DocumentTypeRepo> types,
                                                       const std::string& type, const std::vector<std::string>& fields,
                                                       bool version) {
  std::unique_ptr<DocumentColumns> made(new DocumentColumns(std::move(types)));
  made->has_version_ = version;
  const auto is_wanted = [&](const Field& field) {
    return fields.empty() || std::find(fields.begin(), fields.end(), field.name) != fields.end();
  };
  for (const auto& one : made->types_->types()) {
    if (type.empty() ? one->name().starts_with("fjord_") : !one->is_a(type)) continue;
    for (const Field& field : one->fields()) {
      if (is_wanted(field)) made->add_field(field);
    }
  }
  made->table_ = {"+s", "", false, {{kArrowKey, kArrowExport}}, {{"u", kIdColumn, false}}};
  if (version) made->table_.children.push_back({"l", kVersionColumn, false});
  for (Column& column : made->columns_) {
    if (column.type == nullptr) {
      column.builder = std::make_unique<TextBuilder>(TypeTag::String);
      made->table_.children.push_back({"u", column.name, true, {{kArrowKey, kArrowJson}}});
    } else {
      column.builder = ColumnBuilder::make(*column.type);
      made->table_.children.push_back(arrow_field_of(*column.type, column.name));
    }
  }
  return made;
}

void DocumentColumns::add_field(const Field& field) {
  for (Column& column : columns_) {
    if (column.name != field.name) continue;
    if (column.type != nullptr && column.type->name() != field.type->name()) column.type = nullptr;
    return;
  }
  columns_.push_back({field.name, field.type.get(), nullptr});
}

DocumentColumns::Route DocumentColumns::make_route(const DocumentType& type) {
  Route route;
  for (const Column& column : columns_) {
    const Field* field = type.field(column.name);
    if (field == nullptr) continue;
    if (column.type == nullptr) {
      route.texts.emplace_back(field, static_cast<TextBuilder*>(column.builder.get()));
    } else {
      route.router.add(*field, *column.builder);
    }
  }
  route.router.sort();
  return route;
}

Status DocumentColumns::append(const DocumentView& document, Timestamp version) {
  if (document.type() == nullptr) {
    return {StatusCode::UnknownType, fmt::format("{}: the cluster has no schema of its type", document.id())};
  }
  auto route = routes_.find(document.type_id());
  if (route == routes_.end()) route = routes_.emplace(document.type_id(), make_route(*document.type())).first;
  for (const std::string_view part : {document.header_fields(), document.body_fields()}) {
    if (const std::string wrong = route->second.router.route(part); !wrong.empty()) {
      return {StatusCode::InvalidField, fmt::format("{}: {}", document.id(), wrong)};
    }
  }
  FJORD_TRY(append_texts(route->second, document));
  id_.append_text(document.id());
  if (has_version_) version_.append_number(static_cast<std::int64_t>(version.us));
  for (const Column& column : columns_) {
    if (column.builder->rows() < rows()) column.builder->append_null();
  }
  return Status::ok();
}

Status DocumentColumns::append_texts(const Route& route, const DocumentView& document) {
  for (const auto& [field, column] : route.texts) {
    if (!document.has_field(*field)) continue;
    const Field* const only[] = {field};
    FJORD_TRY_ASSIGN(const std::string object, to_json_fields(document, only));
    // {"name":VALUE}
    const std::size_t before = object.find(':', field->name.size() + 2) + 1;
    column->append_text(std::string_view(object).substr(before, object.size() - before - 1));
  }
  return Status::ok();
}

void DocumentColumns::finish(ArrowArray* out) {
  const auto rows = static_cast<std::int64_t>(this->rows());
  ArrayMemory memory{{{}}, std::vector<ArrowArray>(table_.children.size())};
  auto child = memory.children.begin();
  id_.finish(&*child++);
  if (has_version_) version_.finish(&*child++);
  for (const Column& column : columns_) column.builder->finish(&*child++);
  export_array(std::move(memory), rows, 0, out);
}

}  // namespace fjord
