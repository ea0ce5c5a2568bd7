#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fjord/common/callback_guard.h"
#include "fjord/common/runtime.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/messages.h"
#include "fjord/rpc/search_messages.h"
#include "fjord/rpc/transport.h"
#include "fjord/search/auction.h"
#include "fjord/search/search_broker.h"
#include "fjord/search/slice_set.h"
#include "query_recorder.h"
#include "replica_choice.h"
#include "synonym_list.h"

namespace fjord::search {

/// What a broker has learned beyond the cluster state. It saves calls, but no answer would be wrong without it.
struct BrokerMemory {
  std::uint64_t state_version = 0;
  /// By slice: the node on which it is searched, if it is being moved and so is not where the cluster state says.
  std::map<std::size_t, std::uint16_t> homes;
  /// Slices without a bucket, and when their distributor said so. A broker believes this for less time than a write may
  /// stay invisible.
  std::map<std::size_t, MonotonicTime> absent;
  /// Nodes that did not answer, and the time until which others are asked first.
  std::map<std::uint16_t, MonotonicTime> avoided;

  /// Forgets what belongs to a cluster state other than `version`.
  void follow(std::uint64_t version);
};

struct BrokerContext {
  const SearchBrokerOptions& options;
  Clock& clock;
  Executor& executor;
  rpc::Transport& transport;
  const rpc::SnapshotHolder& snapshots;
  const std::function<Status()>& state_in_force;
  Tunable& reserve_micros;
  Tunable& timeout_ms;
  BrokerMemory& memory;
  ReplicaChoice& replicas;
  SynonymList& synonyms;
  QueryRecorder& recorder;
};

/// One search of a broker. Confined to the broker's executor. It lives until all of its calls have ended.
class BrokerSearch : public std::enable_shared_from_this<BrokerSearch> {
 public:
  BrokerSearch(BrokerContext& context, rpc::Search request, std::function<void(rpc::SearchReply)> done);

  void start();
  bool is_over() const { return is_over_; }

 private:
  /// Parses the query and takes the cluster state. Errors: those of the query, its context, or the cluster state.
  Status prepare();
  /// Takes the newest cluster state. Searched slices stay searched unless the state has other slices.
  Status take_state();
  void ask_later();
  /// Asks for all slices that are neither searched nor under way.
  void ask();
  /// Returns the node to ask for a slice; nothing if no node is left.
  std::optional<std::uint16_t> choose(std::size_t slice);
  bool may_ask(std::uint16_t node, std::size_t slice) const;
  bool is_known_absent(std::size_t slice) const;
  void ask_node(std::uint16_t node, const SliceSet& slices);
  void on_answer(std::uint16_t node, const SliceSet& slices, MonotonicTime asked_at,
                 Result<rpc::SearchSlicesReply> answer);
  /// Counts the slices that the node has searched, and takes the hits and the reason for the other slices.
  void take_slices(std::uint16_t node, const SliceSet& slices, rpc::SearchSlicesReply& answer, rpc::SearchNode& report);
  void ask_distributor(std::uint16_t distributor, const std::vector<std::size_t>& slices);
  void on_homes(const std::vector<std::size_t>& slices, MonotonicTime asked_at,
                const Result<rpc::GetBucketNodesReply>& answer);
  void add_report(rpc::SearchNode report);
  void note_searched(std::size_t slice);
  void note_missing(const Status& why);
  void finish(std::optional<Status> error);

  BrokerContext& context_;
  std::int64_t reserve_micros_;
  rpc::Search request_;
  std::function<void(rpc::SearchReply)> done_;
  MonotonicTime began_;
  MonotonicTime deadline_;
  std::vector<QueryVariant> variants_;
  ReplicaChoice::Query votes_;
  std::shared_ptr<const rpc::ClusterSnapshot> state_;
  SliceSet searched_ = SliceSet(0);
  SliceSet under_way_ = SliceSet(0);
  std::map<std::size_t, std::set<std::uint16_t>> tried_;
  std::map<std::uint16_t, unsigned> classes_;   // Class of each node that may have been asked.
  std::map<std::string, std::uint32_t> pages_;  // By word: the most pages that any node has.
  std::vector<Hit> hits_;
  std::vector<rpc::SearchNode> nodes_;
  std::uint64_t candidates_ = 0;
  Status missing_;
  std::uint64_t generation_ = 0;  // Raised when a cluster state has other slices.
  bool is_waiting_ = false;
  bool is_over_ = false;
};

}  // namespace fjord::search
