// The parser of the configuration file. Only this file of the module uses yaml-cpp.

#include <algorithm>
#include <arpa/inet.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <set>
#include <sstream>
#include <yaml-cpp/yaml.h>

#include "fjord/cluster/distribution.h"
#include "fjord/common/setting.h"
#include "fjord/config/edit_distance.h"
#include "keys.h"

namespace fjord::config {
namespace {

/// Most distribution bits of a new cluster; the buckets of a new cluster are made at once.
constexpr std::int64_t kInitialBitsMax = 16;

std::string without_brackets(std::string text) {
  for (std::size_t at = text.find("[]"); at != std::string::npos; at = text.find("[]")) text.erase(at, 2);
  return text;
}

class Reader {
 public:
  Reader(const std::string& file, ClusterConfig& config) : file_(file), config_(config) {}

  Status read(const YAML::Node& root) {
    if (!root.IsMap()) return at(root, "the file", "expected sections such as `cluster:`, see fjordd --help-config");
    FJORD_TRY(read_map(root, "", 0));
    return check_required();
  }

 private:
  Status at(const YAML::Node& node, std::string_view what, std::string_view problem) const {
    const YAML::Mark mark = node.Mark();
    const int line = mark.is_null() ? 1 : mark.line + 1;
    return Status(StatusCode::InvalidArgument, fmt::format("{}:{}: {}: {}", file_, line, what, problem));
  }

  /// Reads one section. `section` is "", "cluster", "storage[]"; `index` is the position of the list element.
  Status read_map(const YAML::Node& map, const std::string& section, std::size_t index) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar())
        return at(entry.first, section.empty() ? "the file" : section, "a key has to be a word");
      const std::string name = entry.first.Scalar();
      const std::string path = section.empty() ? name : section + "." + name;
      const std::string shown = shown_path(path, index);
      if (!seen.insert(name).second) return at(entry.first, shown, "is there twice");
      FJORD_TRY(read_entry(entry.first, entry.second, path, shown, index));
    }
    return Status::ok();
  }

  Status read_entry(const YAML::Node& key_node, const YAML::Node& value, const std::string& path,
                    const std::string& shown, std::size_t index) {
    if (const Key* key = find_key(path)) return read_value(*key, value, shown, index);
    if (is_section(path)) {
      if (value.IsNull()) return Status::ok();
      if (!value.IsMap()) return at(value, shown, "expected keys below it");
      return read_map(value, path, 0);
    }
    if (is_section(path + "[]")) return read_list(value, path);
    return at(key_node, shown, "unknown key" + suggestion(path));
  }

  Status read_list(const YAML::Node& list, const std::string& name) {
    if (!list.IsSequence()) return at(list, name, "expected a list, one `- address: ...` a node");
    std::vector<ProcessConfig>& processes = name == "storage"        ? config_.storage
                                            : name == "distributors" ? config_.distributors
                                            : name == "gateways"     ? config_.gateways
                                                                     : config_.fleet_controllers;
    processes.resize(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].IsMap()) return at(list[i], fmt::format("{}[{}]", name, i), "expected keys such as `address:`");
      FJORD_TRY(read_map(list[i], name + "[]", i));
      for (const Key& key : keys()) {
        if (key.required && section_of(key.path) == name + "[]" && !list[i][name_in_section(key.path)]) {
          return at(list[i], shown_path(key.path, i), "is missing; expected " + type_text(key));
        }
      }
    }
    return Status::ok();
  }

  Status read_value(const Key& key, const YAML::Node& value, const std::string& shown, std::size_t index) {
    if (!value.IsScalar() && !value.IsNull()) return at(value, shown, "expected " + type_text(key));
    const std::string text = value.IsNull() ? "" : value.Scalar();
    if (Status status = check_value(key, text); !status) return at(value, shown, status.message());
    key.store(config_, index, text);
    config_.given.insert(key.path);
    return Status::ok();
  }

  Status check_required() const {
    for (const Key& key : keys()) {
      const bool in_list = key.path.find("[]") != std::string::npos;
      const bool is_listed = section_of(key.path) == "fleetcontroller" && !config_.fleet_controllers.empty();
      if (is_listed && key.required && config_.given.count(key.path) != 0) {
        return Status(StatusCode::InvalidArgument,
                      fmt::format("{}: {} stands beside fleet_controllers, which says it", file_, key.path));
      }
      if (key.required && !in_list && !is_listed && config_.given.count(key.path) == 0) {
        return Status(StatusCode::InvalidArgument,
                      fmt::format("{}: {} is missing; expected {}", file_, key.path, type_text(key)));
      }
    }
    return Status::ok();
  }

  static std::string shown_path(std::string path, std::size_t index) {
    if (const std::size_t at = path.find("[]"); at != std::string::npos)
      path.replace(at, 2, fmt::format("[{}]", index));
    return path;
  }
  static const Key* find_key(const std::string& path) {
    for (const Key& key : keys()) {
      if (key.path == path) return &key;
    }
    return nullptr;
  }
  static bool is_section(const std::string& name) {
    return std::any_of(sections().begin(), sections().end(),
                       [&](const Section& section) { return !section.name.empty() && section.name == name; });
  }
  static std::string suggestion(const std::string& path) {
    std::string best;
    std::size_t best_distance = 1 + path.size() / 2;
    const auto consider = [&](const std::string& candidate) {
      const std::size_t distance = edit_distance(path, candidate);
      if (distance < best_distance) {
        best_distance = distance;
        best = candidate;
      }
    };
    for (const Key& key : keys()) consider(key.path);
    for (const Section& section : sections()) {
      if (!section.name.empty()) consider(without_brackets(section.name));
    }
    return best.empty() ? "; fjordd --help-config lists all keys" : fmt::format("; did you mean {}?", best);
  }

  const std::string& file_;
  ClusterConfig& config_;
};

/// Makes `fleetcontroller` and `fleet_controllers` agree: the file may declare a single fleet controller in either.
Status unite_fleet_controllers(ClusterConfig& config, const std::string& file) {
  if (config.fleet_controllers.empty()) {
    config.fleet_controllers = {config.fleetcontroller};
  } else {
    config.fleetcontroller = config.fleet_controllers.front();
  }
  if (config.fleet_controllers.size() == 1 || !config.zookeeper.empty()) return Status::ok();
  return Status(StatusCode::InvalidArgument,
                fmt::format("{}: fleet_controllers: {} of them need fleetcontroller.zookeeper, which elects one", file,
                            config.fleet_controllers.size()));
}

Status check_stripes_and_groups(const ClusterConfig& config, const std::string& file) {
  const auto bad = [&](std::string_view key, const std::string& problem) {
    return Status(StatusCode::InvalidArgument, fmt::format("{}: {}: {}", file, key, problem));
  };
  const auto power_of_two = [](std::int64_t n) { return (n & (n - 1)) == 0; };
  if (!power_of_two(config.stripes)) {
    return bad("storage_options.stripes", fmt::format("\"{}\" is not a power of two", config.stripes));
  }
  if (!power_of_two(config.slotfiles_max)) {
    return bad("storage_options.slotfiles_max", fmt::format("\"{}\" is not a power of two", config.slotfiles_max));
  }
  if (config.distributors.empty()) return bad("distributors", "there has to be at least one");
  if (config.storage.empty()) return bad("storage", "there has to be at least one node");
  std::set<std::uint16_t> indexes;
  for (std::size_t i = 0; i < config.storage.size(); ++i) {
    const std::uint16_t index = config.storage_index(i);
    if (!indexes.insert(index).second) {
      return bad(fmt::format("storage[{}].index", i), fmt::format("there are two nodes storage.{}", index));
    }
  }
  const Result<DistributionConfig> distribution = DistributionConfig::parse(config.distribution());
  if (!distribution) return bad(config.groups.empty() ? "storage" : "cluster.groups", distribution.error().message());
  for (const std::uint16_t index : indexes) {
    if (!distribution->contains_node(index)) {
      return bad("cluster.groups", fmt::format("storage.{} is in no group", index));
    }
  }
  for (const DistributionGroup::Node& node : distribution->flat_nodes()) {
    if (!indexes.contains(node.index)) {
      return bad("cluster.groups", fmt::format("names storage.{}, which is not in the list `storage`", node.index));
    }
  }
  return Status::ok();
}

/// A name such as 127.example.org is none of loopback: it leads where its owner likes.
bool is_loopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  in_addr number{};
  constexpr std::uint32_t kLoopbackNet = 127;
  return host == "localhost" || host == "[::1]" ||
         (::inet_pton(AF_INET, host.c_str(), &number) == 1 && ntohl(number.s_addr) >> 24 == kLoopbackNet);
}

Status check_processes(const ClusterConfig& config, const std::string& file) {
  std::set<std::string> addresses;
  std::set<std::string> directories;
  for (const ProcessName& name : config.names()) {
    const ProcessConfig& process = *config.find(name);
    for (const std::string& address : {process.address, process.http, process.tls_address}) {
      if (address.empty()) continue;
      if (!config.allow_remote && !is_loopback(address)) {
        return Status(StatusCode::InvalidArgument,
                      fmt::format("{}: {}: \"{}\" can be reached from other machines; this needs allow_remote: true",
                                  file, name.to_string(), address));
      }
      const bool chosen_by_system = address.ends_with(":0");
      if (!chosen_by_system && !addresses.insert(address).second) {
        return Status(StatusCode::InvalidArgument,
                      fmt::format("{}: {}: the address \"{}\" is used twice", file, name.to_string(), address));
      }
    }
    const bool has_tls = !process.tls_address.empty();
    if (has_tls != !process.certificate.empty() || has_tls != !process.key.empty()) {
      return Status(
          StatusCode::InvalidArgument,
          fmt::format("{}: {}: tls_address, certificate and key have to be given together", file, name.to_string()));
    }
    if (!process.directory.empty() && !directories.insert(process.directory).second) {
      return Status(StatusCode::InvalidArgument, fmt::format("{}: {}: the directory \"{}\" is used twice", file,
                                                             name.to_string(), process.directory));
    }
  }
  return Status::ok();
}

/// Returns the integer key of a setting; null if the file has none for it.
const Key* key_of_setting(std::string_view name) {
  const SettingDeclaration* setting = find_setting(name);
  if (setting == nullptr || setting->file_key.empty()) return nullptr;
  for (const Key& key : keys()) {
    if (key.path == setting->file_key && key.number != nullptr) return &key;
  }
  return nullptr;
}

/// Checks the rules between two settings that are both in the file. The fleet controller checks the others.
Status check_values_together(const ClusterConfig& config, const std::string& file) {
  if (config.distribution_bits > kInitialBitsMax) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("{}: cluster.distribution_bits: \"{}\" is more than {}, with which a cluster may begin; "
                              "`fjord config set cluster.distribution_bits=N` raises it later",
                              file, config.distribution_bits, kInitialBitsMax));
  }
  for (const SettingRule& rule : setting_rules()) {
    const Key* lower = key_of_setting(rule.lower);
    const Key* upper = key_of_setting(rule.upper);
    if (lower == nullptr || upper == nullptr) continue;
    const std::int64_t lower_value = config.*lower->number;
    const std::int64_t upper_value = config.*upper->number;
    if (rule.is_strict ? lower_value < upper_value : lower_value <= upper_value) continue;
    const auto source = [&](const Key* key) { return config.given.contains(key->path) ? "" : ", the default"; };
    return Status(
        StatusCode::InvalidArgument,
        fmt::format("{}: {} ({}{}) has to be {} {} ({}{}), or {}", file, lower->path, lower_value, source(lower),
                    rule.is_strict ? "less than" : "at most", upper->path, upper_value, source(upper), rule.why));
  }
  return Status::ok();
}

void make_paths_absolute(ClusterConfig& config, const std::string& file) {
  const std::filesystem::path base = std::filesystem::absolute(file).parent_path();
  const auto fix = [&](std::string& path) {
    if (!path.empty()) path = (base / path).lexically_normal().string();
  };
  fix(config.fleetcontroller.directory);
  fix(config.log_directory);
  for (ProcessConfig& process : config.fleet_controllers) fix(process.directory);
  for (ProcessConfig& process : config.storage) fix(process.directory);
  for (ProcessConfig& process : config.gateways) {
    fix(process.certificate);
    fix(process.key);
  }
}

}  // namespace

Result<ClusterConfig> parse_config(std::string_view yaml, const std::string& file) {
  ClusterConfig config = default_config();
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    FJORD_TRY(Reader(file, config).read(root));
  } catch (const YAML::Exception& error) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("{}:{}: not YAML: {}", file, error.mark.is_null() ? 1 : error.mark.line + 1, error.msg));
  }
  FJORD_TRY(unite_fleet_controllers(config, file));
  make_paths_absolute(config, file);
  FJORD_TRY(check_stripes_and_groups(config, file));
  FJORD_TRY(check_processes(config, file));
  FJORD_TRY(check_values_together(config, file));
  return config;
}

Result<ClusterConfig> load_config(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return Status(StatusCode::NotFound, fmt::format("{}: there is no such file", file));
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Status(StatusCode::IoError, fmt::format("{}: cannot be read", file));
  return parse_config(text.str(), file);
}

}  // namespace fjord::config
