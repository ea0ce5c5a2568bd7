#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {

ApplicationInfo fieldstats_info();

/// Returns expressions for these fields of `type`, for ValueFunctions::values(). Empty if one of the fields holds
/// floating-point numbers, of which the exact form is lost, if an expression cannot name it, or if `types` is null.
std::vector<ValueExpression> values_of(std::span<const Field* const> fields, const DocumentType& type,
                                       const DocumentTypeRepo* types);
/// Returns the text that scalar_text() has for the field, of a value that one of values_of() gave.
std::string_view value_text(const ScalarView& value, const Field& field, std::string& scratch);

}  // namespace fjord::mapreduce
