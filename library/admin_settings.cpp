// The live configuration.

#include <algorithm>
#include <fmt/format.h>

#include "fjord/library/admin.h"
#include "fjord/library/detail/admin_calls.h"
#include "fjord/library/detail/client_core.h"

namespace fjord {

namespace {

/// Attempts of a change that names no version; a concurrent change makes one fail.
constexpr int kAttemptsMax = 10;

SettingInfo setting_of(rpc::Setting& setting) {
  SettingInfo info;
  info.name = std::move(setting.name);
  info.type = std::move(setting.type);
  info.default_value = std::move(setting.default_value);
  info.min = std::move(setting.min);
  info.max = std::move(setting.max);
  // A fleet controller of an earlier version reports only the live value.
  info.value = !setting.in_force.empty() ? setting.in_force : setting.value;
  if (info.value.empty()) info.value = info.default_value;
  info.source = !setting.source.empty() ? setting.source : setting.value.empty() ? "" : "live configuration";
  info.live_value = std::move(setting.value);
  info.elsewhere = std::move(setting.elsewhere);
  info.used_by = std::move(setting.used_by);
  info.meaning = std::move(setting.meaning);
  return info;
}

std::string who(const SetOptions& options) {
  std::string text = who_am_i();
  if (!options.tag.empty()) text = options.tag + " " + text;
  if (!options.reason.empty()) text += ": " + options.reason;
  return text;
}

Status check_names(const rpc::GetConfigReply& known, const rpc::ChangeConfig& request) {
  const auto check = [&](const std::string& text) {
    const std::string name = text.substr(0, text.find('='));
    const bool is_there = std::any_of(known.settings.begin(), known.settings.end(),
                                      [&](const rpc::Setting& setting) { return setting.name == name; });
    if (is_there) return Status::ok();
    return Status(StatusCode::NotFound, fmt::format("there is no setting \"{}\"; `fjord config list` shows all", name),
                  {.setting = name});
  };
  for (const std::string& text : request.set) FJORD_TRY(check(text));
  for (const std::string& name : request.unset) FJORD_TRY(check(name));
  return Status::ok();
}

/// Looks in the history for a change by `who` whose answer was lost, and returns it. Errors: `lost` if it is not there.
Result<rpc::ChangeConfigReply> find_made(ClientCore& core, const std::string& who, const Status& lost) {
  FJORD_TRY_ASSIGN(const rpc::GetConfigReply config,
                   ask_cluster(core.connection(), rpc::GetConfig{}, core.timeout({})));
  const auto made = std::find_if(config.versions.begin(), config.versions.end(),
                                 [&](const rpc::ConfigChange& version) { return version.who == who; });
  if (made == config.versions.end()) return lost;
  rpc::ChangeConfigReply reply;
  reply.config_version = made->version;
  return reply;
}

}  // namespace

const SettingInfo* Configuration::find(std::string_view name) const {
  const auto at =
      std::find_if(settings.begin(), settings.end(), [&](const SettingInfo& info) { return info.name == name; });
  return at == settings.end() ? nullptr : &*at;
}

Result<rpc::ChangeConfigReply> change_configuration(ClientCore& core, rpc::ChangeConfig request,
                                                    const SetOptions& options) {
  FJORD_TRY(core.wait_ready());
  const bool is_retried = !options.if_version && !request.revert && request.revert_to == 0;
  request.dry_run = options.dry_run;
  request.if_version = true;
  for (int attempt = 1;; ++attempt) {
    FJORD_TRY_ASSIGN(const rpc::GetConfigReply seen,
                     ask_cluster(core.connection(), rpc::GetConfig{}, core.timeout({})));
    FJORD_TRY(check_names(seen, request));
    request.version = options.if_version.value_or(seen.config_version);
    auto reply = ask_cluster(core.connection(), request, core.timeout({}));
    if (!reply && reply.error().code() == StatusCode::Timeout && !options.tag.empty()) {
      return find_made(core, request.who, reply.error());
    }
    const bool is_outrun = !reply && reply.error().code() == StatusCode::TestAndSetFailed;
    if (!is_outrun || !is_retried || attempt == kAttemptsMax) return reply;
  }
}

Author author_of(std::string_view text) {
  const std::size_t colon = text.find(": ");
  if (colon == std::string_view::npos) return {std::string(text), {}};
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 2))};
}

Result<Configuration> Admin::configuration() {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(rpc::GetConfigReply reply, ask_cluster(core_->connection(), rpc::GetConfig{}, core_->timeout({})));
  Configuration configuration;
  configuration.version = reply.config_version;
  for (rpc::Setting& setting : reply.settings) configuration.settings.push_back(setting_of(setting));
  for (rpc::ConfigChange& version : reply.versions) {
    configuration.history.push_back(
        {version.version, version.unix_us, std::move(version.who), std::move(version.values)});
  }
  configuration.waiting = std::move(reply.waiting);
  configuration.errors = std::move(reply.errors);
  return configuration;
}

Result<ConfigurationChange> Admin::set(const std::map<std::string, std::string>& values, const SetOptions& options) {
  rpc::ChangeConfig request;
  for (const auto& [name, value] : values) {
    if (value.empty()) {
      request.unset.push_back(name);
    } else {
      request.set.push_back(name + "=" + value);
    }
  }
  request.who = who(options);
  FJORD_TRY_ASSIGN(rpc::ChangeConfigReply reply, change_configuration(*core_, std::move(request), options));
  return ConfigurationChange{reply.config_version, std::move(reply.changes)};
}

Result<ConfigurationChange> Admin::revert(std::uint64_t to_version, const SetOptions& options) {
  rpc::ChangeConfig request;
  request.revert_to = to_version;
  request.revert = to_version == 0;
  request.who = who(options);
  FJORD_TRY_ASSIGN(rpc::ChangeConfigReply reply, change_configuration(*core_, std::move(request), options));
  return ConfigurationChange{reply.config_version, std::move(reply.changes)};
}

}  // namespace fjord
