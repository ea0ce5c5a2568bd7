#include "fjord/mapreduce/job_functions.h"

#include <charconv>

#include "fjord/common/check.h"

namespace fjord::mapreduce {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text.substr(0, 100)) + "\""; }

/// Returns the fields of the wanted types, such as "a (int), b (string)".
std::string list_fields(const DocumentType& type, bool (*is_wanted)(TypeTag)) {
  std::string list;
  for (const Field& field : type.fields()) {
    if (!is_wanted(field.type->tag())) continue;
    list += (list.empty() ? "" : ", ") + field.name + " (" + field.type->name() + ")";
  }
  return list.empty() ? "none" : list;
}

bool is_number(TypeTag tag) {
  return tag == TypeTag::Int || tag == TypeTag::Long || tag == TypeTag::Byte || tag == TypeTag::Float ||
         tag == TypeTag::Double;
}

bool is_scalar(TypeTag tag) { return is_number(tag) || tag == TypeTag::String || tag == TypeTag::Bool; }

Result<const Field*> find_field(const DocumentType& type, std::string_view name, bool (*is_wanted)(TypeTag),
                                const char* what) {
  const Field* field = type.field(name);
  const std::string known = "; fields of " + type.name() + " that do: " + list_fields(type, is_wanted);
  if (field == nullptr) {
    return Status(StatusCode::InvalidField,
                  "the type " + type.name() + " has no field " + quoted(name) + " that holds " + what + known);
  }
  if (!is_wanted(field->type->tag())) {
    return Status(StatusCode::InvalidField, "the field " + quoted(name) + " is of type " + field->type->name() +
                                                " and does not hold " + what + known);
  }
  return field;
}

template <typename T>
std::string_view number_text(T value, std::string& scratch) {
  char buffer[64];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  FJORD_CHECK(error == std::errc());
  scratch.assign(buffer, end);
  return scratch;
}

}  // namespace

const std::string& ApplicationParameters::text(std::string_view name) const {
  const auto it = values_.find(name);
  FJORD_CHECK_MSG(it != values_.end(), name);
  return it->second;
}

Result<std::int64_t> ApplicationParameters::integer(std::string_view name, std::int64_t min, std::int64_t max) const {
  const std::string& value = text(name);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < min || number > max) {
    return Status(StatusCode::InvalidArgument, "the parameter " + std::string(name) + " is " + quoted(value) +
                                                   ", not an integer from " + std::to_string(min) + " to " +
                                                   std::to_string(max));
  }
  return number;
}

Result<const Field*> scalar_field(const DocumentType& type, std::string_view name) {
  return find_field(type, name, is_scalar, "a single string, number or bool");
}

Result<const Field*> number_field(const DocumentType& type, std::string_view name) {
  return find_field(type, name, is_number, "a single number");
}

std::string_view scalar_text(const FieldSlice& slice, std::string& scratch) {
  switch (slice.tag) {
    case TypeTag::String:
      return slice.as_string_view();
    case TypeTag::Bool:
      return slice.as_bool() ? "true" : "false";
    case TypeTag::Float:
      return number_text(static_cast<float>(slice.as_double()), scratch);
    case TypeTag::Double:
      return number_text(slice.as_double(), scratch);
    default:
      return number_text(slice.as_int64(), scratch);
  }
}

}  // namespace fjord::mapreduce
