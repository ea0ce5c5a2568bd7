#include "fjord/document/document_update.h"

#include <cmath>
#include <fmt/format.h>

#include "text.h"
#include "update_target.h"
#include "wire.h"

namespace fjord {
namespace {

Status misfit(std::string what) { return {StatusCode::InvalidField, std::move(what)}; }

bool is_number(TypeTag tag) { return tag >= TypeTag::Int && tag <= TypeTag::Byte && tag != TypeTag::Bool; }

Status check_removed(const DataType& target, const FieldValue& operand) {
  const auto* removed = operand.get_if<ArrayValue>();
  if (removed == nullptr) {
    return misfit(fmt::format("expected an array of what to remove, found {}", describe_value(operand)));
  }
  const DataType* key = key_type_of(target);
  const DataType& type = key == nullptr ? *target.element() : *key;
  for (std::size_t i = 0; i < removed->elements.size(); ++i) {
    if (Status status = type.check(removed->elements[i]); !status) return status.with_context(fmt::format("[{}]", i));
  }
  return Status::ok();
}

Status check_arithmetic(const DataType& target, const FieldUpdate& update) {
  const std::string_view action = to_string(update.action);
  if (!is_number(target.tag())) {
    return misfit(fmt::format("{} expects a number, found a value of type {}", action, target.name()));
  }
  const auto* integer = update.operand.get_if<std::int64_t>();
  const auto* real = update.operand.get_if<double>();
  if (integer == nullptr && real == nullptr) {
    return misfit(
        fmt::format("{} expects a long or a double as operand, found {}", action, describe_value(update.operand)));
  }
  if (real != nullptr && !std::isfinite(*real)) return misfit(fmt::format("{} expects a finite operand", action));
  if (update.action == UpdateAction::Divide && (integer != nullptr ? *integer == 0 : *real == 0)) {
    return misfit("division by zero");
  }
  return Status::ok();
}

Status check_operand(const DataType& target, const FieldUpdate& update) {
  switch (update.action) {
    case UpdateAction::Assign:
      return target.check(update.operand);
    case UpdateAction::Clear:
      return update.operand.is_none() ? Status::ok() : misfit("clear takes no operand");
    case UpdateAction::Add:
    case UpdateAction::Remove:
      if (!is_collection(target.tag())) {
        return misfit(fmt::format("{} expects an array, weightedset or map, found a value of type {}",
                                  to_string(update.action), target.name()));
      }
      return update.action == UpdateAction::Add ? target.check(update.operand) : check_removed(target, update.operand);
    case UpdateAction::Increment:
    case UpdateAction::Decrement:
    case UpdateAction::Multiply:
    case UpdateAction::Divide:
      return check_arithmetic(target, update);
    case UpdateAction::None:
      break;
  }
  return misfit("an update without action");
}

bool may_grow(const FieldUpdate& update) {
  switch (update.action) {
    case UpdateAction::Clear:
    case UpdateAction::Remove:
      return false;
    case UpdateAction::Add:
      return true;
    default:
      break;
  }
  // A map or weighted set can get new keys without limit; a struct cannot get more members than its type has.
  for (const UpdateStep& step : update.path) {
    if (step.kind == UpdateStep::Kind::Key) return true;
  }
  return update.action == UpdateAction::Assign && fixed_size(update.operand.tag()) == 0;
}

}  // namespace

std::string_view to_string(UpdateAction action) {
  switch (action) {
    case UpdateAction::None:
      break;
    case UpdateAction::Assign:
      return "assign";
    case UpdateAction::Clear:
      return "clear";
    case UpdateAction::Add:
      return "add";
    case UpdateAction::Remove:
      return "remove";
    case UpdateAction::Increment:
      return "increment";
    case UpdateAction::Decrement:
      return "decrement";
    case UpdateAction::Multiply:
      return "multiply";
    case UpdateAction::Divide:
      return "divide";
  }
  return "none";
}

bool operator==(const FieldUpdate& a, const FieldUpdate& b) {
  const bool same_field =
      a.field == b.field || (a.field != nullptr && b.field != nullptr && a.field->id == b.field->id);
  return same_field && a.path == b.path && a.action == b.action && a.operand == b.operand;
}

bool operator==(const DocumentUpdate& a, const DocumentUpdate& b) {
  return a.type().name() == b.type().name() && a.id_ == b.id_ && a.create_if_missing_ == b.create_if_missing_ &&
         a.updates_ == b.updates_;
}

const DataType* key_type_of(const DataType& collection) {
  if (collection.tag() == TypeTag::Map) return collection.key();
  return collection.tag() == TypeTag::WeightedSet ? collection.element() : nullptr;
}

Result<const DataType*> step_into(const DataType& type, const UpdateStep& step) {
  switch (step.kind) {
    case UpdateStep::Kind::Member:
      if (type.tag() != TypeTag::Struct) return misfit(fmt::format("a value of type {} has no members", type.name()));
      if (const Field* member = type.field_by_id(step.number)) return member->type.get();
      return misfit(fmt::format("struct {} has no field with id {}", type.name(), step.number));
    case UpdateStep::Kind::Index:
      if (type.tag() != TypeTag::Array) return misfit(fmt::format("a value of type {} has no positions", type.name()));
      return type.element();
    case UpdateStep::Kind::Key: {
      const DataType* key = key_type_of(type);
      if (key == nullptr) return misfit(fmt::format("a value of type {} has no keys", type.name()));
      if (Status status = key->check(step.key); !status) return status.with_context("key");
      return type.tag() == TypeTag::Map ? type.element() : DataType::primitive(TypeTag::Int).get();
    }
  }
  return misfit("an unknown kind of step");
}

Result<const DataType*> update_target(const FieldUpdate& update) {
  const DataType* type = update.field->type.get();
  for (std::size_t i = 0; i < update.path.size(); ++i) {
    auto next = step_into(*type, update.path[i]);
    if (!next) {
      FieldUpdate good{
          update.field, {update.path.begin(), update.path.begin() + static_cast<std::ptrdiff_t>(i)}, {}, {}};
      return next.error().with_context(fmt::format("field {}", update_path_text(good)));
    }
    type = *next;
  }
  return type;
}

std::string describe_value(const FieldValue& value) {
  if (const auto* text = value.get_if<std::string>()) return quoted(*text, 40);
  if (const auto* number = value.get_if<std::int32_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.get_if<std::int64_t>()) return fmt::format("{}", *number);
  if (const auto* number = value.get_if<std::int8_t>()) return fmt::format("{}", static_cast<int>(*number));
  if (const auto* number = value.get_if<float>()) return fmt::format("{}", *number);
  if (const auto* number = value.get_if<double>()) return fmt::format("{}", *number);
  if (const auto* boolean = value.get_if<bool>()) return *boolean ? "true" : "false";
  if (value.is_none()) return "nothing";
  return fmt::format("a value of type {}", to_string(value.tag()));
}

Status check_field_update(const DocumentType& type, const FieldUpdate& update) {
  if (update.field == nullptr || type.field_by_id(update.field->id) != update.field) {
    return misfit(fmt::format("the field to update is not one of document type {}", type.name()));
  }
  FJORD_TRY_ASSIGN(const DataType* target, update_target(update));
  Status status = check_operand(*target, update);
  return status ? status : status.with_context(fmt::format("field {}", update_path_text(update)));
}

Status DocumentUpdate::add(FieldUpdate update) {
  if (updates_.size() == kFieldUpdatesMax) {
    return {StatusCode::TooLarge, fmt::format("more than {} changes in one update", kFieldUpdatesMax)};
  }
  FJORD_TRY(check_field_update(*type_, update));
  updates_.push_back(std::move(update));
  return Status::ok();
}

Status DocumentUpdate::add(std::string_view path, UpdateAction action, FieldValue operand) {
  FJORD_TRY_ASSIGN(FieldUpdate update, parse_update_path(*type_, path));
  update.action = action;
  if (const auto* const number = operand.get_if<std::int32_t>(); number != nullptr && is_arithmetic(action)) {
    operand = FieldValue(std::int64_t{*number});  // An integer literal in C++ is an int.
  }
  update.operand = std::move(operand);
  return add(std::move(update));
}

bool DocumentUpdate::may_grow() const {
  if (create_if_missing_) return true;
  for (const FieldUpdate& update : updates_) {
    if (fjord::may_grow(update)) return true;
  }
  return false;
}

}  // namespace fjord
