#include "json_encoder.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "json_position.h"
#include "json_scalar.h"
#include "text.h"
#include "wire.h"

namespace fjord {
namespace {

using Kind = JsonNode::Kind;

constexpr std::size_t kFramesUsual = 4;
constexpr std::size_t kFieldsUsual = 16;
constexpr std::string_view kEntryExpected = "expected an object with the members key and value";

}  // namespace

bool JsonEncoder::Frame::has_length(const DataType& value) const {
  return has_fields() || (kind != Kind::Value && fixed_size(value.tag()) == 0);
}

JsonEncoder::JsonEncoder(const DocumentType& type, std::size_t size_hint, JsonValues values)
    : values_(values), document_type_(&type), size_hint_(size_hint) {
  frames_.reserve(kFramesUsual);
  push(Frame::Kind::Value, nullptr, 0);
}

JsonEncoder::JsonEncoder(const DataType& type, JsonValues values) : values_(values) {
  push(Frame::Kind::Value, &type, 0);
}

JsonEncoder::Frame& JsonEncoder::push(Frame::Kind kind, const DataType* type, std::uint64_t offset) {
  if (depth_ == frames_.size()) frames_.emplace_back();
  Frame& frame = frames_[depth_++];
  frame.kind = kind;
  frame.type = type;
  frame.offset = offset;
  frame.count = 0;
  frame.bytes.clear();
  frame.field = nullptr;
  frame.members.clear();
  frame.keys.clear();
  frame.entry_key.clear();
  frame.has_key = false;
  frame.has_value = false;
  return frame;
}

bool JsonEncoder::key(std::string_view name) {
  Frame& frame = top();
  if (frame.kind == Frame::Kind::MapEntry) {
    const bool is_key = name == "key" && !frame.has_key;
    const bool is_value = name == "value" && !frame.has_value;
    if (!is_key && !is_value) return fail(json_error(frame.offset, kEntryExpected), depth_ - 1);
    frame.has_key = frame.has_key || is_key;
    frame.has_value = frame.has_value || is_value;
  } else if (frame.kind == Frame::Kind::Document) {
    frame.field = document_type_->field(name);
  } else if (frame.kind == Frame::Kind::Struct) {
    frame.degrees_max = 0;
    const bool is_degrees = is_position(*frame.type) && (name == "lat" || name == "lng");
    if (is_degrees) frame.degrees_max = name == "lat" ? kLatitudeMax : kLongitudeMax;
    frame.field = frame.type->field(is_degrees ? (name == "lat" ? "y" : "x") : name);
  }
  frame.key = name;
  return true;
}

bool JsonEncoder::scalar(const JsonNode& given) {
  const DataType* type = expect(given);
  if (type == nullptr) return status_.is_ok();
  const JsonNode value = values_ == JsonValues::Converted ? converted(*type, given) : given;
  if (value.kind == Kind::String && is_position(*type)) return position(*type, value);
  Frame& frame = top();
  if (frame.kind == Frame::Kind::Struct && frame.degrees_max != 0) return degrees(value);
  std::string& out = frame.out();
  const std::size_t begin = out.size();
  if (frame.has_fields()) append_field_start(out, frame.field->id, type->tag());
  Status status;
  if (frame.has_length(*type)) {
    LengthPrefix length(out);
    status = encode_scalar(*type, value, out);
    length.finish();
  } else {
    status = encode_scalar(*type, value, out);
  }
  if (!status) return fail(std::move(status), depth_);
  placed(frame, begin, value.offset);
  return true;
}

bool JsonEncoder::start(const JsonNode& value) {
  Frame& frame = top();
  if (frame.kind == Frame::Kind::Value && frame.type == nullptr && value.kind == Kind::Object) {
    Frame& document = push(Frame::Kind::Document, nullptr, value.offset);
    document.bytes.reserve(size_hint_);
    document.members.reserve(kFieldsUsual);
    return true;
  }
  if (frame.kind == Frame::Kind::MapEntries && value.kind == Kind::Object) {
    push(Frame::Kind::MapEntry, frame.type, value.offset);
    return true;
  }
  const DataType* type = expect(value);
  return type != nullptr && start_as(*type, value);
}

bool JsonEncoder::start_as(const DataType& type, const JsonNode& value) {
  const bool is_object = value.kind == Kind::Object;
  Frame::Kind kind = Frame::Kind::Value;
  if (type.tag() == TypeTag::Array && !is_object) kind = Frame::Kind::Array;
  if (type.tag() == TypeTag::WeightedSet && is_object) kind = Frame::Kind::WeightedSet;
  if (type.tag() == TypeTag::Map) kind = is_object ? Frame::Kind::MapObject : Frame::Kind::MapEntries;
  if (type.tag() == TypeTag::Struct && is_object) kind = Frame::Kind::Struct;
  // No collection or struct of this type begins with this JSON value, so encode_scalar() reports the error.
  if (kind == Frame::Kind::Value) return fail(encode_scalar(type, value, scratch_), depth_);
  push(kind, &type, value.offset);
  return true;
}

bool JsonEncoder::position(const DataType& type, const JsonNode& text) {
  const auto found = position_of(text.text);
  if (!found) {
    return fail(json_error(text.offset, fmt::format("expected a position, such as {{\"lat\": 63.4, \"lng\": 10.4}} or "
                                                    "\"N63.4;E10.4\", found {}",
                                                    quoted(text.text, 40))),
                depth_);
  }
  JsonNode number = text;
  number.kind = Kind::Int;
  push(Frame::Kind::Struct, &type, text.offset);
  number.integer = found->x;
  if (!key("x") || !scalar(number)) return false;
  number.integer = found->y;
  return key("y") && scalar(number) && end();
}

bool JsonEncoder::degrees(const JsonNode& value) {
  const int max = std::exchange(top().degrees_max, 0);
  const bool is_number = value.kind == Kind::Int || value.kind == Kind::Uint || value.kind == Kind::Double;
  const auto found = is_number ? millionths_of(value.text, max) : std::nullopt;
  if (!found) {
    return fail(json_error(value.offset, fmt::format("expected degrees from -{0} to {0}, found {1}", max,
                                                     is_number ? std::string(value.text.substr(0, 40))
                                                               : std::string(to_string(value.kind)))),
                depth_);
  }
  JsonNode number = value;
  number.kind = Kind::Int;
  number.integer = *found;
  return scalar(number);
}

const DataType* JsonEncoder::expect(const JsonNode& value) {
  Frame& frame = top();
  switch (frame.kind) {
    case Frame::Kind::Value:
      if (frame.type == nullptr) fail(unexpected_json(value, "an object"), depth_);
      return frame.type;
    case Frame::Kind::Document:
    case Frame::Kind::Struct:
      return expect_member(value);
    case Frame::Kind::Array:
      return frame.type->element();
    case Frame::Kind::WeightedSet:
    case Frame::Kind::MapObject:
      return expect_keyed(value);
    case Frame::Kind::MapEntries:
      fail(json_error(value.offset, kEntryExpected), depth_);
      return nullptr;
    case Frame::Kind::MapEntry:
      if (frame.key == "key") frame.entry_key_offset = value.offset;
      return frame.key == "key" ? frame.type->key() : frame.type->element();
  }
  return nullptr;
}

const DataType* JsonEncoder::expect_member(const JsonNode& value) {
  Frame& frame = top();
  if (frame.field == nullptr) {
    const std::string owner = frame.kind == Frame::Kind::Document
                                  ? fmt::format("document type {}", document_type_->name())
                                  : fmt::format("struct {}", frame.type->name());
    fail(json_error(value.offset, fmt::format("{} has no field {}", owner, quoted(frame.key))), depth_ - 1);
    return nullptr;
  }
  return value.kind == Kind::Null ? nullptr : frame.field->type.get();
}

const DataType* JsonEncoder::expect_keyed(const JsonNode& value) {
  Frame& frame = top();
  const bool is_set = frame.kind == Frame::Kind::WeightedSet;
  const std::size_t begin = frame.bytes.size();
  Status status =
      encode_key_text(is_set ? *frame.type->element() : *frame.type->key(), frame.key, value.offset, frame.bytes);
  if (!status) {
    fail(std::move(status), depth_);
    return nullptr;
  }
  frame.keys.push_back({begin, frame.bytes.size() - begin, value.offset});
  return is_set ? DataType::primitive(TypeTag::Int).get() : frame.type->element();
}

void JsonEncoder::place(const DataType& type, std::string_view head, std::string_view bytes, std::uint64_t offset) {
  Frame& frame = top();
  std::string& out = frame.out();
  const std::size_t begin = out.size();
  if (frame.has_fields()) append_field_start(out, frame.field->id, type.tag());
  if (frame.has_length(type)) put_varint(out, head.size() + bytes.size());
  out += head;
  out += bytes;
  placed(frame, begin, offset);
}

void JsonEncoder::placed(Frame& frame, std::size_t begin, std::uint64_t offset) {
  ++frame.count;
  if (frame.has_fields()) frame.members.push_back({frame.field, begin, frame.bytes.size() - begin, offset});
}

bool JsonEncoder::end() {
  Frame& frame = top();
  if (frame.kind == Frame::Kind::MapEntry) return end_entry(frame);
  if (frame.has_fields()) {
    if (!end_members(frame)) return false;
    --depth_;
    if (frame.kind == Frame::Kind::Struct) place(*frame.type, {}, scratch_, frame.offset);
    return true;
  }
  if (!check_distinct(frame)) return false;
  std::string head;
  if (frame.type->tag() == TypeTag::Map) append_tag(head, frame.type->key()->tag());
  append_tag(head, frame.type->element()->tag());
  put_varint(head, frame.count);
  --depth_;
  place(*frame.type, head, frame.bytes, frame.offset);
  return true;
}

/// Puts the members into the order of their ids; those of a struct into scratch_.
bool JsonEncoder::end_members(Frame& frame) {
  std::sort(frame.members.begin(), frame.members.end(),
            [](const Member& a, const Member& b) { return a.field->id < b.field->id; });
  const auto same = [](const Member& a, const Member& b) { return a.field == b.field; };
  const auto twice = std::adjacent_find(frame.members.begin(), frame.members.end(), same);
  if (twice != frame.members.end()) {
    frame.field = twice->field;
    return fail(json_error(std::max(twice->offset, (twice + 1)->offset), "the field occurs twice"), depth_);
  }
  scratch_.clear();
  if (frame.kind == Frame::Kind::Document) return true;
  for (const Member& member : frame.members) scratch_.append(frame.bytes, member.begin, member.size);
  return true;
}

bool JsonEncoder::end_entry(Frame& entry) {
  if (!entry.has_key || !entry.has_value) return fail(json_error(entry.offset, kEntryExpected), depth_ - 1);
  --depth_;
  Frame& map = top();
  map.keys.push_back({map.bytes.size(), entry.entry_key.size(), entry.entry_key_offset});
  map.bytes += entry.entry_key;
  map.bytes += entry.bytes;
  ++map.count;
  return true;
}

bool JsonEncoder::check_distinct(Frame& frame) {
  const auto bytes = [&](const KeyBytes& key) { return std::string_view(frame.bytes).substr(key.begin, key.size); };
  std::sort(frame.keys.begin(), frame.keys.end(),
            [&](const KeyBytes& a, const KeyBytes& b) { return bytes(a) < bytes(b); });
  const auto twice = std::adjacent_find(frame.keys.begin(), frame.keys.end(),
                                        [&](const KeyBytes& a, const KeyBytes& b) { return bytes(a) == bytes(b); });
  if (twice == frame.keys.end()) return true;
  return fail(json_error(std::max(twice->offset, (twice + 1)->offset), "the key of this element occurs twice"),
              depth_ - 1);
}

bool JsonEncoder::fail(Status status, std::size_t frames) {
  status_ = std::move(status);
  path_.clear();
  const auto add = [&](const std::string& step) {
    const bool needs_dot = !path_.empty() && path_[0] != '[';
    path_.insert(0, step + (needs_dot ? "." : ""));
  };
  for (std::size_t i = frames; i-- > 0;) {
    const Frame& frame = frames_[i];
    switch (frame.kind) {
      case Frame::Kind::Value:
        break;
      case Frame::Kind::Document:
      case Frame::Kind::Struct:
        if (frame.field != nullptr) add(frame.field->name);
        break;
      case Frame::Kind::Array:
      case Frame::Kind::MapEntries:
        add(fmt::format("[{}]", frame.count));
        break;
      case Frame::Kind::WeightedSet:
      case Frame::Kind::MapObject:
        add(quoted(frame.key, 40));
        break;
      case Frame::Kind::MapEntry:
        add(std::string(frame.key));
        break;
    }
  }
  return false;
}

void JsonEncoder::finish(EncodedDocument& document) {
  // frames_[0] holds the place of the whole JSON text, and frames_[1] the object with the document's fields.
  const Frame& frame = frames_[1];
  for (const Member& member : frame.members) {
    std::string& part = member.field->in_header ? document.header : document.body;
    part.append(frame.bytes, member.begin, member.size);
  }
}

}  // namespace fjord
