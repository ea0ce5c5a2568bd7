#pragma once

#include "http/route_table.h"

namespace fjord::gateway {

/// The forms of answers with many rows.
enum class AnswerForm {
  Json,   ///< One object.
  Lines,  ///< An object in each line.
  Csv,
};

/// Returns the form that the parameter `format` names, or else the header Accept likes most. Errors: InvalidArgument
/// for another name, and for "csv" unless `has_csv`.
Result<AnswerForm> answer_form_of(const ApiCall& call, bool has_csv);
/// Returns the value of Content-Type.
const char* content_type_of(AnswerForm form);

}  // namespace fjord::gateway
