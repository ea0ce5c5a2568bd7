// Paths of updates as text: credits[0].name, charts{no}, moods{"a } b"}.

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "text.h"
#include "update_target.h"

namespace fjord {
namespace {

template <typename T>
Result<FieldValue> integer_key(const DataType& type, std::string_view text) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end) {
    return Status(StatusCode::InvalidField,
                  fmt::format("expected a key of type {}, found {}", type.name(), quoted(text, 40)));
  }
  return FieldValue(value);
}

class PathParser {
 public:
  PathParser(const DocumentType& type, std::string_view text) : type_(type), text_(text) {}

  Result<FieldUpdate> parse() {
    FieldUpdate update;
    const std::string_view name = take_name();
    update.field = type_.field(name);
    if (update.field == nullptr) {
      at_ = 0;
      return error(fmt::format("document type {} has no field {}", type_.name(), quoted(name)));
    }
    const DataType* type = update.field->type.get();
    while (at_ < text_.size()) {
      const std::size_t begin = at_;
      FJORD_TRY_ASSIGN(UpdateStep step, take_step(*type));
      auto next = step_into(*type, step);
      if (!next) {
        at_ = begin;
        return error(next.error().message());
      }
      type = *next;
      update.path.push_back(std::move(step));
    }
    return update;
  }

 private:
  Status error(std::string_view what) const {
    return {StatusCode::InvalidField, fmt::format("path {}, byte {}: {}", quoted(text_), at_, what)};
  }

  std::string_view take_name() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(".[{", at_), text_.size());
    return text_.substr(begin, at_ - begin);
  }

  Result<UpdateStep> take_step(const DataType& type) {
    switch (text_[at_]) {
      case '.':
        return take_member(type);
      case '[':
        return take_index();
      case '{':
        return take_key(type);
      default:
        return error("expected '.', '[' or '{'");
    }
  }

  Result<UpdateStep> take_member(const DataType& type) {
    const std::size_t begin = at_++;
    const std::string_view name = take_name();
    const Field* member = type.field(name);
    if (member == nullptr) {
      at_ = begin;
      return error(type.tag() == TypeTag::Struct ? fmt::format("struct {} has no field {}", type.name(), quoted(name))
                                                 : fmt::format("a value of type {} has no members", type.name()));
    }
    return UpdateStep{UpdateStep::Kind::Member, member->id, {}};
  }

  Result<UpdateStep> take_index() {
    ++at_;
    UpdateStep step{UpdateStep::Kind::Index, 0, {}};
    const char* end = text_.data() + text_.size();
    const auto [stop, failure] = std::from_chars(text_.data() + at_, end, step.number);
    if (failure != std::errc() || stop == end || *stop != ']') return error("expected a position and ']'");
    at_ = static_cast<std::size_t>(stop - text_.data()) + 1;
    return step;
  }

  Result<UpdateStep> take_key(const DataType& type) {
    const std::size_t begin = at_++;
    std::string key;
    if (at_ < text_.size() && text_[at_] == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
        if (text_[at_] == '\\' && ++at_ == text_.size()) break;
        key.push_back(text_[at_]);
      }
      if (at_ >= text_.size()) return error("expected '\"' after the key");
      ++at_;
    } else {
      const std::size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) return error("expected '}' after the key");
      key = text_.substr(at_, end - at_);
      if (key.starts_with('$')) return error("variables are for selections; an update names one key");
      at_ = end;
    }
    if (at_ == text_.size() || text_[at_] != '}') return error("expected '}' after the key");
    ++at_;
    const DataType* key_type = key_type_of(type);
    Status status(StatusCode::InvalidField, fmt::format("a value of type {} has no keys", type.name()));
    if (key_type != nullptr) {
      auto value = key_from_text(*key_type, key);
      if (value) return UpdateStep{UpdateStep::Kind::Key, 0, std::move(*value)};
      status = value.error();
    }
    at_ = begin;
    return error(status.message());
  }

  const DocumentType& type_;
  std::string_view text_;
  std::size_t at_ = 0;
};

bool is_plain(std::string_view key) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !key.empty() && std::all_of(key.begin(), key.end(), plain);
}

std::string key_text(const FieldValue& key) {
  const auto* text = key.get_if<std::string>();
  if (text == nullptr) return describe_value(key);
  if (is_plain(*text)) return *text;
  std::string escaped = "\"";
  for (const char c : *text) {
    if (c == '"' || c == '\\') escaped.push_back('\\');
    escaped.push_back(c);
  }
  return escaped + '"';
}

}  // namespace

Result<FieldValue> key_from_text(const DataType& type, std::string_view text) {
  switch (type.tag()) {
    case TypeTag::String:
      if (!is_utf8(text)) return Status(StatusCode::InvalidField, "a key that is not UTF-8");
      return FieldValue(text);
    case TypeTag::Byte:
      return integer_key<std::int8_t>(type, text);
    case TypeTag::Int:
      return integer_key<std::int32_t>(type, text);
    case TypeTag::Long:
      return integer_key<std::int64_t>(type, text);
    case TypeTag::Bool:
      if (text == "true" || text == "false") return FieldValue(text == "true");
      return Status(StatusCode::InvalidField, fmt::format("expected the key true or false, found {}", quoted(text)));
    default:
      return Status(StatusCode::InvalidField, fmt::format("values of type {} cannot be keys", type.name()));
  }
}

Result<FieldUpdate> parse_update_path(const DocumentType& type, std::string_view text) {
  return PathParser(type, text).parse();
}

std::string update_path_text(const FieldUpdate& update) {
  std::string text = update.field->name;
  const DataType* type = update.field->type.get();
  for (const UpdateStep& step : update.path) {
    switch (step.kind) {
      case UpdateStep::Kind::Member:
        text += "." + type->field_by_id(step.number)->name;
        break;
      case UpdateStep::Kind::Index:
        text += fmt::format("[{}]", step.number);
        break;
      case UpdateStep::Kind::Key:
        text += fmt::format("{{{}}}", key_text(step.key));
        break;
    }
    type = step_into(*type, step).value();
  }
  return text;
}

}  // namespace fjord
