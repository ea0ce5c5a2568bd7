#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/document_update.h"

/// What the paths of updates lead to.
namespace fjord {

/// The type of the values that keys of `collection` have: of a map's keys or a weighted set's elements; null for
/// others.
const DataType* key_type_of(const DataType& collection);

/// The type of the value that `step` leads to from a value of `type`; weights are Ints. Errors: InvalidField.
Result<const DataType*> step_into(const DataType& type, const UpdateStep& step);

/// The type of the value that the update changes. Errors: InvalidField that says how far the path is good.
Result<const DataType*> update_target(const FieldUpdate& update);

/// A key of `type` (a string, an integer or a bool) from a text. Errors: InvalidField.
Result<FieldValue> key_from_text(const DataType& type, std::string_view text);

/// A scalar for an error message; "a map" for others.
std::string describe_value(const FieldValue& value);

/// OK if `update` can be applied to documents of `type`, whatever they hold. Errors: InvalidField.
Status check_field_update(const DocumentType& type, const FieldUpdate& update);

/// Applies `update`, which was checked, to the value of its field, which fits the field's type; nothing stands for a
/// field that is not set, before and after. Errors: InvalidField; `value` may then be half changed.
Status apply_field_update(const FieldUpdate& update, FieldValue& value);

}  // namespace fjord
