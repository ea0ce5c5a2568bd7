#include "fjord/tuner/workload.h"

#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <vector>

#include "fjord/common/byte_units.h"
#include "yaml_values.h"

namespace fjord::tuner {
namespace {

enum class Kind { Number, Bytes, Whole, Boolean, Durability };

/// A key of the workload file: its type, bounds, example, help and the member that takes its value.
struct Key {
  std::string path;  ///< Where the key stands in the file, such as "nodes.cores".
  Kind kind;
  double min;
  double max;
  std::string example;
  std::string help;
  std::function<void(Workload&, double)> store;
};

Key number(std::string path, double min, double max, std::string example, std::string help, double Workload::*member,
           double factor = 1) {
  return {std::move(path), Kind::Number, min, max, std::move(example), std::move(help), [=](Workload& w, double value) {
            w.*member = value * factor;
          }};
}
Key bytes(std::string path, double min, double max, std::string example, std::string help, double Workload::*member) {
  Key key = number(std::move(path), min, max, std::move(example), std::move(help), member);
  key.kind = Kind::Bytes;
  return key;
}
Key whole(std::string path, double min, double max, std::string example, std::string help,
          std::int64_t Workload::*member) {
  return {std::move(path), Kind::Whole, min, max, std::move(example), std::move(help), [=](Workload& w, double value) {
            w.*member = static_cast<std::int64_t>(value);
          }};
}

constexpr double kTera = 1e12;

const std::vector<Key>& keys() {
  static const std::vector<Key> all = {
      number("documents", 1, 1e15, "20000000", "how many there will be", &Workload::documents),
      bytes("document_bytes.mean", 1, 1e9, "800", "of one document, encoded", &Workload::document_bytes),
      bytes("document_bytes.p99", 1, 1e9, "4kB", "99 % of the documents are not larger", &Workload::document_bytes_p99),
      number("operations.reads_per_s", 0, 1e9, "4000", "of the whole cluster", &Workload::reads_per_s),
      number("operations.writes_per_s", 0, 1e9, "1000", "of the whole cluster", &Workload::writes_per_s),
      number("operations.headroom", 0, 1e6, "2",
             "speed beyond this multiple of these reads and writes counts for nothing; 0: all counts",
             &Workload::headroom),
      number("operations.overwrite_share", 0, 1, "0.3", "of the writes, those that replace or remove a document",
             &Workload::overwrite_share),
      number("operations.key_skew", 0, 2, "0.9", "exponent of Zipf's law for reads; 0: all documents alike",
             &Workload::key_skew),
      number("operations.latency_target_ms", 0.01, 600'000, "20", "99 % of reads and writes, in milliseconds",
             &Workload::latency_target_s, 1e-3),
      number("scans.share", 0, 1, "0.2", "how much visits and jobs matter, against single reads and writes",
             &Workload::scan_share),
      number("scans.map_us_per_document", 0, 1e9, "2", "CPU time of a job's map function",
             &Workload::map_s_per_document, 1e-6),
      bytes("scans.tuple_bytes_per_document", 0, 1e9, "30", "what a job emits for a document; 0: no jobs",
            &Workload::tuple_bytes_per_document),
      bytes("scans.output_bytes", 0, 1e15, "200MB", "results of a job", &Workload::job_output_bytes),
      number("scans.network_share", 0.001, 1, "0.25", "of the network, what jobs may take",
             &Workload::job_traffic_share),
      number("give_up_max", 0, 1, "0.1",
             "the most that advice takes from operations, visits or p99, as a share of each", &Workload::give_up_max),
      whole("redundancy", 1, 16, "2", "replicas of each document", &Workload::redundancy),
      {"durability", Kind::Durability, 0, 1, "process", "process, or sync: each write survives a loss of power",
       [](Workload& w, double value) { w.sync = value != 0; }},
      number("longest_absence_s", 0, 1e9, "86400", "a node may be away for so long and come back with its data",
             &Workload::longest_absence_s),
      whole("nodes.count", 1, 65'000, "4", "storage nodes", &Workload::nodes),
      whole("nodes.cores", 1, 4096, "8", "of each", &Workload::cores),
      bytes("nodes.memory", 64.0 * (1 << 20), 64 * kTera, "32GiB", "of each", &Workload::memory_bytes),
      bytes("nodes.disk.read_bytes_per_s", 1e6, kTera, "500MB", "sequential; leave out to take it from the profile",
            &Workload::disk_read_rate),
      bytes("nodes.disk.write_bytes_per_s", 1e6, kTera, "400MB", "sequential", &Workload::disk_write_rate),
      number("nodes.disk.random_read_ms", 0.001, 1000, "0.15", "one read of 4 KiB", &Workload::disk_random_read_s,
             1e-3),
      number("nodes.disk.iops", 1, 1e8, "40000", "random reads a second, many at once", &Workload::disk_iops),
      number("nodes.disk.sync_ms", 0.001, 1000, "1", "a small write and its sync", &Workload::disk_sync_s, 1e-3),
      bytes("nodes.network_bytes_per_s", 1e5, kTera, "125MB", "each way", &Workload::network_rate),
  };
  return all;
}

const Key* find_key(const std::string& path) {
  for (const Key& key : keys()) {
    if (key.path == path) return &key;
  }
  return nullptr;
}
bool is_section(const std::string& path) {
  for (const Key& key : keys()) {
    if (key.path.starts_with(path + ".")) return true;
  }
  return false;
}

std::string expected(const Key& key) {
  switch (key.kind) {
    case Kind::Number:
      return fmt::format("expected a number from {:g} to {:g}", key.min, key.max);
    case Kind::Bytes:
      return fmt::format("expected bytes from {} to {}", bytes_text(key.min), bytes_text(key.max));
    case Kind::Whole:
      return fmt::format("expected a whole number from {:g} to {:g}", key.min, key.max);
    case Kind::Boolean:
      return "expected true or false";
    case Kind::Durability:
      return "expected process or sync";
  }
  return "";
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Result<Workload> read(const YAML::Node& root) {
    FJORD_TRY(read_map(root, ""));
    for (const char* required : {"documents", "document_bytes.mean", "nodes.count", "nodes.memory"}) {
      if (!given_.contains(required)) return missing(root, required);
    }
    if (!given_.contains("document_bytes.p99")) workload_.document_bytes_p99 = 4 * workload_.document_bytes;
    if (workload_.document_bytes_p99 < workload_.document_bytes) {
      return yaml_error(file_, root["document_bytes"], "document_bytes.p99", "is less than the mean");
    }
    if (workload_.redundancy > workload_.nodes) {
      return yaml_error(file_, root["redundancy"] ? root["redundancy"] : root, "redundancy",
                        fmt::format("{} replicas on {} nodes", workload_.redundancy, workload_.nodes));
    }
    return workload_;
  }

 private:
  Status missing(const YAML::Node& root, const std::string& path) const {
    const Key& key = *find_key(path);
    return yaml_error(file_, root, path, "is missing; " + expected(key) + ": " + key.help);
  }

  Status read_map(const YAML::Node& map, const std::string& section) {
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) return yaml_error(file_, entry.first, "a key", "has to be a word");
      const std::string path = section.empty() ? entry.first.Scalar() : section + "." + entry.first.Scalar();
      if (!given_.insert(path).second) return yaml_error(file_, entry.first, path, "is there twice");
      if (path == "current") {
        FJORD_TRY(read_current(entry.second));
      } else if (const Key* key = find_key(path)) {
        FJORD_TRY(read_value(*key, entry.second));
      } else if (!is_section(path)) {
        return yaml_error(file_, entry.first, path, "unknown key; `fjord tune example` shows all");
      } else if (!entry.second.IsMap()) {
        return yaml_error(file_, entry.second, path, "expected keys below it");
      } else {
        FJORD_TRY(read_map(entry.second, path));
      }
    }
    return Status::ok();
  }

  Status read_value(const Key& key, const YAML::Node& node) {
    if (!node.IsScalar()) return yaml_error(file_, node, key.path, expected(key));
    if (key.kind == Kind::Durability) {
      if (node.Scalar() != "process" && node.Scalar() != "sync") {
        return yaml_error(file_, node, key.path, expected(key));
      }
      key.store(workload_, node.Scalar() == "sync" ? 1 : 0);
      return Status::ok();
    }
    const Result<double> value = number_of(node.Scalar(), key.kind == Kind::Bytes);
    if (!value) return yaml_error(file_, node, key.path, value.error().message());
    const bool is_whole = key.kind != Kind::Whole || *value == std::floor(*value);
    if (*value < key.min || *value > key.max || !is_whole) {
      return yaml_error(file_, node, key.path, fmt::format("{} is out of bounds; {}", node.Scalar(), expected(key)));
    }
    key.store(workload_, *value);
    return Status::ok();
  }

  Status read_current(const YAML::Node& map) {
    if (!map.IsMap()) return yaml_error(file_, map, "current", "expected settings and their values");
    for (const auto& entry : map) {
      const std::string name = entry.first.Scalar();
      const Knob* knob = find_knob(name);
      if (knob == nullptr)
        return yaml_error(file_, entry.first, "current." + name, "the advisor knows no such setting");
      if (!entry.second.IsScalar()) return yaml_error(file_, entry.second, "current." + name, "expected a value");
      const Result<double> value = number_of(entry.second.Scalar(), knob->unit == KnobUnit::Bytes);
      if (!value) return yaml_error(file_, entry.second, "current." + name, value.error().message());
      if (*value < static_cast<double>(knob->min) || *value > static_cast<double>(knob->max)) {
        return yaml_error(file_, entry.second, "current." + name,
                          fmt::format("expected {} to {}", value_text(*knob, knob->min), value_text(*knob, knob->max)));
      }
      workload_.current.*(knob->member) = static_cast<std::int64_t>(*value);
    }
    return Status::ok();
  }

  const std::string& file_;
  Workload workload_;
  std::set<std::string> given_;
};

}  // namespace

HardwareProfile Workload::with_overrides(HardwareProfile profile) const {
  const auto take = [&](Constant constant, double value) {
    if (value > 0) profile.set_from_workload(constant, value);
  };
  take(Constant::SequentialReadRate, disk_read_rate);
  take(Constant::SequentialWriteRate, disk_write_rate);
  take(Constant::RandomReadS, disk_random_read_s);
  take(Constant::RandomReadsPerS, disk_iops);
  take(Constant::SyncS, disk_sync_s);
  take(Constant::NetworkRate, network_rate);
  return profile;
}

Result<Workload> parse_workload(std::string_view yaml, const std::string& file) {
  FJORD_TRY_ASSIGN(const YAML::Node root, load_yaml_map(yaml, file));
  return Reader(file).read(root);
}

std::string example_workload() {
  std::string text =
      "# A workload for `fjord tune advise --workload FILE`. What is left out is as an ordinary cluster would have "
      "it;\n"
      "# documents, document_bytes.mean, nodes.count and nodes.memory have to be there.\n";
  std::vector<std::string> open;
  for (const Key& key : keys()) {
    std::vector<std::string> parts;
    for (std::size_t from = 0, to = 0; to != std::string::npos; from = to + 1) {
      to = key.path.find('.', from);
      parts.push_back(key.path.substr(from, to == std::string::npos ? to : to - from));
    }
    std::size_t same = 0;
    while (same < open.size() && same + 1 < parts.size() && open[same] == parts[same]) ++same;
    open.assign(parts.begin(), parts.end() - 1);
    for (std::size_t i = same; i < open.size(); ++i) text += fmt::format("{}{}:\n", std::string(2 * i, ' '), open[i]);
    const std::string line = fmt::format("{}{}: {}", std::string(2 * open.size(), ' '), parts.back(), key.example);
    text += fmt::format("{:<40} # {}\n", line, key.help);
  }
  text += "current:                                 # settings that are not at their defaults now\n";
  text += "  storage.held_bytes_max: 128MiB\n";
  return text;
}

}  // namespace fjord::tuner
