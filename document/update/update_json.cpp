// Updates as JSON, in the form of Vespa's document API.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "json/json_scalar.h"
#include "json/json_value.h"
#include "text.h"
#include "update_target.h"
#include "wire.h"

namespace fjord {
namespace {

using Kind = JsonNode::Kind;
using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

/// The most JSON values of an update. Its operands are values in memory, each of some hundred bytes.
constexpr std::size_t kUpdateValuesMax = std::size_t{4} << 20;

/// The bits of a number from 2^63 on that a double does not hold.
constexpr std::uint64_t kLostInDouble = 0x7ff;
/// Digits of a number that is surely outside of 64 bits.
constexpr std::size_t kDigitsMax = 24;

bool is_integer(TypeTag tag) { return tag == TypeTag::Byte || tag == TypeTag::Int || tag == TypeTag::Long; }

/// Returns the digits of a JSON number without point and exponent: 1000 for 1e3. Empty if it is not whole, or is so
/// large that no 64 bits hold it.
std::optional<std::string> whole_digits(std::string_view text) {
  const std::size_t exponent_at = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, exponent_at);
  std::int64_t exponent = 0;
  if (exponent_at < text.size()) {
    const char* begin = text.data() + exponent_at + 1;
    if (*begin == '+') ++begin;
    if (std::from_chars(begin, text.data() + text.size(), exponent).ec != std::errc()) return std::nullopt;
  }
  std::string digits;
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  for (const char c : mantissa) {
    if (c != '.' && c != '-' && (c != '0' || !digits.empty())) digits.push_back(c);
  }
  if (point < mantissa.size()) exponent -= static_cast<std::int64_t>(mantissa.size() - point - 1);
  for (; !digits.empty() && digits.back() == '0'; digits.pop_back()) ++exponent;
  if (digits.empty()) return "0";
  if (exponent < 0 || exponent > static_cast<std::int64_t>(kDigitsMax) || digits.size() > kDigitsMax) {
    return std::nullopt;
  }
  return (mantissa.front() == '-' ? "-" : "") + digits + std::string(static_cast<std::size_t>(exponent), '0');
}

Status error(std::uint64_t offset, std::string_view what) {
  return {StatusCode::InvalidField, fmt::format("JSON, byte {}: {}", offset, what)};
}
Status unexpected(const JsonNode& node, std::string_view expected) {
  return error(node.offset, fmt::format("expected {}, found {}", expected, to_string(node.kind)));
}

UpdateAction action_named(std::string_view name) {
  for (auto action = UpdateAction::Assign; action <= UpdateAction::Divide;
       action = static_cast<UpdateAction>(static_cast<int>(action) + 1)) {
    if (action != UpdateAction::Clear && to_string(action) == name) return action;
  }
  return UpdateAction::None;
}

class UpdateReader {
 public:
  UpdateReader(const JsonTree& tree, DocumentUpdate& update, JsonValues values)
      : tree_(tree), update_(update), values_(values) {}

  Status read(const JsonNode& object) {
    if (object.kind != Kind::Object) return unexpected(object, "an object of paths and their updates");
    for (std::uint32_t i = tree_.first(object); i != object.next; i = tree_.at(i).next) {
      const JsonNode& member = tree_.at(i);
      auto path = parse_update_path(update_.type(), member.key);
      if (!path) return error(member.offset, path.error().message());
      path_ = std::move(*path);
      Status status = read_actions(member);
      if (!status) return status.with_context(place());
    }
    return Status::ok();
  }

 private:
  std::string place() const {
    const bool needs_dot = !place_.empty() && place_[0] != '[';
    return fmt::format("field {}{}{}", update_path_text(path_), needs_dot ? "." : "", place_);
  }

  /// Reads {"assign": ...}, or several actions in their order.
  Status read_actions(const JsonNode& object) {
    if (object.kind != Kind::Object || tree_.first(object) == object.next) {
      return unexpected(object, "an object like {\"assign\": ...}");
    }
    for (std::uint32_t i = tree_.first(object); i != object.next; i = tree_.at(i).next) {
      const JsonNode& member = tree_.at(i);
      if (member.key == "match") {
        const std::size_t depth = path_.path.size();
        FJORD_TRY(read_match(member));
        path_.path.resize(depth);
      } else {
        FJORD_TRY(read_action(member));
      }
    }
    return Status::ok();
  }

  /// Reads {"element": <key or position>, "<action>": ...}.
  Status read_match(const JsonNode& object) {
    const JsonNode* element = tree_.member(object, "element");
    const JsonNode* action = nullptr;
    int others = 0;
    if (object.kind != Kind::Object) return unexpected(object, "an object with an element and one action");
    for (std::uint32_t i = tree_.first(object); i != object.next; i = tree_.at(i).next, ++others) {
      if (&tree_.at(i) != element) action = &tree_.at(i);
    }
    if (element == nullptr || action == nullptr || others != 2) {
      return error(object.offset, "expected an object with an element and one action");
    }
    FJORD_TRY_ASSIGN(const DataType* type, update_target(path_));
    FJORD_TRY_ASSIGN(UpdateStep step, step_to(*type, *element));
    path_.path.push_back(std::move(step));
    return action->key == "match" ? read_match(*action) : read_action(*action);
  }

  Result<UpdateStep> step_to(const DataType& type, const JsonNode& element) {
    if (type.tag() == TypeTag::Array) {
      std::int64_t index = -1;
      if (element.kind == Kind::Int) index = element.integer;
      if (element.kind == Kind::String) {
        const auto number = key_from_text(*DataType::primitive(TypeTag::Long), element.text);
        if (number) index = *number->get_if<std::int64_t>();
      }
      if (index < 0 || index > static_cast<std::int64_t>(UINT32_MAX)) {
        return unexpected(element, "a position in the array");
      }
      return UpdateStep{UpdateStep::Kind::Index, static_cast<std::uint32_t>(index), {}};
    }
    const DataType* key_type = key_type_of(type);
    if (key_type == nullptr) {
      return error(element.offset,
                   fmt::format("match expects an array, weightedset or map, found a value of type {}", type.name()));
    }
    FJORD_TRY_ASSIGN(FieldValue key, key_of(*key_type, element));
    return UpdateStep{UpdateStep::Kind::Key, 0, std::move(key)};
  }

  /// Keys of any type may be JSON strings, as in objects.
  Result<FieldValue> key_of(const DataType& type, const JsonNode& node) {
    if (node.kind != Kind::String) return value_from_json(tree_, node, type, place_, values_);
    auto key = key_from_text(type, node.text);
    if (!key) return error(node.offset, key.error().message());
    return key;
  }

  Status read_action(const JsonNode& node) {
    FieldUpdate update = path_;
    update.action = action_named(node.key);
    FJORD_TRY_ASSIGN(const DataType* target, update_target(path_));
    if (update.action == UpdateAction::None) {
      return error(
          node.offset,
          fmt::format("expected assign, add, remove, increment, decrement, multiply, divide or match, found {}",
                      quoted(node.key)));
    }
    if (update.action == UpdateAction::Remove) {
      FJORD_TRY(read_removed(*target, node, update));
    } else if (is_arithmetic(update.action)) {
      const auto& number = *DataType::primitive(TypeTag::Double);
      FJORD_TRY(read_number(*target, values_ == JsonValues::Converted ? converted(number, node) : node, update));
    } else if (update.action == UpdateAction::Assign && node.kind == Kind::Null) {
      update.action = UpdateAction::Clear;
    } else if (update.action == UpdateAction::Assign || is_collection(target->tag())) {
      FJORD_TRY_ASSIGN(update.operand, value_from_json(tree_, node, *target, place_, values_));
    }
    // add() reports all other errors, such as an add to a number. Its messages name the field, which read() names too.
    const Status status = update_.add(std::move(update));
    if (status) return status;
    std::string_view message = status.message();
    if (const std::string named = place() + ": "; message.starts_with(named)) message.remove_prefix(named.size());
    return {status.code(), fmt::format("JSON, byte {}: {}", node.offset, message)};
  }

  /// A number removes the whole value that the path names: {"charts{no}": {"remove": 0}}.
  Status read_removed(const DataType& target, const JsonNode& node, FieldUpdate& update) {
    if (node.kind == Kind::Int && !update.path.empty()) {
      update.action = UpdateAction::Clear;
      return Status::ok();
    }
    if (!is_collection(target.tag())) return Status::ok();  // nothing to remove from; add() reports the error
    const DataType* key_type = key_type_of(target);
    if (node.kind != Kind::Array && (node.kind != Kind::Object || key_type == nullptr)) {
      return unexpected(node, key_type == nullptr ? "an array of elements" : "an object or array of keys");
    }
    ArrayValue removed;
    std::uint64_t index = 0;
    for (std::uint32_t i = tree_.first(node); i != node.next; i = tree_.at(i).next, ++index) {
      const JsonNode& each = tree_.at(i);
      auto value = node.kind == Kind::Object ? key_from_text(*key_type, each.key)
                   : key_type != nullptr     ? key_of(*key_type, each)
                                             : value_from_json(tree_, each, *target.element(), place_, values_);
      if (!value) {
        place_ = fmt::format("[{}]{}{}", index, place_.empty() || place_[0] == '[' ? "" : ".", place_);
        return node.kind == Kind::Object ? error(each.offset, value.error().message()) : value.error();
      }
      removed.elements.push_back(std::move(*value));
    }
    update.operand = std::move(removed);
    return Status::ok();
  }

  /// An integer is kept as it is, and so is a whole number that no double holds. Any other is the nearest double.
  static Status read_number(const DataType& target, const JsonNode& node, FieldUpdate& update) {
    if (node.kind != Kind::Int && node.kind != Kind::Uint && node.kind != Kind::Double) {
      return unexpected(node, "a number");
    }
    if (node.kind == Kind::Int) {
      update.operand = node.integer;
      return Status::ok();
    }
    const double real = node.kind == Kind::Uint ? static_cast<double>(node.unsigned_integer) : node.number;
    update.operand = real;
    const std::optional<std::string> digits = whole_digits(node.text);
    if (!digits) return Status::ok();
    const char* const end = digits->data() + digits->size();
    std::int64_t integer = 0;
    if (std::from_chars(digits->data(), end, integer).ec == std::errc()) {
      if (static_cast<long double>(real) != static_cast<long double>(integer)) update.operand = integer;
      return Status::ok();
    }
    std::uint64_t size = 0;
    const bool has_64_bits =
        std::from_chars(digits->data() + (digits->front() == '-' ? 1 : 0), end, size).ec == std::errc();
    if (has_64_bits && is_integer(target.tag()) && (size & kLostInDouble) != 0) {
      return error(node.offset, fmt::format("{} of type {} by {}: expected a number of 64 bits with a sign",
                                            to_string(update.action), target.name(), node.text));
    }
    return Status::ok();
  }

  const JsonTree& tree_;
  DocumentUpdate& update_;
  const JsonValues values_;
  FieldUpdate path_;   // the path of the current change, without action
  std::string place_;  // place of an error within an operand
};

// ---- Writing

void write_text(Writer& writer, std::string_view text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}
void write_key(Writer& writer, std::string_view text) {
  writer.Key(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

Status write_value(Writer& writer, const DataType& type, const FieldValue& value) {
  const std::string bytes = encode_value(type, value);
  FJORD_TRY_ASSIGN(const std::string json, value_to_json(type, FieldSlice{type.tag(), bytes}));
  writer.RawValue(json.data(), json.size(), rapidjson::kObjectType);
  return Status::ok();
}

/// Keeps a point or exponent in a Double. Errors: InvalidField for a number that is not finite, which changes nothing
/// in a way that can be computed.
Status write_number(Writer& writer, const FieldValue& number) {
  const DataType& type = *DataType::primitive(number.tag());
  const std::string bytes = encode_value(type, number);
  FJORD_TRY_ASSIGN(std::string json, value_to_json(type, FieldSlice{type.tag(), bytes}));
  if (type.tag() == TypeTag::Double && json.find_first_of(".e") == std::string::npos) json += ".0";
  writer.RawValue(json.data(), json.size(), rapidjson::kNumberType);
  return Status::ok();
}

Status write_operand(Writer& writer, const FieldUpdate& update) {
  FJORD_TRY_ASSIGN(const DataType* target, update_target(update));
  if (update.action == UpdateAction::Clear) {
    writer.Null();
  } else if (update.action == UpdateAction::Remove) {
    const DataType* key_type = key_type_of(*target);
    writer.StartArray();
    for (const FieldValue& each : update.operand.get_if<ArrayValue>()->elements) {
      FJORD_TRY(write_value(writer, key_type == nullptr ? *target->element() : *key_type, each));
    }
    writer.EndArray();
  } else if (is_arithmetic(update.action)) {
    const auto* real = update.operand.get_if<double>();
    if (real != nullptr && !std::isfinite(*real)) {
      return {StatusCode::InvalidField, fmt::format("field {}: {} by a number that is not finite",
                                                    update_path_text(update), to_string(update.action))};
    }
    FJORD_TRY(write_number(writer, update.operand));
  } else {
    FJORD_TRY(write_value(writer, *target, update.operand));
  }
  return Status::ok();
}

}  // namespace

Result<DocumentUpdate> update_from_json(const JsonTree& tree, const JsonNode& object, const DocumentType& type,
                                        const DocumentId& id, JsonValues values) {
  DocumentUpdate update(type, id);
  if (Status status = UpdateReader(tree, update, values).read(object); !status) {
    if (id.empty()) return status;
    return status.with_context(fmt::format("document {}", quoted(id.str())));
  }
  return update;
}

Result<DocumentUpdate> DocumentUpdate::from_json_fields(const DocumentType& type, const DocumentId& id,
                                                        std::string_view json_object) {
  if (!id.empty() && !id.type().empty() && id.type() != type.name()) {
    return Status(StatusCode::InvalidId, fmt::format("document {} is not of type {}", quoted(id.str()), type.name()));
  }
  FJORD_TRY_ASSIGN(JsonTree tree, JsonTree::parse(json_object, kUpdateValuesMax));
  return update_from_json(tree, tree.root(), type, id, JsonValues::Exact);
}

Result<std::string> DocumentUpdate::to_json() const {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  write_key(writer, "update");
  write_text(writer, id_.str());
  if (id_.type().empty()) {
    write_key(writer, "type");
    write_text(writer, type_->name());
  }
  if (create_if_missing_) {
    write_key(writer, "create");
    writer.Bool(true);
  }
  write_key(writer, "fields");
  writer.StartObject();
  for (const FieldUpdate& update : updates_) {
    write_key(writer, update_path_text(update));
    writer.StartObject();
    write_key(writer, update.action == UpdateAction::Clear ? "assign" : to_string(update.action));
    if (Status status = write_operand(writer, update); !status) {
      return status.with_context(fmt::format("document {}", quoted(id_.str())));
    }
    writer.EndObject();
  }
  writer.EndObject();
  writer.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize());
}

}  // namespace fjord
