#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fjord/affinity/cache_changes.h"
#include "fjord/affinity/cache_model.h"
#include "fjord/affinity/query_log.h"
#include "fjord/affinity/shadow_caches.h"
#include "fjord/affinity/vote.h"
#include "fjord/affinity/voting_table.h"

namespace fjord::affinity {

/// What a replica says with the answer to a query.
struct Answer {
  unsigned replica = 0;
  std::uint64_t accessed_pages = 0;
  const CacheChanges* changes = nullptr;  ///< What entered and left its cache lately, this query included.
};

/// Chooses the replica of each query.
class ReplicaChooser {
 public:
  virtual ~ReplicaChooser() = default;
  virtual unsigned choose(std::span<const WordId> words, std::uint64_t fingerprint) = 0;
  virtual void on_answer(const Answer&) {}
};

/// By fingerprint of the query: equal parts, whatever the words [CALB 2019, 5].
class FingerprintChooser final : public ReplicaChooser {
 public:
  explicit FingerprintChooser(unsigned replicas) : votes_(replicas, 0.0), shares_(replicas, 1.0) {}
  unsigned choose(std::span<const WordId> words, std::uint64_t fingerprint) override;

 private:
  std::vector<double> votes_;
  std::vector<double> shares_;
};

/// Utilisation that a replica reports: pages of the lists that its last queries used, over what it could do.
class UtilisationModel {
 public:
  explicit UtilisationModel(unsigned replicas) : pages_(replicas, 0.0) {}
  /// Returns the utilisation of the replica after it answered a query of so many pages. On average over the replicas it
  /// is a half.
  double on_answer(unsigned replica, std::uint64_t pages);

 private:
  std::vector<double> pages_;  // Each answer of any replica takes a small part off.
};

/// By the votes of a table.
class VotingChooser final : public ReplicaChooser {
 public:
  /// Lifetime: table and pages outlive it.
  VotingChooser(const VotingTable& table, const ListPages& pages, bool with_multipliers = false);
  unsigned choose(std::span<const WordId> words, std::uint64_t fingerprint) override;
  void on_answer(const Answer& answer) override;

 private:
  const VotingTable& table_;
  const ListPages& pages_;
  bool with_multipliers_;
  Multipliers multipliers_;
  UtilisationModel utilisation_;
  std::vector<double> votes_;
};

/// By what each of several brokers believes to be in the caches. Queries go to the brokers in turns; a broker hears of
/// changes only with the answers that it gets itself.
class ShadowChooser final : public ReplicaChooser {
 public:
  struct Options {
    bool with_multipliers = false;
    unsigned brokers = 1;
  };

  /// Lifetime: table, pages and hashes outlive it.
  ShadowChooser(const VotingTable& table, const ListPages& pages, const std::vector<std::uint64_t>& hashes,
                Options options);
  unsigned choose(std::span<const WordId> words, std::uint64_t fingerprint) override;
  void on_answer(const Answer& answer) override;

 private:
  struct Broker {
    ShadowCaches shadow;
    Multipliers multipliers;
    std::vector<std::uint64_t> heard;  // By replica: changes that the broker has heard of.
  };

  Options options_;
  std::vector<Broker> brokers_;
  std::size_t turn_ = 0;
  UtilisationModel utilisation_;
  std::vector<double> votes_;
};

struct SimulationOptions {
  unsigned replicas = 5;
  std::uint64_t cache_pages = 0;  ///< Size of the cache of each replica.
  Eviction eviction = Eviction::LeastFrequentlyUsed;
};

struct ReplicaFigures {
  std::uint64_t queries = 0;
  std::uint64_t accessed_pages = 0;
  std::uint64_t missed_pages = 0;
};

struct SimulationResult {
  std::vector<ReplicaFigures> replicas;

  /// Missed pages over accessed pages, of all replicas.
  double miss_rate() const;
  /// Accessed pages of the busiest replica over the mean.
  double load_imbalance() const;
};

/// How often the list of each word was in each cache when a query came that has the word, wherever the query went.
struct HitCounts {
  std::vector<std::uint32_t> occurrences;  ///< By WordId.
  std::vector<std::uint32_t> hits;         ///< By WordId times replicas, then by replica.
};

/// Sends the log through the replicas twice, with caches that are empty at first: once to warm them up, once to count
/// [CALB 2019, algorithm 1]. With `counts`, looks into all caches in the second pass.
SimulationResult simulate(const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                          ReplicaChooser& chooser, HitCounts* counts = nullptr);

/// The smallest cache of one replica, to a thousandth, that misses at most `miss_rate` of the pages of the log.
std::uint64_t cache_pages_for(const QueryLog& log, const ListPages& pages, double miss_rate, Eviction eviction);

}  // namespace fjord::affinity
