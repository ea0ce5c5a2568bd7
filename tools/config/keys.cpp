#include "keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>

namespace fjord::config {
namespace {

using Store = std::function<void(ClusterConfig&, std::size_t, const std::string&)>;

Store store_text(std::string ClusterConfig::*member) {
  return [member](ClusterConfig& config, std::size_t, const std::string& text) { config.*member = text; };
}
Store store_integer(std::int64_t ClusterConfig::*member) {
  return [member](ClusterConfig& config, std::size_t, const std::string& text) {
    config.*member = std::strtoll(text.c_str(), nullptr, 10);
  };
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
Key integer_key(std::string path, std::string unit, std::int64_t default_value, std::int64_t min, std::int64_t max,
                std::string help, std::int64_t ClusterConfig::*member) {
  Key key = text_key(std::move(path), KeyType::Integer, std::to_string(default_value), std::move(help),
                     store_integer(member));
  key.unit = std::move(unit);
  key.min = static_cast<double>(min);
  key.max = static_cast<double>(max);
  return key;
}
Key choice_key(std::string path, std::vector<std::string> choices, std::string default_value, std::string help,
               Store store) {
  Key key = text_key(std::move(path), KeyType::Choice, std::move(default_value), std::move(help), std::move(store));
  key.choices = std::move(choices);
  return key;
}

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kGiB = 1024 * kMiB;

void add_cluster_keys(std::vector<Key>& all) {
  all.push_back(
      text_key("allow_remote", KeyType::Boolean, "false",
               "Processes may listen on addresses that other machines reach. Nothing is encrypted and nobody is "
               "asked for a password, so this is for networks that you trust.",
               [](ClusterConfig& c, std::size_t, const std::string& text) { c.allow_remote = text == "true"; }));
  all.push_back(integer_key("cluster.redundancy", "", 2, 1, 16, "Copies of each document, on different storage nodes.",
                            &ClusterConfig::redundancy));
  all.push_back(integer_key("cluster.distribution_bits", "", 8, 1, 16,
                            "The cluster has 2 to the power of this many buckets, to begin with.",
                            &ClusterConfig::distribution_bits));
  all.push_back(
      text_key("cluster.groups", KeyType::Text, "",
               "Tree of the parts that can fail as a whole, e.g. `(root (rack_a 0 1) (rack_b 2 3))` with the "
               "indexes of storage nodes; copies go to different parts. Empty: all storage nodes in one group.",
               store_text(&ClusterConfig::groups)));
}

void add_fleetcontroller_keys(std::vector<Key>& all) {
  all.push_back(required(text_key("fleetcontroller.address", KeyType::Address, "", "Where it listens for other nodes.",
                                  store_controller_text(&ProcessConfig::address))));
  all.push_back(text_key("fleetcontroller.http", KeyType::OptionalAddress, "",
                         "For /metrics and /health; empty: no HTTP.", store_controller_text(&ProcessConfig::http)));
  all.push_back(required(text_key("fleetcontroller.directory", KeyType::Path, "",
                                  "Keeps the version of the cluster state and the schemas.",
                                  store_controller_text(&ProcessConfig::directory))));
  all.push_back(integer_key("fleetcontroller.poll_interval_ms", "ms", 300, 10, 60'000, "How often it asks each node.",
                            &ClusterConfig::poll_interval_ms));
  all.push_back(integer_key("fleetcontroller.poll_timeout_ms", "ms", 1500, 10, 60'000,
                            "How long a node may take to answer.", &ClusterConfig::poll_timeout_ms));
  all.push_back(integer_key("fleetcontroller.down_after_ms", "ms", 1800, 50, 600'000,
                            "A node that has not answered for so long counts as down.", &ClusterConfig::down_after_ms));
  all.push_back(integer_key("fleetcontroller.start_grace_ms", "ms", 2500, 0, 600'000,
                            "After its own start it waits so long for nodes that were up before it calls them down.",
                            &ClusterConfig::start_grace_ms));
  all.push_back(text_key("fleetcontroller.zookeeper", KeyType::Text, "",
                         "Servers of a ZooKeeper ensemble, `host:port,host:port`, which keeps what fleet controllers "
                         "must not forget, and elects one of several. Empty: a store in the folder of the only one.",
                         store_text(&ClusterConfig::zookeeper)));
  all.push_back(text_key("fleetcontroller.zookeeper_root", KeyType::Text, "/fjord",
                         "Path in ZooKeeper below which this cluster's nodes are.",
                         store_text(&ClusterConfig::zookeeper_root)));
  all.push_back(integer_key("fleetcontroller.session_timeout_ms", "ms", 6000, 100, 600'000,
                            "ZooKeeper: a fleet controller that was not heard of for so long leads no more.",
                            &ClusterConfig::session_timeout_ms));
  all.push_back(
      required(text_key("fleet_controllers[].address", KeyType::Address, "", "Where it listens for other nodes.",
                        store_list_text(&ClusterConfig::fleet_controllers, &ProcessConfig::address))));
  all.push_back(text_key("fleet_controllers[].http", KeyType::OptionalAddress, "",
                         "For /metrics and /health; empty: no HTTP.",
                         store_list_text(&ClusterConfig::fleet_controllers, &ProcessConfig::http)));
  all.push_back(required(text_key("fleet_controllers[].directory", KeyType::Path, "", "A folder of its own.",
                                  store_list_text(&ClusterConfig::fleet_controllers, &ProcessConfig::directory))));
}

void add_list_keys(std::vector<Key>& all) {
  all.push_back(
      required(text_key("distributors[].address", KeyType::Address, "", "Where it listens for clients and nodes.",
                        store_list_text(&ClusterConfig::distributors, &ProcessConfig::address))));
  all.push_back(text_key("distributors[].http", KeyType::OptionalAddress, "",
                         "For /metrics and /health; empty: no HTTP.",
                         store_list_text(&ClusterConfig::distributors, &ProcessConfig::http)));
  all.push_back(
      required(text_key("storage[].address", KeyType::Address, "", "Where it listens for distributors and visits.",
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
  const auto percent = [&](const char* name, std::int64_t value, const char* help,
                           std::int64_t ClusterConfig::*member) {
    all.push_back(integer_key(std::string("storage_options.space_") + name, "", value, 0, 101, help, member));
  };
  percent("warn_percent", 85, "Used space of a node's file system, in percent, at which it warns.",
          &ClusterConfig::space_warn_percent);
  percent("throttle_percent", 92, "From here on a growing share of puts is answered BUSY, and tried again.",
          &ClusterConfig::space_throttle_percent);
  percent("refuse_external_percent", 95,
          "From here on puts are refused with NO_SPACE; reads, removes and repair go on.",
          &ClusterConfig::space_refuse_external_percent);
  percent("refuse_all_percent", 98, "From here on nothing is written but removes.",
          &ClusterConfig::space_refuse_all_percent);
  percent("hysteresis_percent", 2, "How far below its beginning used space has to fall for a stage to end.",
          &ClusterConfig::space_hysteresis_percent);
  all.push_back(
      integer_key("storage_options.space_reserve_bytes", "bytes", 256 * kMiB, 0, 1024 * kGiB,
                  "With less free nothing is written but removes, with less than twice this puts are refused.",
                  &ClusterConfig::space_reserve_bytes));
}

void add_storage_keys(std::vector<Key>& all) {
  all.push_back(choice_key("storage_options.engine", {"slotfile", "leveldb"}, "slotfile",
                           "What keeps the documents: files of Fjord's own, or LevelDB. A node may say something else "
                           "(`storage[].engine`). A folder stays with the engine that made it.",
                           store_text(&ClusterConfig::engine)));
  all.push_back(
      integer_key("storage_options.stripes", "", 0, 0, 64,
                  "Threads that share the buckets, a power of two; 0: one, or two with two CPUs and more. May "
                  "differ between starts.",
                  &ClusterConfig::stripes));
  all.push_back(integer_key("storage_options.slotfile_bytes_max", "bytes", 16 * kMiB, 64 * kKiB, kGiB,
                            "Size of a slotfile at which its bucket's slotfiles are split in two.",
                            &ClusterConfig::slotfile_bytes_max));
  all.push_back(integer_key("storage_options.entries_max", "", 8192, 64, 1'000'000,
                            "Entries of a slotfile at which its bucket's slotfiles are split in two.",
                            &ClusterConfig::entries_max));
  all.push_back(integer_key("storage_options.slotfiles_max", "", 64, 1, 64, "Slotfiles of a bucket, a power of two.",
                            &ClusterConfig::slotfiles_max));
  all.push_back(integer_key("storage_options.open_files_max", "", 1024, 16, 1'000'000,
                            "Files that a stripe keeps open.", &ClusterConfig::open_files_max));
  all.push_back(choice_key("storage_options.durability", {"process", "sync"}, "process",
                           "When a write is acknowledged whose client does not say: `process`, when it survives the "
                           "end of the process; `sync`, when it survives a loss of power.",
                           store_text(&ClusterConfig::durability)));
  add_space_keys(all);
  all.push_back(integer_key("storage_options.visitors_max", "", 0, 0, 1024,
                            "Visitors that run at once on a node; 0: 2.5 a CPU.", &ClusterConfig::visitors_max));
  all.push_back(integer_key("storage_options.docblock_bytes", "bytes", kMiB, 4 * kKiB, 16 * kMiB,
                            "Documents that are read and sent as one block.", &ClusterConfig::docblock_bytes));
  all.push_back(integer_key("storage_options.visitor_idle_ms", "ms", 60'000, 1000, 3'600'000,
                            "A visitor whose client has been silent for so long is ended.",
                            &ClusterConfig::visitor_idle_ms));
  all.push_back(
      text_key("storage_options.plugin_directory", KeyType::Text, "",
               "Every *.so in it is a library of visitors or applications (docs/operating/plugins.md); empty: none. "
               "Distributors look there for applications, too.",
               store_text(&ClusterConfig::plugin_directory)));
  all.push_back(integer_key("storage_options.plugin_memory_bytes", "bytes", kGiB, 64 * kMiB, 1024 * kGiB,
                            "Address space of the process in which a visitor or a task of a plugin runs.",
                            &ClusterConfig::plugin_memory_bytes));
  all.push_back(integer_key(
      "storage_options.plugin_call_timeout_ms", "ms", 60'000, 10, 3'600'000,
      "A visitor of a plugin that spends longer on a block of documents, or an application on a document, is "
      "ended. On distributors 10 s at most.",
      &ClusterConfig::plugin_call_timeout_ms));
}

void add_distributor_keys(std::vector<Key>& all) {
  all.push_back(integer_key("distributor_options.merges_max", "", 8, 1, 1024,
                            "Buckets whose copies are brought into sync at once.", &ClusterConfig::merges_max));
  all.push_back(integer_key("distributor_options.pending_bytes_max", "bytes", 256 * kMiB, kMiB, 64 * kGiB,
                            "Operations under way; more are refused with BUSY, and clients wait.",
                            &ClusterConfig::pending_bytes_max));
  all.push_back(integer_key("distributor_options.pending_operations_max", "", 16'384, 16, 1 << 24,
                            "Operations under way; more are refused with BUSY, and clients wait.",
                            &ClusterConfig::pending_operations_max));
  all.push_back(integer_key("distributor_options.document_bytes_max", "bytes", 64 * kMiB, kKiB, kGiB,
                            "Larger documents are refused.", &ClusterConfig::document_bytes_max));
  all.push_back(integer_key("distributor_options.operation_timeout_ms", "ms", 30'000, 10, 3'600'000,
                            "How long an operation may take if its client does not say.",
                            &ClusterConfig::operation_timeout_ms));
  all.push_back(integer_key("distributor_options.storage_timeout_ms", "ms", 10'000, 10, 3'600'000,
                            "How long a storage node may take before it is asked again.",
                            &ClusterConfig::storage_timeout_ms));
  all.push_back(integer_key("rpc.io_threads", "", 1, 1, 64, "Threads that move bytes, for each direction of calls.",
                            &ClusterConfig::io_threads));
  all.push_back(integer_key("rpc.frame_bytes_max", "bytes", 64 * kMiB, 64 * kKiB, kGiB,
                            "A connection that sends a longer frame is closed.", &ClusterConfig::frame_bytes_max));
  all.push_back(choice_key("log.level", {"debug", "info", "warning", "error", "off"}, "info",
                           "What is worth a line on standard error.", store_text(&ClusterConfig::log_level)));
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
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"cluster.redundancy", "cluster.redundancy"},
      {"cluster.distribution_bits", "cluster.distribution_bits"},
      {"fleetcontroller.down_after_ms", "controller.down_after"},
      {"storage_options.slotfile_bytes_max", "storage.file_bytes_max"},
      {"storage_options.entries_max", "storage.entries_max"},
      {"storage_options.slotfiles_max", "storage.slotfiles_max"},
      {"storage_options.space_reserve_bytes", "storage.space_reserve_bytes"},
      {"storage_options.visitors_max", "storage.visitors_max"},
      {"distributor_options.merges_max", "distributor.merges_max"},
      {"distributor_options.pending_bytes_max", "distributor.pending_bytes_max"},
      {"distributor_options.pending_operations_max", "distributor.pending_operations_max"},
      {"distributor_options.document_bytes_max", "distributor.document_bytes_max"},
  };
  for (const auto& [key, setting] : kPairs) {
    if (path == key) return std::string(setting);
  }
  return {};
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
