#include "import_source.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "fjord/document/json.h"

namespace fjord {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string trim(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

Result<const DocumentType*> find_type(const DocumentTypeRepo& types, const std::string& name) {
  if (const DocumentType* type = types.find(name)) return type;
  std::string known;
  for (const auto& type : types.types()) {
    if (!type->name().starts_with("fjord_")) known += (known.empty() ? "" : ", ") + type->name();
  }
  return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"; deployed are: {}", name,
                                                     known.empty() ? "none (see fjord schema deploy)" : known));
}

template <typename T>
Result<FieldValue> parse_number(const DataType& type, const std::string& text) {
  T value{};
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc() && stop == end) return FieldValue(value);
  return Status(
      StatusCode::InvalidField,
      fmt::format("{} of type {}: \"{}\"", error == std::errc::result_out_of_range ? "out of the range" : "not a value",
                  type.name(), text));
}

Result<FieldValue> parse_bool(const std::string& text) {
  const std::string word = lower(text);
  if (word == "true" || word == "1") return FieldValue(true);
  if (word == "false" || word == "0") return FieldValue(false);
  return Status(StatusCode::InvalidField, fmt::format("\"{}\" is neither true nor false", text));
}

std::string id_of(const RowOptions& options, const std::string& user_part) {
  const std::string& name_space = options.namespace_.empty() ? options.type : options.namespace_;
  return fmt::format("id:{}:{}::{}", name_space, options.type, user_part);
}

/// Returns true if `text` is a complete id, as `fjord export` writes it into the column "_id".
bool is_whole_id(const RowOptions& options, const std::string& text) {
  return options.id_field == "_id" &&
         (text.starts_with("id:") || text.starts_with("doc:") || text.starts_with("userdoc:"));
}

/// Parses the JSON text of an array, a weighted set, a map or a struct. Errors: those of fields_from_json().
Result<FieldValue> value_from_json(const DocumentTypeRepo& types, const DocumentType& type, const DocumentId& id,
                                   const Field& field, const std::string& text) {
  FJORD_TRY_ASSIGN(const EncodedDocument encoded,
                   fields_from_json(type, id, fmt::format("{{\"{}\":{}}}", field.name, text)));
  FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(types, encoded.header, encoded.body));
  const std::optional<FieldSlice> slice = view.field(field.name);
  if (slice) return slice->value();
  return Status(StatusCode::InvalidField, fmt::format("\"{}\" is not a value of {}", text, field.type->name()));
}

}  // namespace

Result<FieldValue> value_from_text(const DataType& type, const std::string& text) {
  switch (type.tag()) {
    case TypeTag::String:
      return FieldValue(text);
    case TypeTag::Int:
      return parse_number<std::int32_t>(type, trim(text));
    case TypeTag::Long:
      return parse_number<std::int64_t>(type, trim(text));
    case TypeTag::Byte:
      return parse_number<std::int8_t>(type, trim(text));
    case TypeTag::Float:
      return parse_number<float>(type, trim(text));
    case TypeTag::Double:
      return parse_number<double>(type, trim(text));
    case TypeTag::Bool:
      return parse_bool(trim(text));
    case TypeTag::Raw: {
      if (auto bytes = base64_decode(text)) return FieldValue(RawValue{std::move(*bytes)});
      return Status(StatusCode::InvalidField, "the value is not base64");
    }
    default:
      return Status(StatusCode::InvalidField, fmt::format("a cell cannot hold a value of type {}", type.name()));
  }
}

CsvImport::CsvImport(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types,
                     const DocumentType& type, const RowOptions& options)
    : file_(std::move(file)),
      types_(std::move(types)),
      type_(type),
      options_(options),
      reader_([input = file_.get()](std::span<char> into) { return input->read(into); }) {}

Result<std::unique_ptr<CsvImport>> CsvImport::open(std::unique_ptr<InputFile> file,
                                                   std::shared_ptr<const DocumentTypeRepo> types,
                                                   const RowOptions& options, std::vector<std::string>& warnings) {
  FJORD_TRY_ASSIGN(const DocumentType* type, find_type(*types, options.type));
  std::unique_ptr<CsvImport> import(new CsvImport(std::move(file), std::move(types), *type, options));
  if (Status status = import->read_header(warnings); !status) return status.with_context(import->name());
  return import;
}

Status CsvImport::read_header(std::vector<std::string>& warnings) {
  FJORD_TRY_ASSIGN(const std::optional<FileRecord> record, reader_.next());
  if (!record) return Status(StatusCode::InvalidArgument, "the file is empty, a header row was expected");
  FJORD_TRY_ASSIGN(const std::vector<CsvCell> cells, split_csv(record->text));
  std::optional<std::size_t> id_column;
  for (const CsvCell& cell : cells) {
    const std::string column = trim(cell.text);
    const std::string wanted = lower(column);
    for (const std::string& other : columns_) {
      if (lower(other) == wanted) {
        return Status(StatusCode::InvalidArgument, fmt::format("line 1: the column \"{}\" is there twice", column));
      }
    }
    const bool is_id = !options_.id_field.empty() && wanted == lower(options_.id_field);
    if (is_id) id_column = columns_.size();
    const Field* found = type_.field(column);
    for (const Field& field : type_.fields()) {
      if (found == nullptr && lower(field.name) == wanted) found = &field;
    }
    if (found == nullptr && !is_id) {
      warnings.push_back(
          fmt::format("{}: the column \"{}\" is not a field of {} and is left out", name(), column, type_.name()));
    }
    columns_.push_back(column);
    fields_.push_back(found);
  }
  if (options_.id_field.empty()) return Status::ok();
  if (!id_column) {
    return Status(StatusCode::InvalidArgument, fmt::format("line 1: no column \"{}\" for the ids; there are: {}",
                                                           options_.id_field, fmt::join(columns_, ", ")));
  }
  id_column_ = *id_column;
  return Status::ok();
}

Result<std::optional<FileRecord>> CsvImport::next() {
  FJORD_TRY_ASSIGN(std::optional<FileRecord> record, reader_.next());
  if (!record || !options_.id_field.empty()) return record;
  // The text passes the row number to parse() in its first line.
  scratch_ = fmt::format("{}\n", ++rows_);
  scratch_ += record->text;
  record->text = scratch_;
  return record;
}

Result<rpc::Operation> CsvImport::parse(const FileRecord& record) const {
  std::string_view text = record.text;
  std::string user_part;
  if (options_.id_field.empty()) {
    const std::size_t end = text.find('\n');
    user_part = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  FJORD_TRY_ASSIGN(const std::vector<CsvCell> cells, split_csv(text));
  if (cells.size() != columns_.size()) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("{} cells, but the header has {} columns", cells.size(), columns_.size()));
  }
  if (!options_.id_field.empty()) user_part = trim(cells[id_column_].text);
  if (user_part.empty()) {
    return Status(StatusCode::InvalidId,
                  fmt::format("column \"{}\", which the id is made of, is empty", columns_[id_column_]));
  }
  FJORD_TRY_ASSIGN(DocumentId id,
                   DocumentId::parse(is_whole_id(options_, user_part) ? user_part : id_of(options_, user_part)));
  if (!id.type().empty() && id.type() != type_.name()) {
    return Status(StatusCode::InvalidId, fmt::format("{} is of the type {}, and rows become documents of type {}",
                                                     user_part, id.type(), type_.name()));
  }
  Document document(type_, std::move(id));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (fields_[i] == nullptr) continue;
    const TypeTag tag = fields_[i]->type->tag();
    const bool may_be_empty = tag == TypeTag::String || tag == TypeTag::Raw;
    if (cells[i].text.empty() && !(may_be_empty && cells[i].quoted)) continue;
    const bool is_nested = is_collection(tag) || tag == TypeTag::Struct;
    auto value = is_nested ? value_from_json(*types_, type_, document.id(), *fields_[i], cells[i].text)
                           : value_from_text(*fields_[i]->type, cells[i].text);
    if (!value) return value.error().with_context(fmt::format("column \"{}\"", columns_[i]));
    if (Status status = document.set(*fields_[i], std::move(*value)); !status) {
      return status.with_context(fmt::format("column \"{}\"", columns_[i]));
    }
  }
  EncodedDocument encoded = encode(document);
  return put_operation(document.id().str(), std::move(encoded));
}

JsonImport::JsonImport(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types,
                       const DocumentType& type, const RowOptions& options)
    : FeedSource(std::move(file), std::move(types)), type_(type), options_(options) {}

Result<std::unique_ptr<JsonImport>> JsonImport::open(std::unique_ptr<InputFile> file,
                                                     std::shared_ptr<const DocumentTypeRepo> types,
                                                     const RowOptions& options) {
  FJORD_TRY_ASSIGN(const DocumentType* type, find_type(*types, options.type));
  if (options.id_field.empty()) {
    return Status(StatusCode::InvalidArgument, file->name() + ": rows of JSONL are not numbered, give --id-field");
  }
  return std::unique_ptr<JsonImport>(new JsonImport(std::move(file), std::move(types), *type, options));
}

Result<rpc::Operation> JsonImport::parse(const FileRecord& record) const {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(record.text.data(),
                                                                                  record.text.size());
  if (json.HasParseError()) {
    return Status(StatusCode::InvalidArgument, fmt::format("byte {}: not JSON: {}", json.GetErrorOffset(),
                                                           rapidjson::GetParseError_En(json.GetParseError())));
  }
  if (!json.IsObject()) return Status(StatusCode::InvalidArgument, "expected a JSON object of fields");
  const auto member = json.FindMember(options_.id_field.c_str());
  if (member == json.MemberEnd()) {
    return Status(StatusCode::InvalidId,
                  fmt::format("the member \"{}\", which the id is made of, is missing", options_.id_field));
  }
  std::string user_part;
  if (member->value.IsString()) {
    user_part.assign(member->value.GetString(), member->value.GetStringLength());
  } else if (member->value.IsNumber()) {
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    member->value.Accept(writer);
    user_part = buffer.GetString();
  }
  if (user_part.empty()) {
    return Status(StatusCode::InvalidId,
                  fmt::format("\"{}\", which the id is made of, is neither a number nor a text", options_.id_field));
  }
  FJORD_TRY_ASSIGN(DocumentId id, DocumentId::parse(id_of(options_, user_part)));
  std::string fields(record.text);
  if (type_.field(options_.id_field) == nullptr) {
    json.RemoveMember(member);
    rapidjson::StringBuffer buffer;
    rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
    json.Accept(writer);
    fields.assign(buffer.GetString(), buffer.GetSize());
  }
  FJORD_TRY_ASSIGN(EncodedDocument encoded, fields_from_json(type_, id, fields));
  return put_operation(id.str(), std::move(encoded));
}

}  // namespace fjord
