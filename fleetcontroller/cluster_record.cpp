#include "cluster_record.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"

namespace fjord::fleetcontroller {
namespace {

// The newest format version. Version 1 has no exceptions, version 2 no term base, version 3 no steps of the balancer,
// version 4 no read shares, version 5 no states wanted after maintenance. A record is written in the lowest version
// that can hold it, so that an earlier program can read it.
constexpr std::uint16_t kVersion = 7;
constexpr std::size_t kHistoryMax = 500;
constexpr std::size_t kConfigsMax = 100;
constexpr std::size_t kTextMax = 400;

/// Writes the fields in the order in which Parser reads them (visit()).
class Writer {
 public:
  void operator()(std::uint64_t value) { put_varint(bytes, value); }
  void operator()(std::int64_t value) { put_varint(bytes, static_cast<std::uint64_t>(value)); }
  void operator()(const std::string& value) { put_string(bytes, value); }
  void operator()(NodeState value) { put_varint(bytes, static_cast<std::uint64_t>(value)); }
  void operator()(std::uint16_t value) { put_varint(bytes, value); }
  template <typename T>
  void operator()(const std::vector<T>& list) {
    put_varint(bytes, list.size());
    for (const T& element : list) (*this)(element);
  }
  template <typename T>
  void operator()(const std::map<std::string, T>& map) {
    put_varint(bytes, map.size());
    for (const auto& [name, value] : map) {
      (*this)(name);
      (*this)(value);
    }
  }
  template <typename T>
  void operator()(const std::optional<T>& value) {
    put_varint(bytes, value ? 1 : 0);
    if (value) (*this)(*value);
  }
  template <typename T>
  void operator()(const T& value) {
    visit(*this, value);
  }
  std::uint16_t version = kVersion;
  std::string bytes;
};

class Parser {
 public:
  Parser(std::string_view bytes, std::uint16_t format) : version(format), reader(bytes) {}
  void operator()(std::uint16_t& value) { value = static_cast<std::uint16_t>(reader.varint()); }
  void operator()(std::uint64_t& value) { value = reader.varint(); }
  void operator()(std::int64_t& value) { value = static_cast<std::int64_t>(reader.varint()); }
  void operator()(std::string& value) { value = std::string(reader.string()); }
  void operator()(NodeState& value) { value = static_cast<NodeState>(reader.varint()); }
  template <typename T>
  void operator()(std::vector<T>& list) {
    for (std::uint64_t n = reader.varint(); n > 0 && reader.ok(); --n) (*this)(list.emplace_back());
  }
  template <typename T>
  void operator()(std::map<std::string, T>& map) {
    for (std::uint64_t n = reader.varint(); n > 0 && reader.ok(); --n) {
      std::string name(reader.string());
      (*this)(map[name]);
    }
  }
  template <typename T>
  void operator()(std::optional<T>& value) {
    if (reader.varint() != 0) (*this)(value.emplace());
  }
  template <typename T>
  void operator()(T& value) {
    visit(*this, value);
  }
  std::uint16_t version;
  ByteReader reader;
};

template <typename M, typename T>
concept Is = std::same_as<std::remove_const_t<M>, T>;

template <typename V, Is<PublishedState> M>
void visit(V& v, M& m) {
  v(m.version), v(m.state), v(m.distribution), v(m.distributors), v(m.storage);
}
template <typename V, Is<PlacementException> M>
void visit(V& v, M& m) {
  v(m.bucket), v(m.from), v(m.to);
}
template <typename V, Is<ReadShare> M>
void visit(V& v, M& m) {
  v(m.bucket), v(m.node), v(m.permille);
}
template <typename V, Is<BalancedReplica> M>
void visit(V& v, M& m) {
  v(m.bucket), v(m.from), v(m.to), v(m.bytes);
  if (v.version >= 5) v(m.read_permille);
}
template <typename V, Is<BalanceStep> M>
void visit(V& v, M& m) {
  v(m.id), v(m.kind), v(m.unix_us), v(m.state_version), v(m.round), v(m.removed), v(m.added), v(m.moves);
  v(m.bytes_total), v(m.imbalance_before), v(m.imbalance_after), v(m.who), v(m.why), v(m.reverts);
  if (v.version >= 5) v(m.reads_removed), v(m.reads_added);
}
template <typename V, Is<NodeTable> M>
void visit(V& v, M& m) {
  v(m.distribution), v(m.distributors), v(m.storage), v(m.distribution_bits);
  if (v.version >= 2) v(m.exceptions_bits), v(m.exceptions);
  if (v.version >= 5) v(m.read_shares);
}
template <typename V, Is<HistoryEntry> M>
void visit(V& v, M& m) {
  v(m.version), v(m.term), v(m.unix_us), v(m.active_unix_us), v(m.what), v(m.why), v(m.who);
}
template <typename V, Is<ConfigVersion> M>
void visit(V& v, M& m) {
  v(m.version), v(m.unix_us), v(m.who), v(m.values);
}
template <typename V, Is<WantedState> M>
void visit(V& v, M& m) {
  v(m.state), v(m.reason), v(m.who), v(m.since_unix_us);
}
template <typename V, Is<ClusterRecord> M>
void visit(V& v, M& m) {
  v(m.term), v(m.active), v(m.pending), v(m.nodes), v(m.incarnations), v(m.wanted), v(m.configs), v(m.history);
  if (v.version >= 3) v(m.term_base);
  if (v.version >= 4) v(m.balance_step), v(m.balance_steps);
  if (v.version >= 6) v(m.wanted_after);
}
template <typename V, Is<SchemaRecord> M>
void visit(V& v, M& m) {
  v(m.version), v(m.schemas);
  if (v.version >= 7) v(m.dropped);
}
template <typename V, Is<FolderRecord> M>
void visit(V& v, M& m) {
  v(m.folder), v(m.lost), v(m.lost_unix_us);
}
template <typename V, Is<IdentityRecord> M>
void visit(V& v, M& m) {
  v(m.cluster_id), v(m.folders);
}

template <typename T>
std::string encode_any(const T& record, std::uint16_t version) {
  Writer writer;
  writer.version = version;
  visit(writer, record);
  std::string bytes;
  put_fixed<std::uint16_t>(bytes, version);
  put_fixed<std::uint32_t>(bytes, checksum32(writer.bytes));
  return bytes + writer.bytes;
}

template <typename T>
Result<T> parse_any(std::string_view bytes, const char* what) {
  ByteReader head(bytes);
  const auto version = head.fixed<std::uint16_t>();
  const auto checksum = head.fixed<std::uint32_t>();
  const std::string_view content = head.rest();
  const bool is_known = version >= 1 && version <= kVersion;
  if (!head.ok() || (is_known && checksum != checksum32(content))) {
    return Status(StatusCode::Corruption, std::string(what) + " is damaged");
  }
  if (!is_known) {
    return Status(StatusCode::Corruption, std::string(what) + " has format version " + std::to_string(version) +
                                              "; this program knows " + std::to_string(kVersion));
  }
  T record;
  Parser parser(content, version);
  visit(parser, record);
  if (!parser.reader.at_end()) return Status(StatusCode::Corruption, std::string(what) + " is damaged");
  return record;
}

/// True if the record says something about read shares, which versions before 5 cannot.
bool has_read_shares(const ClusterRecord& record) {
  return !record.nodes.read_shares.empty() ||
         std::any_of(record.balance_steps.begin(), record.balance_steps.end(),
                     [](const BalanceStep& step) { return !step.reads_removed.empty() || !step.reads_added.empty(); });
}

}  // namespace

const std::map<std::string, std::string>& ClusterRecord::config() const {
  static const std::map<std::string, std::string> none;
  return configs.empty() ? none : configs.back().values;
}

void ClusterRecord::add_history(HistoryEntry entry) {
  if (entry.what.size() > kTextMax) entry.what = entry.what.substr(0, kTextMax) + "...";
  if (entry.why.size() > kTextMax) entry.why = entry.why.substr(0, kTextMax) + "...";
  history.push_back(std::move(entry));
  if (history.size() > kHistoryMax) history.erase(history.begin());
}

std::uint64_t BalanceStep::bytes() const {
  std::uint64_t sum = 0;
  for (const BalancedReplica& replica : moves) sum += replica.bytes;
  return sum;
}

void ClusterRecord::add_config(ConfigVersion config) {
  configs.push_back(std::move(config));
  if (configs.size() > kConfigsMax) configs.erase(configs.begin());
}

std::string encode(const ClusterRecord& record) {
  std::uint16_t lowest = record.nodes.exceptions.empty() ? 1 : 2;
  if (record.term_base != 0) lowest = 3;
  if (record.balance_step != 0) lowest = 4;
  if (has_read_shares(record)) lowest = 5;
  if (!record.wanted_after.empty()) lowest = 6;
  return encode_any(record, lowest);
}
std::string encode(const SchemaRecord& record) { return encode_any(record, record.dropped.empty() ? 1 : 7); }
std::string encode(const IdentityRecord& record) { return encode_any(record, 1); }
Result<ClusterRecord> parse_cluster_record(std::string_view bytes) {
  return parse_any<ClusterRecord>(bytes, "the cluster's record");
}
Result<SchemaRecord> parse_schema_record(std::string_view bytes) {
  return parse_any<SchemaRecord>(bytes, "the record of schemas");
}
Result<IdentityRecord> parse_identity_record(std::string_view bytes) {
  return parse_any<IdentityRecord>(bytes, "the record of the cluster's identity");
}

}  // namespace fjord::fleetcontroller
