#include "fjord/rpc/live_settings.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "fjord/common/log.h"

namespace fjord::rpc {
namespace {

std::map<std::string, std::int64_t> values_of(const TunableRegistry& tunables) {
  std::map<std::string, std::int64_t> values;
  for (const Tunable* tunable : tunables.all()) values[tunable->declaration().name] = tunable->value();
  return values;
}

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> LiveSettings::apply(const ClusterInfo& info) {
  std::lock_guard lock(mutex_);
  if (info.config_version <= version_) return errors_;
  version_ = info.config_version;
  errors_.clear();
  const std::map<std::string, std::int64_t> now = values_of(tunables_);
  std::map<std::string, std::int64_t> before;
  for (const std::string& text : info.config) {
    const std::size_t at = text.find('=');
    const std::string name = text.substr(0, at);
    const auto known = now.find(name);
    if (known == now.end()) continue;
    const auto first = before_.find(name);
    before[name] = first == before_.end() ? known->second : first->second;
    const auto value = integer(at == std::string::npos ? std::string_view() : std::string_view(text).substr(at + 1));
    const Status status =
        value ? tunables_.set(name, *value) : Status(StatusCode::InvalidArgument, "not a number: " + text);
    if (!status) errors_.push_back(name + ": " + status.message());
  }
  for (const auto& [name, value] : before_) {
    if (before.contains(name)) continue;
    if (const Status status = tunables_.set(name, value); !status) errors_.push_back(name + ": " + status.message());
  }
  before_ = std::move(before);
  log::info("config", "live configuration version {}, {} settings here, {} refused", version_, before_.size(),
            errors_.size());
  return errors_;
}

std::string misnamed_text(const std::string& started_as, const std::string& called) {
  return "this process was started as " + started_as + ", and the cluster calls the node at its address " + called +
         ": it serves nothing; start it with --node " + called;
}

std::vector<std::string> LiveSettings::base() const {
  std::lock_guard lock(mutex_);
  std::vector<std::string> list;
  for (const auto& [name, value] : values_of(tunables_)) {
    const auto before = before_.find(name);
    list.push_back(name + "=" + std::to_string(before == before_.end() ? value : before->second) + "=" +
                   (from_file_.contains(name) ? "file" : ""));
  }
  return list;
}

}  // namespace fjord::rpc
