// Applies updates: reads, changes and writes each changed field, and copies all other fields as bytes.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "text.h"
#include "update_target.h"
#include "wire.h"

namespace fjord {
namespace {

using Steps = std::span<const UpdateStep>;

Status misfit(std::string what) { return {StatusCode::InvalidField, std::move(what)}; }

/// An empty collection or struct.
FieldValue empty_of(TypeTag tag) {
  switch (tag) {
    case TypeTag::Array:
      return ArrayValue{};
    case TypeTag::WeightedSet:
      return WeightedSetValue{};
    case TypeTag::Map:
      return MapValue{};
    default:
      return StructValue{};
  }
}

bool creates(UpdateAction action) { return action != UpdateAction::Clear && action != UpdateAction::Remove; }

// ---- Arithmetic

std::optional<std::int64_t> as_integer(const FieldValue& value) {
  if (const auto* number = value.get_if<std::int8_t>()) return *number;
  if (const auto* number = value.get_if<std::int32_t>()) return *number;
  if (const auto* number = value.get_if<std::int64_t>()) return *number;
  return std::nullopt;
}

double as_real(const FieldValue& value) {
  if (const auto* number = value.get_if<float>()) return static_cast<double>(*number);
  if (const auto* number = value.get_if<double>()) return *number;
  return static_cast<double>(as_integer(value).value_or(0));
}

using Wide = __int128;

/// The number if it is a whole one, in whatever form it was written: 1.0 is one. Empty for others, and for those of
/// more than 64 bits, of which products might not fit in a Wide.
std::optional<Wide> as_whole(const FieldValue& value) {
  if (const auto integer = as_integer(value)) return *integer;
  const double number = as_real(value);
  if (!(std::abs(number) < 0x1p64) || std::trunc(number) != number) return std::nullopt;
  return static_cast<Wide>(number);
}

/// Exact; the quotient is cut off towards zero. `b` is not 0 if it divides.
Wide compute(UpdateAction action, std::int64_t a, Wide b) {
  switch (action) {
    case UpdateAction::Increment:
      return a + b;
    case UpdateAction::Decrement:
      return a - b;
    case UpdateAction::Multiply:
      return a * b;
    default:
      return a / b;
  }
}

template <typename Real>
Real compute(UpdateAction action, Real a, Real b) {
  switch (action) {
    case UpdateAction::Increment:
      return a + b;
    case UpdateAction::Decrement:
      return a - b;
    case UpdateAction::Multiply:
      return a * b;
    default:
      return a / b;
  }
}

template <typename T>
std::optional<FieldValue> narrow(Wide value) {
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) return std::nullopt;
  return FieldValue(static_cast<T>(value));
}

std::optional<FieldValue> integer_of(TypeTag tag, Wide value) {
  if (tag == TypeTag::Byte) return narrow<std::int8_t>(value);
  return tag == TypeTag::Int ? narrow<std::int32_t>(value) : narrow<std::int64_t>(value);
}

std::optional<FieldValue> real_of(TypeTag tag, double value) {
  if (tag == TypeTag::Float) {
    const auto narrowed = static_cast<float>(value);
    return std::isfinite(narrowed) ? std::optional<FieldValue>(narrowed) : std::nullopt;
  }
  return std::isfinite(value) ? std::optional<FieldValue>(value) : std::nullopt;
}

/// The result of an integer and a number with a fraction, cut off towards zero. A long double has a significand of 64
/// bits, so the integer does not change before it is computed with.
std::optional<FieldValue> cut_off(TypeTag tag, UpdateAction action, std::int64_t a, double b) {
  const long double result = std::trunc(compute(action, static_cast<long double>(a), static_cast<long double>(b)));
  if (!(std::abs(result) <= 0x1p64L)) return std::nullopt;  // also NaN
  return integer_of(tag, static_cast<Wide>(result));
}

Status calculate(const DataType& type, const FieldUpdate& update, FieldValue& value) {
  const TypeTag tag = type.tag();
  std::optional<FieldValue> result;
  if (tag == TypeTag::Float || tag == TypeTag::Double) {
    result = real_of(tag, compute(update.action, as_real(value), as_real(update.operand)));
  } else if (const auto whole = as_whole(update.operand)) {
    result = integer_of(tag, compute(update.action, as_integer(value).value_or(0), *whole));
  } else {
    result = cut_off(tag, update.action, as_integer(value).value_or(0), as_real(update.operand));
  }
  if (!result) {
    return misfit(fmt::format("{} of {} by {} is out of the range of {}", to_string(update.action),
                              value.is_none() ? "0" : describe_value(value), describe_value(update.operand),
                              type.name()));
  }
  value = std::move(*result);
  return Status::ok();
}

// ---- Collections

/// The positions of the keys of a map. position() adds keys that are new.
class KeyIndex {
 public:
  explicit KeyIndex(const DataType& key_type) : type_(key_type) {}

  /// The position of `key`, which is `next` if it is new.
  std::size_t position(const FieldValue& key, std::size_t next) {
    return positions_.emplace(encode_value(type_, key), next).first->second;
  }

 private:
  const DataType& type_;
  std::unordered_map<std::string, std::size_t> positions_;
};

/// Replaces the values of keys that `entries` has and appends the other entries.
template <typename Entries>
void merge_entries(const DataType& key_type, Entries& entries, const Entries& added) {
  KeyIndex index(key_type);
  for (std::size_t i = 0; i < entries.size(); ++i) index.position(entries[i].first, i);
  for (const auto& entry : added) {
    const std::size_t at = index.position(entry.first, entries.size());
    if (at == entries.size()) {
      entries.push_back(entry);
    } else {
      entries[at].second = entry.second;
    }
  }
}

void add_to(const DataType& type, FieldValue& value, const FieldValue& operand) {
  if (auto* array = value.get_if<ArrayValue>()) {
    const auto& added = operand.get_if<ArrayValue>()->elements;
    array->elements.insert(array->elements.end(), added.begin(), added.end());
  } else if (auto* set = value.get_if<WeightedSetValue>()) {
    merge_entries(*type.element(), set->elements, operand.get_if<WeightedSetValue>()->elements);
  } else if (auto* map = value.get_if<MapValue>()) {
    merge_entries(*type.key(), map->entries, operand.get_if<MapValue>()->entries);
  }
}

void remove_from(const DataType& type, FieldValue& value, const ArrayValue& operand) {
  const DataType* key_type = key_type_of(type);
  const DataType& removed_type = key_type == nullptr ? *type.element() : *key_type;
  std::unordered_set<std::string> removed;
  for (const FieldValue& each : operand.elements) removed.insert(encode_value(removed_type, each));
  const auto is_removed = [&](const FieldValue& each) { return removed.contains(encode_value(removed_type, each)); };
  if (auto* array = value.get_if<ArrayValue>()) {
    std::erase_if(array->elements, is_removed);
  } else if (auto* set = value.get_if<WeightedSetValue>()) {
    std::erase_if(set->elements, [&](const auto& element) { return is_removed(element.first); });
  } else if (auto* map = value.get_if<MapValue>()) {
    std::erase_if(map->entries, [&](const auto& entry) { return is_removed(entry.first); });
  }
}

// ---- Paths

Status act(const DataType& type, FieldValue& value, const FieldUpdate& update) {
  if (update.action == UpdateAction::Assign || update.action == UpdateAction::Clear) {
    value = update.operand;
    return Status::ok();
  }
  if (is_arithmetic(update.action)) return calculate(type, update, value);
  if (update.action == UpdateAction::Add) {
    if (value.is_none()) value = empty_of(type.tag());
    add_to(type, value, update.operand);
  } else if (!value.is_none()) {
    remove_from(type, value, *update.operand.get_if<ArrayValue>());
  }
  return Status::ok();
}

Status change(const DataType& type, FieldValue& value, Steps steps, const FieldUpdate& update);

Status change_member(const DataType& type, StructValue& value, Steps steps, const FieldUpdate& update) {
  auto& members = value.members;
  const std::uint32_t id = steps[0].number;
  const auto has_id = [&](const auto& member) { return member.first == id; };
  const auto at = std::find_if(members.begin(), members.end(), has_id);
  const DataType& member_type = *type.field_by_id(id)->type;
  if (at != members.end()) {
    FJORD_TRY(change(member_type, at->second, steps.subspan(1), update));
    if (at->second.is_none()) members.erase(at);
    return Status::ok();
  }
  FieldValue made;
  FJORD_TRY(change(member_type, made, steps.subspan(1), update));
  if (!made.is_none()) value.set(id, std::move(made));
  return Status::ok();
}

Status change_element(const DataType& type, ArrayValue& value, Steps steps, const FieldUpdate& update) {
  auto& elements = value.elements;
  const std::size_t index = steps[0].number;
  if (index >= elements.size()) {
    return misfit(fmt::format("expected position {} of the array, which has {} elements", index, elements.size()));
  }
  FJORD_TRY(change(*type.element(), elements[index], steps.subspan(1), update));
  if (elements[index].is_none()) elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(index));
  return Status::ok();
}

Status change_entry(const DataType& type, MapValue& value, Steps steps, const FieldUpdate& update) {
  auto& entries = value.entries;
  const auto has_key = [&](const auto& entry) { return entry.first == steps[0].key; };
  const auto at = std::find_if(entries.begin(), entries.end(), has_key);
  if (at != entries.end()) {
    FJORD_TRY(change(*type.element(), at->second, steps.subspan(1), update));
    if (at->second.is_none()) entries.erase(at);
    return Status::ok();
  }
  FieldValue made;
  FJORD_TRY(change(*type.element(), made, steps.subspan(1), update));
  if (!made.is_none()) entries.emplace_back(steps[0].key, std::move(made));
  return Status::ok();
}

Status change_weight(WeightedSetValue& value, Steps steps, const FieldUpdate& update) {
  auto& elements = value.elements;
  const auto has_key = [&](const auto& element) { return element.first == steps[0].key; };
  const auto at = std::find_if(elements.begin(), elements.end(), has_key);
  FieldValue weight;
  if (at != elements.end()) weight = at->second;
  FJORD_TRY(change(*DataType::primitive(TypeTag::Int), weight, steps.subspan(1), update));
  const auto* changed = weight.get_if<std::int32_t>();
  if (at == elements.end()) {
    if (changed != nullptr) elements.emplace_back(steps[0].key, *changed);
  } else if (changed != nullptr) {
    at->second = *changed;
  } else {
    elements.erase(at);
  }
  return Status::ok();
}

/// The recursion is as deep as the type. Only actions that set a value create missing values on the path, and no action
/// creates a position of an array.
Status change(const DataType& type, FieldValue& value, Steps steps, const FieldUpdate& update) {
  if (steps.empty()) return act(type, value, update);
  if (value.is_none()) {
    if (!creates(update.action) && steps[0].kind != UpdateStep::Kind::Index) return Status::ok();
    value = empty_of(type.tag());
  }
  if (auto* members = value.get_if<StructValue>()) return change_member(type, *members, steps, update);
  if (auto* array = value.get_if<ArrayValue>()) return change_element(type, *array, steps, update);
  if (auto* map = value.get_if<MapValue>()) return change_entry(type, *map, steps, update);
  return change_weight(*value.get_if<WeightedSetValue>(), steps, update);
}

// ---- Documents

/// A field of the stored document.
struct StoredField {
  std::uint32_t id;
  bool in_header;
  FieldSlice slice;
};

Status collect_fields(const DocumentType& type, std::string_view part, bool is_header, std::vector<StoredField>& out) {
  FieldCursor at(part);
  while (at.next()) {
    // The schema decides to which part the field belongs: a later schema may have moved it to the other part.
    const Field* declared = type.field_by_id(at.field_id());
    out.push_back({at.field_id(), declared == nullptr ? is_header : declared->in_header, at.slice()});
  }
  return at.ok() ? Status::ok() : Status(StatusCode::Corruption, "malformed fields");
}

Result<std::vector<StoredField>> fields_of(const DocumentType& type, const DocumentView* document) {
  std::vector<StoredField> fields;
  if (document == nullptr) return fields;
  FJORD_TRY(collect_fields(type, document->header_fields(), true, fields));
  FJORD_TRY(collect_fields(type, document->body_fields(), false, fields));
  const auto by_id = [](const StoredField& a, const StoredField& b) { return a.id < b.id; };
  const auto same = [](const StoredField& a, const StoredField& b) { return a.id == b.id; };
  std::sort(fields.begin(), fields.end(), by_id);
  if (std::adjacent_find(fields.begin(), fields.end(), same) != fields.end()) {
    return Status(StatusCode::Corruption, "a field occurs twice");
  }
  return fields;
}

using Changed = std::map<std::uint32_t, std::pair<const Field*, FieldValue>>;

Status change_fields(const std::vector<FieldUpdate>& updates, const std::vector<StoredField>& stored,
                     Changed& changed) {
  for (const FieldUpdate& update : updates) {
    const auto [at, added] = changed.try_emplace(update.field->id, update.field, FieldValue());
    FieldValue& value = at->second.second;
    const bool replaced =
        update.path.empty() && (update.action == UpdateAction::Assign || update.action == UpdateAction::Clear);
    const auto before = std::lower_bound(stored.begin(), stored.end(), update.field->id,
                                         [](const StoredField& f, std::uint32_t id) { return f.id < id; });
    if (added && !replaced && before != stored.end() && before->id == update.field->id) {
      FJORD_TRY_ASSIGN(value, before->slice.value());
      if (Status status = update.field->type->check(value); !status) {
        return status.with_context(fmt::format("field {}, as it is stored", update.field->name));
      }
    }
    if (Status status = apply_field_update(update, value); !status) {
      return status.with_context(fmt::format("field {}", update_path_text(update)));
    }
  }
  return Status::ok();
}

void append_changed(EncodedDocument& out, const Field& field, const FieldValue& value) {
  if (value.is_none()) return;
  std::string& part = field.in_header ? out.header : out.body;
  append_field_start(part, field.id, field.type->tag());
  LengthPrefix length(part);
  append_value(part, *field.type, value);
  length.finish();
}

Result<EncodedDocument> apply(const DocumentUpdate& update, const DocumentView* existing) {
  FJORD_TRY_ASSIGN(const std::vector<StoredField> stored, fields_of(update.type(), existing));
  Changed changed;
  FJORD_TRY(change_fields(update.updates(), stored, changed));

  EncodedDocument out;
  append_header_prefix(out.header, update.type(), update.id().str());
  auto next = changed.begin();
  for (const StoredField& field : stored) {
    for (; next != changed.end() && next->first < field.id; ++next) {
      append_changed(out, *next->second.first, next->second.second);
    }
    if (next != changed.end() && next->first == field.id) continue;
    std::string& part = field.in_header ? out.header : out.body;
    append_field_start(part, field.id, field.slice.tag);
    put_string(part, field.slice.bytes);
  }
  for (; next != changed.end(); ++next) append_changed(out, *next->second.first, next->second.second);
  return out;
}

}  // namespace

Status apply_field_update(const FieldUpdate& update, FieldValue& value) {
  return change(*update.field->type, value, update.path, update);
}

Result<EncodedDocument> DocumentUpdate::apply_to(const DocumentView* existing) const {
  if (existing == nullptr && !create_if_missing_) {
    return Status(StatusCode::NotFound, fmt::format("document {}: nothing to update", quoted(id_.str())));
  }
  if (existing != nullptr && existing->id() != id_.str()) {
    return Status(StatusCode::InvalidArgument, fmt::format("an update of document {} cannot be applied to {}",
                                                           quoted(id_.str()), quoted(existing->id())));
  }
  if (existing != nullptr && existing->type_id() != type_->id()) {
    const std::string found =
        existing->type() != nullptr ? existing->type()->name() : fmt::format("with id {}", existing->type_id());
    return Status(StatusCode::InvalidArgument,
                  fmt::format("document {}: an update for type {} cannot be applied to one of type {}",
                              quoted(id_.str()), type_->name(), found));
  }
  auto result = apply(*this, existing);
  if (!result) return result.error().with_context(fmt::format("document {}", quoted(id_.str())));
  return result;
}

}  // namespace fjord
