#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/document_update.h"

/// The types and values that the paths of updates lead to.
namespace fjord {

/// The type of a map's keys or a weighted set's elements; null for other types.
const DataType* key_type_of(const DataType& collection);

/// The type of the value that `step` leads to from a value of `type`; a weight is an Int. Errors: InvalidField.
Result<const DataType*> step_into(const DataType& type, const UpdateStep& step);

/// The type of the value that the update changes. Errors: InvalidField that names the part of the path that is valid.
Result<const DataType*> update_target(const FieldUpdate& update);

/// Parses a key of `type` (a string, an integer or a bool). Errors: InvalidField.
Result<FieldValue> key_from_text(const DataType& type, std::string_view text);

/// Text for error messages: the value of a scalar, or "a map" and the like.
std::string describe_value(const FieldValue& value);

/// OK if `update` fits documents of `type`. Independent of their values. Errors: InvalidField.
Status check_field_update(const DocumentType& type, const FieldUpdate& update);

/// Applies a checked `update` to the value of its field, which fits the field's type. An empty `value` stands for a
/// field that is not set, before and after. Errors: InvalidField, after which `value` may be partly changed.
Status apply_field_update(const FieldUpdate& update, FieldValue& value);

}  // namespace fjord
