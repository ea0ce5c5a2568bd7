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

constexpr std::size_t kHeaderShown = 200;

/// Returns the text for a message: in quotation marks, with escapes for what a terminal would act on.
std::string quoted_json(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return out + "\"";
}

std::string field_names(const DocumentType& type) {
  std::string names;
  for (const Field& field : type.fields()) names += (names.empty() ? "" : ", ") + field.name;
  return names;
}

/// Returns true if `text` is a complete id, as `fjord export` writes it into the column "_id".
bool is_whole_id(const RowOptions& options, const std::string& text) {
  constexpr std::string_view kSchemes[] = {"id:", "doc:", "userdoc:", "groupdoc:"};
  const auto begins = [&](std::string_view scheme) { return text.starts_with(scheme); };
  return options.id_field == "_id" && std::any_of(std::begin(kSchemes), std::end(kSchemes), begins);
}

/// Returns the id of a row whose id column has this text, exactly: 007, 7 and "7 " are three names. Errors: InvalidId.
Result<DocumentId> row_id(const RowOptions& options, const DocumentType& type, const std::string& text) {
  FJORD_TRY_ASSIGN(DocumentId id, DocumentId::parse(is_whole_id(options, text) ? text : id_of(options, text)));
  if (!id.type().empty() && id.type() != type.name()) {
    return Status(StatusCode::InvalidId, fmt::format("{} is of the type {}, and rows become documents of type {}", text,
                                                     id.type(), type.name()));
  }
  return id;
}

/// Finds the member of a JSON object that names its row, and where it stands.
class IdMember {
 public:
  IdMember(std::string_view json, const std::string& name)
      : name_(name), stream_(json.data(), json.size()), input_(stream_) {}

  /// Errors: InvalidArgument if the text is not a JSON object, InvalidId if it has no such member, or two.
  Status find() {
    rapidjson::Reader reader;
    constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;
    reader.Parse<kFlags>(input_, *this);
    if (!failure_) return failure_;
    if (reader.HasParseError()) {
      return {StatusCode::InvalidArgument, fmt::format("byte {}: not JSON: {}", reader.GetErrorOffset(),
                                                       rapidjson::GetParseError_En(reader.GetParseErrorCode()))};
    }
    if (!is_found_) {
      return {StatusCode::InvalidId, fmt::format("the member \"{}\", which the id is made of, is missing", name_)};
    }
    if (text_.empty()) {
      return {StatusCode::InvalidId,
              fmt::format("\"{}\", which the id is made of, is neither a number nor a text", name_)};
    }
    return Status::ok();
  }

  /// The value: a text, or the digits of a number as they stand in the file.
  const std::string& text() const { return text_; }
  /// Overwrites the member with blanks, so that the places of all other values stay what they are.
  void blank(std::string& json) const {
    std::size_t end = end_;
    if (json[begin_ - 1] == '{') {
      end = std::min(json.find_first_not_of(" \t\r\n", end), json.size());
      if (end < json.size() && json[end] == ',') ++end;
    }
    std::fill(json.begin() + static_cast<std::ptrdiff_t>(begin_), json.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  }

  // Called by RapidJSON.
  bool Null() { return value({}); }
  bool Bool(bool) { return value({}); }
  bool Int(int) { return value({}); }  // RawNumber() gets all numbers.
  bool Uint(unsigned) { return value({}); }
  bool Int64(std::int64_t) { return value({}); }
  bool Uint64(std::uint64_t) { return value({}); }
  bool Double(double) { return value({}); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return value({text, size}); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return value({text, size}); }
  bool StartObject() { return start(true); }
  bool StartArray() { return start(false); }
  bool EndObject(rapidjson::SizeType) { return end(); }
  bool EndArray(rapidjson::SizeType) { return end(); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (depth_ != 1) return true;
    is_wanted_ = std::string_view(text, size) == name_;
    if (!is_wanted_) return true;
    if (is_found_) {
      failure_ = {StatusCode::InvalidId,
                  fmt::format("the member \"{}\", which the id is made of, is there twice", name_)};
    }
    begin_ = last_;
    return failure_.is_ok();
  }

 private:
  // The iterative parser has not consumed a bracket when it calls.
  bool start(bool is_object) {
    if (depth_ == 0 && !is_object) return value({});
    ++depth_;
    if (depth_ == 1) last_ = stream_.Tell() + 1;
    return true;
  }
  bool end() {
    --depth_;
    return value_until(stream_.Tell() + 1, {});
  }
  bool value(std::string_view text) { return value_until(stream_.Tell(), text); }
  bool value_until(std::size_t at, std::string_view text) {
    if (depth_ == 0 && last_ == 0) {
      failure_ = {StatusCode::InvalidArgument, "expected a JSON object of fields"};
      return false;
    }
    if (depth_ != 1) return true;
    last_ = at;
    if (!is_wanted_) return true;
    is_wanted_ = false;
    is_found_ = true;
    text_ = text;
    end_ = last_;
    return true;
  }

  const std::string& name_;
  rapidjson::MemoryStream stream_;
  rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> input_;
  int depth_ = 0;
  std::size_t last_ = 0;  ///< Where the last bracket or value of the object ended.
  bool is_wanted_ = false;
  bool is_found_ = false;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::string text_;
  Status failure_;
};

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

Status CsvImport::check_columns() const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].find('\r') != std::string::npos) {
      return {StatusCode::InvalidArgument,
              fmt::format("line 1: the column {} has a carriage return: lines have to end with \\n or \\r\\n",
                          quoted_json(columns_[i]))};
    }
    if (std::find(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(i), columns_[i]) !=
        columns_.begin() + static_cast<std::ptrdiff_t>(i)) {
      return {StatusCode::InvalidArgument,
              fmt::format("line 1: the column {} is there twice", quoted_json(columns_[i]))};
    }
  }
  return Status::ok();
}

std::optional<std::size_t> CsvImport::find_column(const std::string& name) const {
  const auto exact = std::find(columns_.begin(), columns_.end(), name);
  if (exact != columns_.end()) return static_cast<std::size_t>(exact - columns_.begin());
  const auto same = [wanted = lower(name)](const std::string& column) { return lower(column) == wanted; };
  const auto found = std::find_if(columns_.begin(), columns_.end(), same);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

const Field* CsvImport::field_of(const std::string& column) const {
  if (const Field* exact = type_.field(column)) return exact;
  for (const Field& field : type_.fields()) {
    // Another column may have the exact name of this field.
    const bool is_taken = std::find(columns_.begin(), columns_.end(), field.name) != columns_.end();
    if (!is_taken && lower(field.name) == lower(column)) return &field;
  }
  return nullptr;
}

Status CsvImport::read_header(std::vector<std::string>& warnings) {
  FJORD_TRY_ASSIGN(const std::optional<FileRecord> record, reader_.next());
  if (!record) return Status(StatusCode::InvalidArgument, "the file is empty, a header row was expected");
  if (record->text.starts_with("\xff\xfe") || record->text.starts_with("\xfe\xff")) {
    return Status(StatusCode::InvalidArgument,
                  "the text is UTF-16, UTF-8 was expected: iconv -f UTF-16 -t UTF-8 makes it");
  }
  FJORD_TRY_ASSIGN(const std::vector<CsvCell> cells, split_csv(record->text));
  for (const CsvCell& cell : cells) columns_.push_back(trim(cell.text));
  FJORD_TRY(check_columns());
  const auto id_column = options_.id_field.empty() ? std::nullopt : find_column(options_.id_field);
  bool has_field = false;
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Field* const field = field_of(columns_[i]);
    if (field != nullptr && std::find(fields_.begin(), fields_.end(), field) != fields_.end()) {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("line 1: two columns for the field {}, which differ in case only", field->name));
    }
    fields_.push_back(field);
    has_field = has_field || field != nullptr;
    if (field == nullptr && id_column != i) unknown.push_back(quoted_json(columns_[i]));
  }
  if (!has_field) {
    return Status(
        StatusCode::InvalidArgument,
        fmt::format("line 1: no column is a field of {}: expected a row of names with commas between them, found {}",
                    type_.name(), quoted_json(record->text.substr(0, kHeaderShown))));
  }
  if (!id_column && !options_.id_field.empty()) {
    return Status(StatusCode::InvalidArgument, fmt::format("line 1: no column \"{}\" for the ids; there are: {}",
                                                           options_.id_field, fmt::join(columns_, ", ")));
  }
  if (!unknown.empty() && !options_.ignore_unknown) {
    return Status(
        StatusCode::InvalidArgument,
        fmt::format(
            "line 1: no fields of {}: {}; its fields are {}; --ignore-unknown (ignore_unknown) leaves such columns out",
            type_.name(), fmt::join(unknown, ", "), field_names(type_)));
  }
  for (const std::string& column : unknown) {
    warnings.push_back(
        fmt::format("{}: the column {} is not a field of {} and is left out", name(), column, type_.name()));
  }
  id_column_ = id_column.value_or(0);  // Not used without an id field.
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
  if (!options_.id_field.empty()) user_part = cells[id_column_].text;
  if (user_part.empty()) {
    return Status(StatusCode::InvalidId,
                  fmt::format("column \"{}\", which the id is made of, is empty", columns_[id_column_]));
  }
  FJORD_TRY_ASSIGN(DocumentId id, row_id(options_, type_, user_part));
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
    : FeedSource(std::move(file), std::move(types), options.values), type_(type), options_(options) {}

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
  IdMember member(record.text, options_.id_field);
  FJORD_TRY(member.find());
  FJORD_TRY_ASSIGN(const DocumentId id, row_id(options_, type_, member.text()));
  std::string fields(record.text);
  if (type_.field(options_.id_field) == nullptr) member.blank(fields);
  FJORD_TRY_ASSIGN(EncodedDocument encoded, fields_from_json(type_, id, fields, values()));
  return put_operation(id.str(), std::move(encoded));
}

}  // namespace fjord
