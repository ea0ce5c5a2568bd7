#include "http/answer_form.h"

#include <fmt/format.h>

namespace fjord::gateway {

Result<AnswerForm> answer_form_of(const ApiCall& call, bool has_csv) {
  const std::string format = call.text("format");
  if (format == "json") return AnswerForm::Json;
  if (format == "jsonl") return AnswerForm::Lines;
  if (format == "csv" && has_csv) return AnswerForm::Csv;
  if (!format.empty()) {
    return Status(StatusCode::InvalidArgument, fmt::format("request property 'format' is '{}': expected {}", format,
                                                           has_csv ? "json, jsonl or csv" : "json or jsonl"));
  }
  const std::string_view accept = call.request.header("accept");
  const double json = quality_of(accept, "application/json");
  const double lines = quality_of(accept, "application/jsonl");
  const double csv = has_csv ? quality_of(accept, "text/csv") : 0;
  if (lines > 0 && lines >= json && lines >= csv) return AnswerForm::Lines;
  return csv > 0 && csv >= json ? AnswerForm::Csv : AnswerForm::Json;
}

const char* content_type_of(AnswerForm form) {
  switch (form) {
    case AnswerForm::Lines:
      return "application/jsonl; charset=UTF-8";
    case AnswerForm::Csv:
      return "text/csv; charset=UTF-8";
    case AnswerForm::Json:
      break;
  }
  return "application/json; charset=UTF-8";
}

}  // namespace fjord::gateway
