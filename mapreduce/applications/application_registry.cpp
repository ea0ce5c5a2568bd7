#include <utility>

#include "fjord/common/check.h"
#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text.substr(0, 100)) + "\""; }

}  // namespace

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

Status ApplicationRegistry::check_version(std::string_view name, std::string_view version) const {
  const ApplicationInfo* info = find(name);
  if (info == nullptr || info->version == version) return Status::ok();
  const auto text = [](std::string_view of) { return of.empty() ? std::string("none") : quoted(of); };
  return Status(StatusCode::InvalidArgument, "the application " + std::string(name) + " is of version " +
                                                 text(info->version) + " on this node; the job was begun with " +
                                                 text(version));
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

}  // namespace fjord::mapreduce
