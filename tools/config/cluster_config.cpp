#include "fjord/config/cluster_config.h"

#include <charconv>
#include <fmt/format.h>

#include "keys.h"

namespace fjord::config {

std::string_view to_string(Role role) {
  switch (role) {
    case Role::FleetController:
      return "fleetcontroller";
    case Role::Distributor:
      return "distributor";
    case Role::Storage:
      return "storage";
    case Role::Gateway:
      return "gateway";
  }
  return "";
}

Result<ProcessName> ProcessName::parse(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot != std::string_view::npos) {
    for (const Role role : {Role::FleetController, Role::Distributor, Role::Storage, Role::Gateway}) {
      if (text.substr(0, dot) != fjord::config::to_string(role)) continue;
      std::uint16_t index = 0;
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + dot + 1, end, index);
      if (error == std::errc() && stop == end) return ProcessName{role, index};
    }
  }
  return Status(
      StatusCode::InvalidArgument,
      fmt::format("\"{}\" names no node; expected storage.N, distributor.N, fleetcontroller.N or gateway.N", text));
}

std::string ProcessName::to_string() const { return fmt::format("{}.{}", fjord::config::to_string(role), index); }

ClusterConfig default_config() {
  ClusterConfig config;
  for (const Key& key : keys()) {
    if (key.path.find("[]") == std::string::npos) key.store(config, 0, key.default_value);
  }
  return config;
}

std::set<std::string> ClusterConfig::live_settings_given() const {
  std::set<std::string> names;
  for (const std::string& path : given) {
    if (std::string name = live_setting_of(path); !name.empty()) names.insert(std::move(name));
  }
  return names;
}

std::uint16_t ClusterConfig::storage_index(std::size_t place) const {
  const int given_index = storage[place].index;
  return static_cast<std::uint16_t>(given_index < 0 ? static_cast<int>(place) : given_index);
}

const ProcessConfig* ClusterConfig::find(ProcessName name) const {
  const auto element = [&](const std::vector<ProcessConfig>& list) {
    return name.index < list.size() ? &list[name.index] : nullptr;
  };
  switch (name.role) {
    case Role::FleetController:
      return element(fleet_controllers);
    case Role::Distributor:
      return element(distributors);
    case Role::Gateway:
      return element(gateways);
    case Role::Storage:
      for (std::size_t i = 0; i < storage.size(); ++i) {
        if (storage_index(i) == name.index) return &storage[i];
      }
      return nullptr;
  }
  return nullptr;
}

std::vector<ProcessName> ClusterConfig::names() const {
  std::vector<ProcessName> all;
  for (std::size_t i = 0; i < fleet_controllers.size(); ++i)
    all.push_back({Role::FleetController, static_cast<std::uint16_t>(i)});
  for (std::size_t i = 0; i < distributors.size(); ++i)
    all.push_back({Role::Distributor, static_cast<std::uint16_t>(i)});
  for (std::size_t i = 0; i < storage.size(); ++i) all.push_back({Role::Storage, storage_index(i)});
  for (std::size_t i = 0; i < gateways.size(); ++i) all.push_back({Role::Gateway, static_cast<std::uint16_t>(i)});
  return all;
}

std::string ClusterConfig::distribution() const {
  if (!groups.empty()) return fmt::format("redundancy:{} {}", redundancy, groups);
  std::string nodes;
  for (std::size_t i = 0; i < storage.size(); ++i) {
    nodes += fmt::format(" {}", storage_index(i));
    if (storage[i].capacity != 1.0) nodes += fmt::format("*{}", storage[i].capacity);
  }
  return fmt::format("redundancy:{} (root{})", redundancy, nodes);
}

namespace {
std::vector<std::string> addresses_of(const std::vector<ProcessConfig>& processes) {
  std::vector<std::string> addresses;
  for (const ProcessConfig& process : processes) addresses.push_back(process.address);
  return addresses;
}
}  // namespace

std::vector<std::string> ClusterConfig::distributor_addresses() const { return addresses_of(distributors); }
std::vector<std::string> ClusterConfig::storage_addresses() const {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < storage.size(); ++i) {
    const std::size_t index = storage_index(i);
    if (index >= addresses.size()) addresses.resize(index + 1);
    addresses[index] = storage[i].address;
  }
  return addresses;
}
std::vector<std::string> ClusterConfig::fleet_controller_addresses() const { return addresses_of(fleet_controllers); }

}  // namespace fjord::config
