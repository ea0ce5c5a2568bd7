#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/cluster/node.h"
#include "fjord/common/check.h"
#include "fjord/common/result.h"

namespace fjord {

/// The state of a node, or of the cluster as a whole, which is never Retired or Maintenance. The state string has one
/// letter for each: u i d r m s.
enum class NodeState : std::uint8_t { Up = 1, Initializing = 2, Down = 3, Retired = 4, Maintenance = 5, Stopping = 6 };

/// Returns "up", "initializing", "down", "retired", "maintenance" or "stopping".
std::string_view to_string(NodeState state);
/// Returns the state's letter in the state string.
char to_letter(NodeState state);
/// Returns the state that the letter stands for. Errors: InvalidArgument.
Result<NodeState> node_state_from_letter(std::string_view letter);
inline std::ostream& operator<<(std::ostream& out, NodeState state) { return out << to_string(state); }

/// Returns true if a node in state `a` can do more than one in state `b`: up > retired > initializing > stopping > down
/// > maintenance.
bool is_above(NodeState a, NodeState b);
/// Returns true if the state that an operator wants takes effect: it has to be below the state that the node reports.
inline bool wanted_may_override(NodeState reported, NodeState wanted) { return is_above(reported, wanted); }

/// Below this progress an initializing node still lists its buckets and serves no requests.
inline constexpr double kListingProgressLimit = 0.01;
/// Distribution bits of a state that does not name them, and fewest used bits of a node that does not report them.
inline constexpr unsigned kDefaultDistributionBits = 16;

/// A range of state versions under which a node was not available: from `from` on, and before `until`.
struct Absence {
  std::uint64_t from = 0;
  std::uint64_t until = 0;  ///< 0: the node still is not available.
  friend bool operator==(const Absence&, const Absence&) = default;
};

/// The past of a node, by which distributors tell a process that was silent for a while from one that has ended
/// (docs/design/0001, "A member that was silent").
struct NodePast {
  /// Largest number of absences that are kept. See add().
  static constexpr std::size_t kAbsencesMax = 4;

  /// The version since which the node's process has not ended, as far as the controller knows. All of the node's
  /// absences since this version are listed.
  std::uint64_t alive_since_version = 0;
  /// Oldest first. They do not overlap, and only the last one may be open. Older ones may be missing.
  std::vector<Absence> absences;

  /// Adds the newest absence. Forgets the oldest one if there are too many; the process counts as alive since the end
  /// of that one then.
  void add(Absence absence);
  friend bool operator==(const NodePast&, const NodePast&) = default;
};

/// One node's part of a cluster state; also a node's report about itself.
struct NodeStateInfo {
  NodeState state = NodeState::Up;
  /// Weight of the node in the placement, relative to other nodes. Storage nodes only.
  double capacity = 1.0;
  /// Progress of the start, from 0 to 1; valid only while the node is Initializing.
  double init_progress = 0.0;
  /// When the node's process started, in seconds since 1970; 0: unknown. Distinguishes a restart from a short break.
  std::uint64_t start_time = 0;
  /// Version of the cluster state in which the node last became available after it was down or restarted; 0: it always
  /// was available. Information about the node's buckets from an older version has to be fetched again.
  std::uint64_t up_since_version = 0;
  /// Absent: nothing is known of the time before `up_since_version`; states of earlier versions do not tell. Storage
  /// nodes only; not part of a report.
  std::optional<NodePast> past = {};
  /// Version of the cluster state since which the node has been available without a break, if its process has restarted
  /// since then; 0: it has not, and up_since_version says it. See available_since().
  std::uint64_t available_since_version = 0;
  /// Version of the cluster state in which the node came back without the data that it had: its folder was emptied or
  /// replaced. 0: it has its data. The node serves and is filled, but it is not known what it alone held. So it counts
  /// as absent where that matters (distributor::Context::absent_nodes()). Storage nodes only.
  std::uint64_t lost_version = 0;
  /// The fewest bits that a bucket on the node uses. Only reported; not part of a cluster state.
  unsigned min_used_bits = kDefaultDistributionBits;
  /// Why the node is in this state, as text for people.
  std::string description;

  /// Returns the version since which the node's process has not ended, as far as the state knows.
  std::uint64_t alive_since() const { return past ? past->alive_since_version : up_since_version; }

  /// Parses the text of to_string(): "s:u c:2.4 t:5 b:12 m:Foo\x20bar". Unknown keys are ignored, and so is the
  /// capacity of a distributor. Errors: InvalidArgument names the key and the value.
  static Result<NodeStateInfo> parse(std::string_view text, NodeType type = NodeType::Storage);
  /// Returns the text form: the state (s:) first, then the fields that differ from their defaults.
  std::string to_string() const;

  /// Returns the version of the cluster state since which the node has been available, whether its process has
  /// restarted meanwhile or not. 0: it always was.
  std::uint64_t available_since() const {
    return available_since_version == 0 ? up_since_version : available_since_version;
  }

  /// Returns true if a change to `other` needs no new cluster state. Descriptions, start times, used bits and the past
  /// are ignored; progress counts only if the two are on different sides of kListingProgressLimit.
  bool is_similar(const NodeStateInfo& other) const;
  /// Returns true like is_similar(), but ignores progress completely.
  bool is_similar_ignoring_progress(const NodeStateInfo& other) const;

  friend bool operator==(const NodeStateInfo&, const NodeStateInfo&) = default;
};

/// A row that keeps one replica of one bucket on another node than the placement algorithm says, so that all nodes are
/// equally full (see plan_exceptions()). It is in force while the algorithm places the bucket on `from` and not on
/// `to`, `to` may take replicas, and the move brings no two replicas into one group that would be apart without it.
/// Otherwise the algorithm is followed. A row that is not in force stays, and can come into force again.
struct PlacementException {
  std::uint64_t bucket = 0;  ///< The bucket, named by its first ClusterState::bits() bits.
  std::uint16_t from = 0;
  std::uint16_t to = 0;

  friend auto operator<=>(const PlacementException&, const PlacementException&) = default;
};

/// The part of a bucket's reads that one of its replicas serves. A row only chooses among the replicas that may be
/// read: rows about other nodes have no effect, and a replica without a row gets the fewest reads.
struct ReadShare {
  std::uint64_t bucket = 0;  ///< The bucket, named by its first ClusterState::bits() bits.
  std::uint16_t node = 0;
  std::uint16_t permille = 0;  ///< Part of the bucket's reads in thousandths, from 0 to 1000.

  friend auto operator<=>(const ReadShare&, const ReadShare&) = default;
};

/// The versioned list of node states that all nodes agree on.
///
/// Text form: `version:7 bits:8 distributor:3 storage:6 .2.s:d .4.s:r`; see README.md of this module for all keys. A
/// node whose index is not below the count of its type is down. Components share a state as std::shared_ptr<const
/// ClusterState>.
class ClusterState {
 public:
  /// Descriptions to print: none, that of the cluster, or those of the cluster and of all nodes.
  enum class Print { Normal, WithClusterDescription, WithDescriptions };

  /// Makes a state with version 0 and no nodes; the cluster is Up.
  ClusterState() = default;

  /// Parses the text form. Errors: InvalidArgument that names the wrong token.
  static Result<ClusterState> parse(std::string_view text);
  /// Returns the canonical text, without default keys and without trailing nodes that are down with default capacity.
  std::string to_string(Print print = Print::Normal) const;

  std::uint64_t version() const { return version_; }
  /// Returns the version that was in force before this one. Versions between the two were replaced while pending.
  std::uint64_t follows() const { return version_ - 1 - skipped_; }
  /// Returns the state of the cluster as a whole: Up, Down, Initializing or Stopping.
  NodeState cluster() const { return cluster_; }
  bool is_cluster_up() const { return cluster_ == NodeState::Up; }
  /// Returns a text for people. If the cluster is down, it says why and which nodes answer.
  const std::string& description() const { return description_; }
  /// Returns the distribution bits, from 1 to 58: a bucket is placed by this many of its first bits.
  unsigned bits() const { return bits_; }
  /// Returns the index of the last node of the type that the state lists, plus one.
  std::uint16_t node_count(NodeType type) const { return static_cast<std::uint16_t>(nodes(type).size()); }
  /// Returns the state of a node. The reference is valid until the state is changed or destroyed.
  const NodeStateInfo& node(NodeId id) const {
    const std::vector<NodeStateInfo>& list = nodes(id.type);
    return id.index < list.size() ? list[id.index] : down_node();
  }
  bool is_up(NodeId id) const { return node(id).state == NodeState::Up; }
  /// Returns true if the storage node has lost the data that it held earlier (NodeStateInfo::lost_version).
  bool has_lost_data(std::uint16_t storage_node) const { return node(NodeId::storage(storage_node)).lost_version != 0; }
  /// Returns the floor in microseconds since 1970: timestamps given under this state are above it, those given under
  /// earlier states are not. 0: the state names no floor. A change of the floor alone needs no new state.
  std::uint64_t time_floor_us() const { return time_floor_us_; }
  /// Returns how many replicas, current or obsolete, every existing bucket has at least; buckets have fewer only if a
  /// new bucket gets fewer (replicas_at_birth()). 0: the state names no number.
  unsigned replicas_assured() const { return replicas_assured_; }
  /// Returns the features that all serving nodes announce (feature.h), sorted. Peers may lack all other features.
  const std::vector<std::string>& features() const { return features_; }
  bool announces(std::string_view feature) const {
    return std::binary_search(features_.begin(), features_.end(), feature);
  }
  /// Ordered by bucket, then by `from`, each pair once. The span is valid until the state is changed or destroyed.
  std::span<const PlacementException> exceptions() const { return exceptions_; }
  /// Returns the exceptions of one bucket, which is named by its first bits() bits.
  std::span<const PlacementException> exceptions_of(std::uint64_t bucket) const;
  /// Ordered by bucket, then by node, each pair once. The span is valid until the state is changed or destroyed.
  std::span<const ReadShare> read_shares() const { return read_shares_; }
  /// Returns the read shares of one bucket, named by its first bits() bits. Empty: all replicas get equally many reads.
  std::span<const ReadShare> read_shares_of(std::uint64_t bucket) const;

  /// Sets the version, and follows() to version - 1.
  void set_version(std::uint64_t version) {
    version_ = version;
    skipped_ = 0;
  }
  /// Sets follows() to `before`, which is less than version().
  void set_follows(std::uint64_t before) {
    FJORD_CHECK(before < version_);
    skipped_ = version_ - 1 - before;
  }
  void set_time_floor_us(std::uint64_t floor_us) { time_floor_us_ = floor_us; }
  void set_replicas_assured(unsigned replicas) { replicas_assured_ = replicas; }
  /// Sets the features, given in any order. Drops names that is_feature_name() refuses.
  void set_features(std::vector<std::string> names);
  /// `state` is one of Up, Down, Initializing, Stopping.
  void set_cluster(NodeState state);
  void set_description(std::string description) { description_ = std::move(description); }
  /// Sets the distribution bits, from 1 to 58. A change removes all exceptions and read shares, as all buckets are
  /// placed again.
  void set_bits(unsigned bits);
  /// Sets the exceptions, in any order. Each bucket is below 2^bits(); each pair of bucket and `from` occurs once.
  void set_exceptions(std::vector<PlacementException> exceptions);
  /// Sets the read shares, in any order. Each bucket is below 2^bits(); no two have the same bucket and node.
  void set_read_shares(std::vector<ReadShare> shares);
  /// Sets one node. Nodes between the old count and its index become down. Nodes at the end that are down with default
  /// capacity are removed.
  void set_node(NodeId id, NodeStateInfo info);
  /// Changes the state of a node as set_node() does; the other fields of the node stay.
  void set_node_state(NodeId id, NodeState state);

  /// Returns true if `other` need not be published as a new version: it has the same bits, cluster state, exceptions,
  /// read shares, assured replicas and features, and similar nodes. Version and descriptions are ignored. Nodes count
  /// even while the cluster is down: reads can continue, and readers must know if another node fails.
  bool is_similar(const ClusterState& other) const;
  bool is_similar_ignoring_progress(const ClusterState& other) const;
  /// Returns the changes to `next`, for people: "version: 3 => 4, storage: [2: Up => Down]". Empty if none.
  std::string diff(const ClusterState& next) const;

  friend bool operator==(const ClusterState&, const ClusterState&) = default;

 private:
  const std::vector<NodeStateInfo>& nodes(NodeType type) const {
    return type == NodeType::Storage ? storage_ : distributors_;
  }
  std::vector<NodeStateInfo>& nodes(NodeType type) { return type == NodeType::Storage ? storage_ : distributors_; }
  static const NodeStateInfo& down_node();

  std::uint64_t version_ = 0;
  std::uint64_t skipped_ = 0;  ///< Number of versions directly before this one that were never in force.
  std::uint64_t time_floor_us_ = 0;
  unsigned replicas_assured_ = 0;
  NodeState cluster_ = NodeState::Up;
  unsigned bits_ = kDefaultDistributionBits;
  std::string description_;
  std::vector<NodeStateInfo> distributors_;
  std::vector<NodeStateInfo> storage_;
  std::vector<PlacementException> exceptions_;
  std::vector<ReadShare> read_shares_;
  std::vector<std::string> features_;
};

inline std::ostream& operator<<(std::ostream& out, const ClusterState& state) { return out << state.to_string(); }

}  // namespace fjord
