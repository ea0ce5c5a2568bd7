#include <charconv>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text.substr(0, 100)) + "\""; }

/// "a (int), b (string)".
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

void ApplicationRegistry::add(ApplicationInfo info) {
  std::string name = info.name;
  const bool is_new = applications_.emplace(std::move(name), std::move(info)).second;
  FJORD_CHECK(is_new);
}

const ApplicationInfo* ApplicationRegistry::find(std::string_view name) const {
  const auto it = applications_.find(name);
  return it == applications_.end() ? nullptr : &it->second;
}

std::vector<const ApplicationInfo*> ApplicationRegistry::all() const {
  std::vector<const ApplicationInfo*> all;
  for (const auto& [name, info] : applications_) all.push_back(&info);
  return all;
}

Result<std::unique_ptr<Application>> ApplicationRegistry::create(std::string_view name,
                                                                 const std::vector<rpc::Parameter>& parameters,
                                                                 const DocumentType& type,
                                                                 const DocumentTypeRepo* types) const {
  const ApplicationInfo* info = find(name);
  if (info == nullptr) {
    std::string known;
    for (const auto& [key, value] : applications_) known += (known.empty() ? "" : ", ") + key;
    return Status(StatusCode::InvalidArgument, "there is no application " + quoted(name) + "; there are: " + known);
  }
  std::string known;
  std::map<std::string, std::string, std::less<>> values;
  for (const ParameterInfo& parameter : info->parameters) {
    known += (known.empty() ? "" : ", ") + parameter.name;
    if (parameter.default_value) values[parameter.name] = *parameter.default_value;
  }
  known = "; " + info->name + " takes " + (known.empty() ? "no parameters" : known);
  std::map<std::string, bool, std::less<>> given;
  for (const rpc::Parameter& parameter : parameters) {
    bool is_known = false;
    for (const ParameterInfo& declared : info->parameters) is_known = is_known || declared.name == parameter.name;
    if (!is_known) return Status(StatusCode::InvalidArgument, "unknown parameter " + quoted(parameter.name) + known);
    if (std::exchange(given[parameter.name], true)) {
      return Status(StatusCode::InvalidArgument, "the parameter " + quoted(parameter.name) + " is given twice");
    }
    values[parameter.name] = parameter.value;
  }
  for (const ParameterInfo& declared : info->parameters) {
    if (!values.contains(declared.name)) {
      return Status(StatusCode::InvalidArgument, "the parameter " + quoted(declared.name) + " is missing" + known);
    }
  }
  auto application = info->make();
  FJORD_TRY(application->configure(ApplicationParameters(std::move(values), types), type));
  return application;
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
