// Converts JSON to the wire form without a Document in between.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <vector>

#include "fjord/document/json.h"
#include "json_tree.h"
#include "json_value.h"
#include "text.h"
#include "wire.h"

namespace fjord {
namespace {

using Kind = JsonNode::Kind;

/// Writes values of a JSON tree in the wire form. After an error, path() names the place within the document's fields.
class ValueEncoder {
 public:
  explicit ValueEncoder(const JsonTree& tree) : tree_(tree) {}

  /// Encodes the fields of a document; null means "not set".
  Status encode_document(const DocumentType& type, const JsonNode& object, EncodedDocument& out) {
    std::vector<Member> members;
    FJORD_TRY(collect(
        object, [&](std::string_view name) { return type.field(name); }, fmt::format("document type {}", type.name()),
        members));
    for (const Member& member : members) {
      FJORD_TRY(encode_member(member, member.field->in_header ? out.header : out.body));
    }
    return Status::ok();
  }

  /// Encodes one value in the form of encode_value().
  Status encode_one(const DataType& type, const JsonNode& node, std::string& out) { return encode(type, node, out); }

  const std::string& path() const { return path_; }

 private:
  struct Member {
    const Field* field;
    const JsonNode* value;
  };

  static Status error(std::uint64_t offset, std::string_view what) {
    return {StatusCode::InvalidField, fmt::format("JSON, byte {}: {}", offset, what)};
  }
  static Status unexpected(const JsonNode& node, std::string_view expected) {
    return error(node.offset, fmt::format("expected {}, found {}", expected, to_string(node.kind)));
  }

  void in_member(std::string_view name) {
    const bool needs_dot = !path_.empty() && path_[0] != '[';
    path_.insert(0, fmt::format("{}{}", name, needs_dot ? "." : ""));
  }
  void in_element(std::uint64_t index) {
    const bool needs_dot = !path_.empty() && path_[0] != '[';
    path_.insert(0, fmt::format("[{}]{}", index, needs_dot ? "." : ""));
  }

  /// Collects the members of `object` that are not null, as fields in ascending order of their ids.
  template <typename Lookup>
  Status collect(const JsonNode& object, Lookup lookup, const std::string& owner, std::vector<Member>& members) {
    if (object.kind != Kind::Object) return unexpected(object, "an object");
    for (std::uint32_t i = tree_.first(object); i != object.next; i = tree_.at(i).next) {
      const JsonNode& value = tree_.at(i);
      const Field* field = lookup(value.key);
      if (field == nullptr) return error(value.offset, fmt::format("{} has no field {}", owner, quoted(value.key)));
      if (value.kind != Kind::Null) members.push_back({field, &value});
    }
    const auto by_id = [](const Member& a, const Member& b) { return a.field->id < b.field->id; };
    std::sort(members.begin(), members.end(), by_id);
    const auto same = [](const Member& a, const Member& b) { return a.field == b.field; };
    const auto twice = std::adjacent_find(members.begin(), members.end(), same);
    if (twice == members.end()) return Status::ok();
    in_member(twice->field->name);
    return error(std::max(twice->value->offset, (twice + 1)->value->offset), "the field occurs twice");
  }

  Status encode_member(const Member& member, std::string& out) {
    append_field_start(out, member.field->id, member.field->type->tag());
    LengthPrefix length(out);
    Status status = encode(*member.field->type, *member.value, out);
    length.finish();
    if (!status) in_member(member.field->name);
    return status;
  }

  Status encode(const DataType& type, const JsonNode& node, std::string& out) {
    switch (type.tag()) {
      case TypeTag::String:
        if (node.kind != Kind::String) return unexpected(node, "a string");
        out += node.text;
        return Status::ok();
      case TypeTag::Raw:
        return encode_raw(node, out);
      case TypeTag::Bool:
        if (node.kind != Kind::Bool) return unexpected(node, "true or false");
        out.push_back(node.boolean ? '\1' : '\0');
        return Status::ok();
      case TypeTag::Byte:
        return encode_integer<std::int8_t>(type, node, out);
      case TypeTag::Int:
        return encode_integer<std::int32_t>(type, node, out);
      case TypeTag::Long:
        return encode_integer<std::int64_t>(type, node, out);
      case TypeTag::Float:
        return encode_floating<float>(type, node, out);
      case TypeTag::Double:
        return encode_floating<double>(type, node, out);
      case TypeTag::Array:
        return encode_array(type, node, out);
      case TypeTag::WeightedSet:
        return encode_weighted_set(type, node, out);
      case TypeTag::Map:
        return encode_map(type, node, out);
      case TypeTag::Struct:
        return encode_struct(type, node, out);
      case TypeTag::None:
        break;
    }
    return error(node.offset, fmt::format("values of type {} are not stored", type.name()));
  }

  static Status encode_raw(const JsonNode& node, std::string& out) {
    if (node.kind != Kind::String) return unexpected(node, "a string in base64");
    const auto bytes = base64_decode(node.text);
    if (!bytes) return error(node.offset, fmt::format("expected base64, found {}", quoted(node.text, 40)));
    out += *bytes;
    return Status::ok();
  }

  template <typename T>
  static Status encode_integer(const DataType& type, const JsonNode& node, std::string& out) {
    using Limits = std::numeric_limits<T>;
    if (node.kind != Kind::Int && node.kind != Kind::Uint) {
      return unexpected(node, fmt::format("an integer for type {}", type.name()));
    }
    if (node.kind == Kind::Uint || node.integer < Limits::min() || node.integer > Limits::max()) {
      const std::string digits =
          node.kind == Kind::Uint ? std::to_string(node.unsigned_integer) : std::to_string(node.integer);
      return error(node.offset, fmt::format("{} is out of the range of {}", digits, type.name()));
    }
    put_fixed(out, static_cast<T>(node.integer));
    return Status::ok();
  }

  template <typename T>
  static Status encode_floating(const DataType& type, const JsonNode& node, std::string& out) {
    double number = 0;
    switch (node.kind) {
      case Kind::Double:
        number = node.number;
        break;
      case Kind::Int:
        number = static_cast<double>(node.integer);
        break;
      case Kind::Uint:
        number = static_cast<double>(node.unsigned_integer);
        break;
      default:
        return unexpected(node, fmt::format("a number for type {}", type.name()));
    }
    if (!std::isfinite(static_cast<T>(number))) {
      return error(node.offset, fmt::format("{} is out of the range of {}", number, type.name()));
    }
    put_fixed(out, static_cast<T>(number));
    return Status::ok();
  }

  Status encode_element(const DataType& type, const JsonNode& node, std::string& out) {
    if (fixed_size(type.tag()) > 0) return encode(type, node, out);
    LengthPrefix length(out);
    Status status = encode(type, node, out);
    length.finish();
    return status;
  }

  std::uint64_t count_children(const JsonNode& node) const {
    std::uint64_t count = 0;
    for (std::uint32_t i = tree_.first(node); i != node.next; i = tree_.at(i).next) ++count;
    return count;
  }

  Status encode_array(const DataType& type, const JsonNode& node, std::string& out) {
    if (node.kind != Kind::Array) return unexpected(node, fmt::format("an array for type {}", type.name()));
    append_tag(out, type.element()->tag());
    put_varint(out, count_children(node));
    std::uint64_t index = 0;
    for (std::uint32_t i = tree_.first(node); i != node.next; i = tree_.at(i).next, ++index) {
      if (Status status = encode_element(*type.element(), tree_.at(i), out); !status) {
        in_element(index);
        return status;
      }
    }
    return Status::ok();
  }

  /// Where a key is in the output, and the JSON that it comes from.
  struct KeyBytes {
    std::size_t begin;
    std::size_t size;
    const JsonNode* node;
  };

  /// Encodes a key of a map or weighted set that JSON writes as the name of an object's member.
  Status encode_key_text(const DataType& type, const JsonNode& member, std::string& out, std::vector<KeyBytes>& keys) {
    const std::size_t begin = out.size();
    Status status;
    switch (type.tag()) {
      case TypeTag::String:
        put_string(out, member.key);
        break;
      case TypeTag::Byte:
        status = encode_key_number<std::int8_t>(type, member, out);
        break;
      case TypeTag::Int:
        status = encode_key_number<std::int32_t>(type, member, out);
        break;
      case TypeTag::Long:
        status = encode_key_number<std::int64_t>(type, member, out);
        break;
      case TypeTag::Bool:
        if (member.key != "true" && member.key != "false") {
          status = error(member.offset, fmt::format("expected the key true or false, found {}", quoted(member.key)));
        }
        out.push_back(member.key == "true" ? '\1' : '\0');
        break;
      default:
        status = error(member.offset, fmt::format("values of type {} cannot be keys in an object", type.name()));
    }
    keys.push_back({begin, out.size() - begin, &member});
    return status;
  }

  template <typename T>
  static Status encode_key_number(const DataType& type, const JsonNode& member, std::string& out) {
    T value = 0;
    const char* end = member.key.data() + member.key.size();
    const auto [stop, failure] = std::from_chars(member.key.data(), end, value);
    if (failure != std::errc() || stop != end) {
      return error(member.offset, fmt::format("expected a key of type {}, found {}", type.name(), quoted(member.key)));
    }
    put_fixed(out, value);
    return Status::ok();
  }

  static Status check_distinct(std::string_view out, std::vector<KeyBytes>& keys) {
    const auto bytes = [&](const KeyBytes& key) { return out.substr(key.begin, key.size); };
    std::sort(keys.begin(), keys.end(), [&](const KeyBytes& a, const KeyBytes& b) { return bytes(a) < bytes(b); });
    const auto twice = std::adjacent_find(keys.begin(), keys.end(),
                                          [&](const KeyBytes& a, const KeyBytes& b) { return bytes(a) == bytes(b); });
    if (twice == keys.end()) return Status::ok();
    return error(std::max(twice->node->offset, (twice + 1)->node->offset), "the key of this element occurs twice");
  }

  Status encode_weighted_set(const DataType& type, const JsonNode& node, std::string& out) {
    if (node.kind != Kind::Object) return unexpected(node, fmt::format("an object for type {}", type.name()));
    append_tag(out, type.element()->tag());
    put_varint(out, count_children(node));
    std::vector<KeyBytes> keys;
    for (std::uint32_t i = tree_.first(node); i != node.next; i = tree_.at(i).next) {
      const JsonNode& member = tree_.at(i);
      Status status = encode_key_text(*type.element(), member, out, keys);
      if (status) status = encode_integer<std::int32_t>(*DataType::primitive(TypeTag::Int), member, out);
      if (!status) {
        in_member(quoted(member.key, 40));
        return status;
      }
    }
    return check_distinct(out, keys);
  }

  Status encode_map(const DataType& type, const JsonNode& node, std::string& out) {
    if (node.kind != Kind::Object && node.kind != Kind::Array) {
      return unexpected(node, fmt::format("an object, or an array of {{key, value}}, for type {}", type.name()));
    }
    append_tag(out, type.key()->tag());
    append_tag(out, type.element()->tag());
    put_varint(out, count_children(node));
    std::vector<KeyBytes> keys;
    std::uint64_t index = 0;
    for (std::uint32_t i = tree_.first(node); i != node.next; i = tree_.at(i).next, ++index) {
      const JsonNode& child = tree_.at(i);
      if (node.kind == Kind::Array) {
        if (Status status = encode_map_entry(type, child, out, keys); !status) {
          in_element(index);
          return status;
        }
        continue;
      }
      Status status = encode_key_text(*type.key(), child, out, keys);
      if (status) status = encode_element(*type.element(), child, out);
      if (!status) {
        in_member(quoted(child.key, 40));
        return status;
      }
    }
    return check_distinct(out, keys);
  }

  /// Encodes an entry of a map that JSON writes as {"key": ..., "value": ...}.
  Status encode_map_entry(const DataType& type, const JsonNode& entry, std::string& out, std::vector<KeyBytes>& keys) {
    const JsonNode* key = tree_.member(entry, "key");
    const JsonNode* value = tree_.member(entry, "value");
    if (key == nullptr || value == nullptr || count_children(entry) != 2) {
      return error(entry.offset, "expected an object with the members key and value");
    }
    const std::size_t begin = out.size();
    if (Status status = encode_element(*type.key(), *key, out); !status) {
      in_member("key");
      return status;
    }
    keys.push_back({begin, out.size() - begin, key});
    Status status = encode_element(*type.element(), *value, out);
    if (!status) in_member("value");
    return status;
  }

  Status encode_struct(const DataType& type, const JsonNode& node, std::string& out) {
    std::vector<Member> members;
    FJORD_TRY(collect(
        node, [&](std::string_view name) { return type.field(name); }, fmt::format("struct {}", type.name()), members));
    for (const Member& member : members) FJORD_TRY(encode_member(member, out));
    return Status::ok();
  }

  const JsonTree& tree_;
  std::string path_;
};

}  // namespace

Result<EncodedDocument> encode_json_fields(const JsonTree& tree, const JsonNode& object, const DocumentType& type,
                                           const DocumentId& id, std::size_t size_hint) {
  EncodedDocument document;
  document.header.reserve(id.str().size() + 64);
  document.body.reserve(size_hint);
  append_header_prefix(document.header, type, id.str());
  ValueEncoder encoder(tree);
  if (Status status = encoder.encode_document(type, object, document); !status) {
    const std::string place = encoder.path().empty() ? "" : fmt::format(", field {}", encoder.path());
    return status.with_context(fmt::format("document {}{}", quoted(id.str()), place));
  }
  return document;
}

Result<FieldValue> value_from_json(const JsonTree& tree, const JsonNode& node, const DataType& type,
                                   std::string& place) {
  ValueEncoder encoder(tree);
  std::string bytes;
  if (Status status = encoder.encode_one(type, node, bytes); !status) {
    place = encoder.path();
    return status;
  }
  return FieldSlice{type.tag(), bytes}.value();
}

Result<EncodedDocument> fields_from_json(const DocumentType& type, const DocumentId& id, std::string_view json_object) {
  if (!id.type().empty() && id.type() != type.name()) {
    return Status(StatusCode::InvalidId, fmt::format("document {} is not of type {}", quoted(id.str()), type.name()));
  }
  FJORD_TRY_ASSIGN(JsonTree tree, JsonTree::parse(json_object));
  return encode_json_fields(tree, tree.root(), type, id, json_object.size());
}

}  // namespace fjord
