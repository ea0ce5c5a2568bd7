#include "keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

#include "fjord/common/setting.h"

namespace fjord::config {
namespace {

using Store = std::function<void(ClusterConfig&, std::size_t, const std::string&)>;

Store store_text(std::string ClusterConfig::*member) {
  return [member](ClusterConfig& config, std::size_t, const std::string& text) { config.*member = text; };
}
Store store_list_text(std::vector<ProcessConfig> ClusterConfig::*list, std::string ProcessConfig::*member) {
  return
      [=](ClusterConfig& config, std::size_t index, const std::string& text) { (config.*list)[index].*member = text; };
}
Store store_controller_text(std::string ProcessConfig::*member) {
  return [=](ClusterConfig& config, std::size_t, const std::string& text) { config.fleetcontroller.*member = text; };
}

Key text_key(std::string path, KeyType type, std::string default_value, std::string help, Store store) {
  Key key;
  key.path = std::move(path);
  key.type = type;
  key.default_value = std::move(default_value);
  key.help = std::move(help);
  key.store = std::move(store);
  return key;
}
Key required(Key key) {
  key.required = true;
  return key;
}
/// Returns the key of a number. The table of settings (setting.h) has its unit, default, bounds and meaning.
Key number_key(std::string path, std::int64_t ClusterConfig::*member) {
  const SettingDeclaration* setting = find_setting_of_key(path);
  FJORD_CHECK_MSG(setting != nullptr, path);
  Key key;
  key.path = std::move(path);
  key.type = KeyType::Integer;
  if (setting->type == SettingType::Time) key.unit = "ms";
  if (setting->type == SettingType::Bytes) key.unit = "bytes";
  key.default_value = std::to_string(setting->has_default() ? setting->default_value : 0);
  key.min = static_cast<double>(setting->has_default() ? setting->min : 0);
  key.max = static_cast<double>(setting->max);
  key.help = setting->meaning;
  key.number = member;
  key.store = [member](ClusterConfig& config, std::size_t, const std::string& text) {
    config.*member = std::strtoll(text.c_str(), nullptr, 10);
  };
  return key;
}
Key choice_key(std::string path, std::vector<std::string> choices, std::string default_value, std::string help,
               Store store) {
  Key key = text_key(std::move(path), KeyType::Choice, std::move(default_value), std::move(help), std::move(store));
  key.choices = std::move(choices);
  return key;
}

void add_cluster_keys(std::vector<Key>& all) {
  all.push_back(
      text_key("allow_remote", KeyType::Boolean, "false",
               "Processes may listen on addresses that other machines reach. Nothing is encrypted, and no password is "
               "checked, so use it only in networks that you trust.",
               [](ClusterConfig& c, std::size_t, const std::string& text) { c.allow_remote = text == "true"; }));
  all.push_back(text_key(
      "allow_shared_folders", KeyType::Boolean, "false",
      "Folders of data may belong to another user than the process, and other users may change them. A process "
      "takes only folders of its own user otherwise, and closes them to others.",
      [](ClusterConfig& c, std::size_t, const std::string& text) { c.allow_shared_folders = text == "true"; }));
  all.push_back(number_key("cluster.redundancy", &ClusterConfig::redundancy));
  all.push_back(number_key("cluster.distribution_bits", &ClusterConfig::distribution_bits));
  all.push_back(
      text_key("cluster.groups", KeyType::Text, "",
               "Tree of the groups of nodes that can fail together, e.g. `(root (rack_a 0 1) (rack_b 2 3))` with the "
               "indexes of storage nodes. Replicas go to different parts. Empty: all storage nodes in one group.",
               store_text(&ClusterConfig::groups)));
}

void add_fleetcontroller_keys(std::vector<Key>& all) {
  all.push_back(
      required(text_key("fleetcontroller.address", KeyType::Address, "", "Address on which it listens for other nodes.",
                        store_controller_text(&ProcessConfig::address))));
  all.push_back(text_key("fleetcontroller.http", KeyType::OptionalAddress, "",
                         "For /metrics and /health; empty: no HTTP.", store_controller_text(&ProcessConfig::http)));
  all.push_back(required(text_key("fleetcontroller.directory", KeyType::Path, "",
                                  "Keeps the version of the cluster state and the schemas.",
                                  store_controller_text(&ProcessConfig::directory))));
  all.push_back(number_key("fleetcontroller.poll_interval_ms", &ClusterConfig::poll_interval_ms));
  all.push_back(number_key("fleetcontroller.poll_timeout_ms", &ClusterConfig::poll_timeout_ms));
  all.push_back(number_key("fleetcontroller.down_after_ms", &ClusterConfig::down_after_ms));
  all.push_back(number_key("fleetcontroller.start_grace_ms", &ClusterConfig::start_grace_ms));
  all.push_back(text_key("fleetcontroller.zookeeper", KeyType::Text, "",
                         "Servers of a ZooKeeper ensemble, `host:port,host:port`, which keeps what fleet controllers "
                         "must not forget, and elects one of several. Empty: a store in the folder of the only one.",
                         store_text(&ClusterConfig::zookeeper)));
  all.push_back(text_key("fleetcontroller.zookeeper_root", KeyType::Text, "/fjord",
                         "Path in ZooKeeper below which this cluster's nodes are.",
                         store_text(&ClusterConfig::zookeeper_root)));
  all.push_back(number_key("fleetcontroller.session_timeout_ms", &ClusterConfig::session_timeout_ms));
  all.push_back(required(text_key("fleet_controllers[].address", KeyType::Address, "",
                                  "Address on which it listens for other nodes.",
                                  store_list_text(&ClusterConfig::fleet_controllers, &ProcessConfig::address))));
  all.push_back(text_key("fleet_controllers[].http", KeyType::OptionalAddress, "",
                         "For /metrics and /health; empty: no HTTP.",
                         store_list_text(&ClusterConfig::fleet_controllers, &ProcessConfig::http)));
  all.push_back(required(text_key("fleet_controllers[].directory", KeyType::Path, "", "A folder of its own.",
                                  store_list_text(&ClusterConfig::fleet_controllers, &ProcessConfig::directory))));
}

void add_gateway_keys(std::vector<Key>& all) {
  all.push_back(required(text_key("gateways[].address", KeyType::Address, "",
                                  "Address on which it serves the document API, /metrics and health over HTTP.",
                                  store_list_text(&ClusterConfig::gateways, &ProcessConfig::address))));
  all.push_back(
      text_key("gateways[].tls_address", KeyType::OptionalAddress, "",
               "Address on which it serves the same with TLS (1.2 and up). Empty: none. Needs certificate and key.",
               store_list_text(&ClusterConfig::gateways, &ProcessConfig::tls_address)));
  all.push_back(text_key("gateways[].certificate", KeyType::Text, "",
                         "File with the certificate in PEM, then those that signed it. Read when the process starts.",
                         store_list_text(&ClusterConfig::gateways, &ProcessConfig::certificate)));
  all.push_back(text_key("gateways[].key", KeyType::Text, "", "File with the private key of the certificate in PEM.",
                         store_list_text(&ClusterConfig::gateways, &ProcessConfig::key)));
  all.push_back(choice_key("gateways[].access_log", {"true", "problems", "false"}, "problems",
                           "Lines in the log for all requests; `problems`: for those that failed or took a second or "
                           "more. Documents that are not there and false conditions are not failures.",
                           store_list_text(&ClusterConfig::gateways, &ProcessConfig::access_log)));
  all.push_back(text_key("gateways[].console_edits", KeyType::Boolean, "true",
                         "The console may change and remove single documents. The document API may in any case.",
                         store_list_text(&ClusterConfig::gateways, &ProcessConfig::console_edits)));
  all.push_back(text_key("gateways[].confirm_removals", KeyType::Boolean, "true",
                         "A DELETE of all documents that a selection matches has to say how many those are at "
                         "most (`confirm`). Clients of other systems do not know the parameter.",
                         store_list_text(&ClusterConfig::gateways, &ProcessConfig::confirm_removals)));
  all.push_back(
      text_key("gateways[].allowed_hosts", KeyType::Text, "",
               "Names and addresses that requests may name as their host, each perhaps with a port, separated by "
               "commas; `*`: any. Pages of these sites may change documents; without a port in the list it is a site "
               "without one. Empty: those of loopback, and if it listens elsewhere, too, any address, the name of the "
               "machine and the name in `address`.",
               store_list_text(&ClusterConfig::gateways, &ProcessConfig::allowed_hosts)));
}

void add_list_keys(std::vector<Key>& all) {
  all.push_back(required(text_key("distributors[].address", KeyType::Address, "",
                                  "Address on which it listens for clients and nodes.",
                                  store_list_text(&ClusterConfig::distributors, &ProcessConfig::address))));
  all.push_back(text_key("distributors[].http", KeyType::OptionalAddress, "",
                         "For /metrics and /health; empty: no HTTP.",
                         store_list_text(&ClusterConfig::distributors, &ProcessConfig::http)));
  add_gateway_keys(all);
  all.push_back(required(text_key("storage[].address", KeyType::Address, "",
                                  "Address on which it listens for distributors and visits.",
                                  store_list_text(&ClusterConfig::storage, &ProcessConfig::address))));
  all.push_back(text_key("storage[].http", KeyType::OptionalAddress, "", "For /metrics and /health; empty: no HTTP.",
                         store_list_text(&ClusterConfig::storage, &ProcessConfig::http)));
  all.push_back(required(text_key("storage[].directory", KeyType::Path, "", "Holds the documents of this node.",
                                  store_list_text(&ClusterConfig::storage, &ProcessConfig::directory))));
  all.push_back(choice_key("storage[].engine", {"slotfile", "leveldb"}, "",
                           "The engine of this node alone. Empty: storage_options.engine.",
                           store_list_text(&ClusterConfig::storage, &ProcessConfig::engine)));
  Key capacity =
      text_key("storage[].capacity", KeyType::Number, "1",
               "Its share of the documents, relative to other nodes. Only without cluster.groups, which names "
               "capacities itself.",
               [](ClusterConfig& c, std::size_t index, const std::string& text) {
                 c.storage[index].capacity = std::strtod(text.c_str(), nullptr);
               });
  capacity.min = 0;
  capacity.max = 1'000'000;
  all.push_back(std::move(capacity));
  Key index = text_key("storage[].index", KeyType::Integer, "",
                       "The index under which the cluster knows it, if that is not its place in the list: an index is "
                       "never given again after a node was removed. Empty: its place.",
                       [](ClusterConfig& c, std::size_t place, const std::string& text) {
                         c.storage[place].index = static_cast<int>(std::strtol(text.c_str(), nullptr, 10));
                       });
  index.min = 0;
  index.max = 65535;
  all.push_back(std::move(index));
}

void add_space_keys(std::vector<Key>& all) {
  const auto add = [&](const char* name, std::int64_t ClusterConfig::*member) {
    all.push_back(number_key(std::string("storage_options.space_") + name, member));
  };
  add("warn_percent", &ClusterConfig::space_warn_percent);
  add("throttle_percent", &ClusterConfig::space_throttle_percent);
  add("refuse_external_percent", &ClusterConfig::space_refuse_external_percent);
  add("refuse_all_percent", &ClusterConfig::space_refuse_all_percent);
  add("hysteresis_percent", &ClusterConfig::space_hysteresis_percent);
  add("reserve_bytes", &ClusterConfig::space_reserve_bytes);
}

void add_storage_keys(std::vector<Key>& all) {
  all.push_back(choice_key("storage_options.engine", {"slotfile", "leveldb"}, "slotfile",
                           "What keeps the documents: files of Fjord's own, or LevelDB. A node may say something else "
                           "(`storage[].engine`). A folder stays with the engine that made it.",
                           store_text(&ClusterConfig::engine)));
  all.push_back(number_key("storage_options.stripes", &ClusterConfig::stripes));
  all.push_back(number_key("storage_options.slotfile_bytes_max", &ClusterConfig::slotfile_bytes_max));
  all.push_back(number_key("storage_options.entries_max", &ClusterConfig::entries_max));
  all.push_back(number_key("storage_options.slotfiles_max", &ClusterConfig::slotfiles_max));
  all.push_back(number_key("storage_options.open_files_max", &ClusterConfig::open_files_max));
  all.push_back(choice_key("storage_options.durability", {"process", "sync"}, "process",
                           "When a write is acknowledged whose client does not say: `process`, when it survives the "
                           "end of the process; `sync`, when it survives a loss of power.",
                           store_text(&ClusterConfig::durability)));
  add_space_keys(all);
  all.push_back(number_key("storage_options.visitors_max", &ClusterConfig::visitors_max));
  all.push_back(number_key("storage_options.docblock_bytes", &ClusterConfig::docblock_bytes));
  all.push_back(number_key("storage_options.visitor_idle_ms", &ClusterConfig::visitor_idle_ms));
  all.push_back(
      text_key("storage_options.plugin_directory", KeyType::Text, "",
               "Every *.so in it is a library of visitors or applications (docs/operating/plugins.md); empty: none. "
               "Distributors look there for applications, too.",
               store_text(&ClusterConfig::plugin_directory)));
  all.push_back(number_key("storage_options.plugin_memory_bytes", &ClusterConfig::plugin_memory_bytes));
  all.push_back(number_key("storage_options.plugin_call_timeout_ms", &ClusterConfig::plugin_call_timeout_ms));
}

void add_distributor_keys(std::vector<Key>& all) {
  all.push_back(number_key("distributor_options.merges_max", &ClusterConfig::merges_max));
  all.push_back(number_key("distributor_options.pending_bytes_max", &ClusterConfig::pending_bytes_max));
  all.push_back(number_key("distributor_options.pending_operations_max", &ClusterConfig::pending_operations_max));
  all.push_back(number_key("distributor_options.document_bytes_max", &ClusterConfig::document_bytes_max));
  all.push_back(number_key("distributor_options.operation_timeout_ms", &ClusterConfig::operation_timeout_ms));
  all.push_back(number_key("distributor_options.storage_timeout_ms", &ClusterConfig::storage_timeout_ms));
  all.push_back(number_key("rpc.io_threads", &ClusterConfig::io_threads));
  all.push_back(number_key("rpc.poll_us", &ClusterConfig::poll_us));
  all.push_back(number_key("rpc.frame_bytes_max", &ClusterConfig::frame_bytes_max));
  all.push_back(number_key("rpc.connections_max", &ClusterConfig::connections_max));
  all.push_back(number_key("rpc.frame_timeout_ms", &ClusterConfig::frame_timeout_ms));
  all.push_back(number_key("rpc.idle_timeout_ms", &ClusterConfig::idle_timeout_ms));
  all.push_back(number_key("rpc.received_bytes_max", &ClusterConfig::received_bytes_max));
  all.push_back(choice_key("log.level", {"debug", "info", "warning", "error", "off"}, "info",
                           "What is worth a line of the log.", store_text(&ClusterConfig::log_level)));
  all.push_back(
      text_key("log.directory", KeyType::Text, "",
               "Folder in which each process writes its log to the file NODE.log. SIGHUP opens the file again, "
               "for programs that rename it. Empty: standard error.",
               store_text(&ClusterConfig::log_directory)));
  all.push_back(number_key("log.file_bytes_max", &ClusterConfig::log_file_bytes_max));
  all.push_back(number_key("log.files_max", &ClusterConfig::log_files_max));
}

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::to_string(static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

Status bad(const Key& key, const std::string& text) {
  return Status(StatusCode::InvalidArgument, fmt::format("\"{}\" is not {}", text, type_text(key)));
}

bool is_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  unsigned port = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  return error == std::errc() && stop == end && port <= 65535 && text.find_first_of(" \t/") == std::string::npos;
}

bool is_integer(const Key& key, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && static_cast<double>(value) >= key.min &&
         static_cast<double>(value) <= key.max;
}

bool is_number(const Key& key, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && value >= key.min && value <= key.max;
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> made;
    add_cluster_keys(made);
    add_fleetcontroller_keys(made);
    add_list_keys(made);
    add_storage_keys(made);
    add_distributor_keys(made);
    return made;
  }();
  return all;
}

std::string live_setting_of(const std::string& path) {
  const SettingDeclaration* setting = find_setting_of_key(path);
  return setting != nullptr && setting->is_live ? std::string(setting->name) : std::string();
}

const std::vector<Section>& sections() {
  static const std::vector<Section> all = {
      {"", "At the top of the file."},
      {"cluster", "What all nodes share."},
      {"fleetcontroller", "The process that decides which nodes are up, and what is common to several of them."},
      {"fleet_controllers[]",
       "A list, in place of `address`, `http` and `directory` above; the first element is fleetcontroller.0. More than "
       "one need `fleetcontroller.zookeeper`."},
      {"distributors[]", "A list; the first element is distributor.0."},
      {"gateways[]", "A list, which can be absent; the first element is gateway.0."},
      {"storage[]", "A list; the first element is storage.0."},
      {"storage_options", "For every storage node."},
      {"distributor_options", "For every distributor."},
      {"rpc", "Calls between processes."},
      {"log", "Messages of the processes."},
  };
  return all;
}

std::string section_of(const std::string& path) {
  const std::size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string name_in_section(const std::string& path) {
  const std::size_t dot = path.find('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

std::string type_text(const Key& key) {
  const std::string unit = key.unit.empty() ? "" : " " + key.unit;
  switch (key.type) {
    case KeyType::Text:
      return "a text";
    case KeyType::Choice:
      return fmt::format("one of {}", fmt::join(key.choices, ", "));
    case KeyType::Boolean:
      return "true or false";
    case KeyType::Integer:
      return fmt::format("an integer from {} to {}{}", number_text(key.min), number_text(key.max), unit);
    case KeyType::Number:
      return fmt::format("a number from {} to {}{}", number_text(key.min), number_text(key.max), unit);
    case KeyType::Address:
      return "host:port";
    case KeyType::OptionalAddress:
      return "host:port or empty";
    case KeyType::Path:
      return "the path of a folder";
  }
  return "";
}

Status check_value(const Key& key, const std::string& text) {
  bool fits = true;
  switch (key.type) {
    case KeyType::Text:
      break;
    case KeyType::Choice:
      fits = std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end();
      break;
    case KeyType::Boolean:
      fits = text == "true" || text == "false";
      break;
    case KeyType::Integer:
      fits = is_integer(key, text);
      break;
    case KeyType::Number:
      fits = is_number(key, text);
      break;
    case KeyType::Address:
      fits = is_address(text);
      break;
    case KeyType::OptionalAddress:
      fits = text.empty() || is_address(text);
      break;
    case KeyType::Path:
      fits = !text.empty();
      break;
  }
  return fits ? Status::ok() : bad(key, text);
}

}  // namespace fjord::config
