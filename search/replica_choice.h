#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache_report.h"
#include "fjord/affinity/stored_table.h"
#include "fjord/affinity/vote.h"
#include "fjord/common/clock.h"
#include "fjord/common/metrics.h"
#include "fjord/common/tunable.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/search_messages.h"
#include "fjord/search/query.h"
#include "fjord/search/voting_tables.h"
#include "fjord/visitors/mailbox.h"

namespace fjord::search {

/// Sorts the replicas of all buckets into classes, so that those of one class search about the same words: the votes of
/// a table are against classes. With as many groups below the root as there are replicas, a class is a group; if all
/// nodes hold all buckets, it is a node; else it is the place in the list of ideal nodes.
class ReplicaClasses {
 public:
  explicit ReplicaClasses(const DistributionConfig& distribution);
  unsigned count() const { return count_; }
  /// Returns the class of a node that is the `rank`-th of the ideal nodes of a bucket; below count().
  unsigned of(std::uint16_t node, std::size_t rank) const;

 private:
  unsigned count_ = 1;
  std::map<std::uint16_t, unsigned> by_node_;  // Empty: the class is the rank.
};

/// Decides which of the replicas that may be searched is asked, so that each cache holds other lists than the caches of
/// the other replicas (affinity/). It never decides which replicas may be asked, so no table and no load changes an
/// answer (I24).
///
/// Threading: confined to the broker's executor.
class ReplicaChoice {
 public:
  struct Member {
    std::uint16_t node = 0;
    unsigned replica_class = 0;
  };
  struct Table;
  /// What the choice for one query depends on, as it was when the search began.
  struct Query {
    struct Word {
      affinity::WordId in_caches = 0;  ///< The word's number in reports of caches.
      std::span<const float> weights;  ///< Votes by class; empty: the table does not know the word.
      double pages = 1.0;
      std::uint64_t hash = 0;
    };
    std::uint64_t fingerprint = 0;
    std::shared_ptr<const ReplicaClasses> classes;
    std::shared_ptr<const Table> table;  ///< Keeps the weights alive; null: no table is in use.
    std::vector<Word> words;
    std::string how;  ///< How the replicas are chosen, as text for people.
    /// Votes that were computed, by node and class: the pages that the node is expected to read.
    std::map<std::pair<std::uint16_t, unsigned>, double> votes;
  };

  /// `tables` may be null: then no table is found. Lifetime: the mailbox is closed before this ends.
  ReplicaChoice(Clock& clock, TunableRegistry& tunables, MetricRegistry& metrics, visitors::Mailbox mailbox,
                std::unique_ptr<VotingTableSource> tables);
  ~ReplicaChoice();

  /// Prepares the choice for a query. Errors: why the table that search.affinity_table names can never be used, for
  /// example NotFound.
  Result<Query> begin(std::span<const QueryVariant> variants, std::uint64_t fingerprint,
                      const rpc::ClusterSnapshot& state);
  /// Returns the members of a slice with their classes; `nodes` are its ideal nodes.
  static std::vector<Member> members_of(const Query& query, const NodeList& nodes);
  /// Chooses one of the members, of which there is one at least. `shares`: the read shares of the slice; empty: none.
  std::uint16_t choose(Query& query, std::span<const Member> members, std::span<const ReadShare> shares) const;
  /// True if the node has been much slower than the others lately.
  bool is_slow(std::uint16_t node, MonotonicTime now) const;

  /// Writes into the question to a node what the broker knows of its caches.
  void prepare(std::uint16_t node, rpc::SearchSlices& question) const;
  /// Updates the shares and shadow caches by an answer, and adds it to the report of the search.
  void on_answer(Query& query, const Member& member, const rpc::SearchSlicesReply& answer, Duration took,
                 rpc::SearchNode& report);

 private:
  struct NodeTime {
    double mean_us = 0.0;
    MonotonicTime last;
  };

  /// Reads the table that search.affinity_table names, if another table is in use. Errors: see begin().
  Status follow_table();
  void read_part(std::uint64_t number, std::string bytes, std::uint32_t part);
  void on_part(std::uint64_t number, std::string bytes, std::uint32_t part, Result<TablePart> got);
  Status open_table(std::uint64_t number, std::string_view bytes);
  void follow_state(const rpc::ClusterSnapshot& state);
  std::string how_text(unsigned classes) const;
  /// Returns the number of pages that the member is expected to read for the words of the query.
  double vote_against(Query& query, const Member& member) const;
  double count_votes(const Query& query, const Member& member) const;
  double share_of(std::uint16_t node) const;

  Clock& clock_;
  Tunable& wanted_table_;
  Tunable& with_shadow_;
  Tunable& with_multipliers_;
  Gauge& table_in_force_;
  visitors::Mailbox mailbox_;
  std::unique_ptr<VotingTableSource> source_;
  std::shared_ptr<const Table> table_;
  std::uint64_t reading_ = 0;  ///< Number of the table that is being read; 0: none.
  Status problem_;             ///< Why the table that the setting names is not in use.
  std::uint64_t problem_of_ = 0;
  MonotonicTime next_try_;
  std::string corpus_;
  std::uint64_t schema_version_ = 0;
  std::uint64_t state_version_ = 0;
  std::shared_ptr<const ReplicaClasses> classes_;
  affinity::NodeShares shares_;
  std::map<std::uint16_t, CacheShadow> shadows_;
  std::map<std::uint16_t, NodeTime> times_;
};

}  // namespace fjord::search
