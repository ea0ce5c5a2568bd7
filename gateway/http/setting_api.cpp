// Handlers of /cluster/v1/settings: the live settings.

#include <fmt/format.h>
#include <map>

#include "fjord/library/admin.h"
#include "fjord/library/detail/admin_calls.h"
#include "http/json_shape.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

void write_setting(const SettingInfo& setting, JsonText& json) {
  json.begin_object().member("name", setting.name).member("type", setting.type);
  json.member("default", setting.default_value).member("min", setting.min).member("max", setting.max);
  json.member("value", setting.value).member("source", setting.source).member("live_value", setting.live_value);
  json.member("elsewhere", setting.elsewhere).member("used_by", setting.used_by);
  json.member("meaning", setting.meaning).end_object();
}

Status list_settings(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const Configuration configuration, client.admin().configuration());
  json.begin_object().member("version", configuration.version).key("settings").begin_array();
  for (const SettingInfo& setting : configuration.settings) write_setting(setting, json);
  json.end_array().member("waiting", configuration.waiting).member("errors", configuration.errors).end_object();
  return Status::ok();
}

Status get_setting(Client& client, const std::string& name, JsonText& json) {
  FJORD_TRY_ASSIGN(const Configuration configuration, client.admin().configuration());
  const SettingInfo* setting = configuration.find(name);
  if (setting == nullptr) {
    return {StatusCode::NotFound, fmt::format("there is no live setting \"{}\"", name), {.setting = name}};
  }
  write_setting(*setting, json);
  return Status::ok();
}

Status get_history(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const Configuration configuration, client.admin().configuration());
  json.begin_object().key("versions").begin_array();
  for (const ConfigurationVersion& version : configuration.history) {
    json.begin_object().member("version", version.version).member("unix_us", version.unix_us);
    const Author author = author_of(version.who);
    json.member("who", author.who).member("why", author.why).key("values").begin_object();
    for (const std::string& value : version.values) {
      const std::size_t equals = value.find('=');
      if (equals != std::string::npos) json.member(value.substr(0, equals), value.substr(equals + 1));
    }
    json.end_object().end_object();
  }
  json.end_array().end_object();
  return Status::ok();
}

Status write_change(const Result<ConfigurationChange>& change, JsonText& json) {
  FJORD_TRY(change.status());
  json.begin_object().member("version", change->version).member("changes", change->changes).end_object();
  return Status::ok();
}

Status change_settings(Client& client, const std::string& body, JsonText& json) {
  std::map<std::string, std::string> values;
  SetOptions options;
  FJORD_TRY(read_json(body, JsonShape()
                                .text_map("values", values)
                                .flag("dry_run", options.dry_run)
                                .count("if_version", options.if_version)
                                .text("reason", options.reason)
                                .required("values")));
  if (values.empty()) return {StatusCode::InvalidArgument, "the body: \"values\": expected at least one setting"};
  return write_change(client.admin().set(values, options), json);
}

Status revert_settings(Client& client, const std::string& body, JsonText& json) {
  std::uint64_t to_version = 0;
  SetOptions options;
  FJORD_TRY(read_json(body, JsonShape()
                                .count("to_version", to_version)
                                .flag("dry_run", options.dry_run)
                                .count("if_version", options.if_version)
                                .text("reason", options.reason)));
  return write_change(client.admin().revert(to_version, options), json);
}

}  // namespace

void add_setting_routes(RouteTable& routes, Client& client) {
  routes.add_waiting("GET", "/cluster/v1/settings", {},
                     [&client](const ApiCall&, JsonText& json) { return list_settings(client, json); });
  routes.add_waiting("GET", "/cluster/v1/settings/history", {},
                     [&client](const ApiCall&, JsonText& json) { return get_history(client, json); });
  routes.add_waiting("GET", "/cluster/v1/settings/{name}", {}, [&client](const ApiCall& call, JsonText& json) {
    return get_setting(client, call.part("name"), json);
  });
  routes.add_waiting("POST", "/cluster/v1/settings", {}, [&client](const ApiCall& call, JsonText& json) {
    return change_settings(client, call.request.body, json);
  });
  routes.add_waiting("POST", "/cluster/v1/settings/revert", {}, [&client](const ApiCall& call, JsonText& json) {
    return revert_settings(client, call.request.body, json);
  });
}

}  // namespace fjord::gateway
