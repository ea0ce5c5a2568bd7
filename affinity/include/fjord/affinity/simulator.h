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

/// What a replica reports with the answer to a query.
struct Answer {
  unsigned replica = 0;
  std::uint64_t accessed_pages = 0;
  const CacheChanges* changes = nullptr;  ///< Latest changes of the replica's cache, including those by this query.
};

/// Chooses the replica of each query.
class ReplicaChooser {
 public:
  virtual ~ReplicaChooser() = default;
  virtual unsigned choose(std::span<const WordId> words, std::uint64_t fingerprint) = 0;
  virtual void on_answer(const Answer&) {}
};

/// Chooses by the fingerprint of the query: each replica gets an equal part, whatever the words [CALB 2019, 5].
class FingerprintChooser final : public ReplicaChooser {
 public:
  explicit FingerprintChooser(unsigned replicas) : votes_(replicas, 0.0), shares_(replicas, 1.0) {}
  unsigned choose(std::span<const WordId> words, std::uint64_t fingerprint) override;

 private:
  std::vector<double> votes_;
  std::vector<double> shares_;
};

/// Models the utilisation that a replica reports: the pages of the lists that recent queries used, over its capacity.
class UtilisationModel {
 public:
  explicit UtilisationModel(unsigned replicas) : pages_(replicas, 0.0) {}
  /// Returns the utilisation of the replica after it answered a query of `pages` pages: 0 idle, 1 saturated. The mean
  /// over the replicas is about 0.5.
  double on_answer(unsigned replica, std::uint64_t pages);

 private:
  std::vector<double> pages_;  // Pages used on each replica, as an exponentially weighted sum over answers.
};

/// Chooses by the votes of a table.
class VotingChooser final : public ReplicaChooser {
 public:
  /// Lifetime: table and pages outlive the chooser.
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

/// Chooses by what each of several brokers believes to be in the caches. Queries go to the brokers in turns. A broker
/// receives changes of caches only with the answers to its own queries.
class ShadowChooser final : public ReplicaChooser {
 public:
  struct Options {
    bool with_multipliers = false;
    unsigned brokers = 1;
  };

  /// Lifetime: table, pages and hashes outlive the chooser.
  ShadowChooser(const VotingTable& table, const ListPages& pages, const std::vector<std::uint64_t>& hashes,
                Options options);
  unsigned choose(std::span<const WordId> words, std::uint64_t fingerprint) override;
  void on_answer(const Answer& answer) override;

 private:
  struct Broker {
    ShadowCaches shadow;
    Multipliers multipliers;
    std::vector<std::uint64_t> heard;  // By replica: number of the first change that the broker has not received.
  };

  Options options_;
  std::vector<Broker> brokers_;
  std::size_t turn_ = 0;
  UtilisationModel utilisation_;
  std::vector<double> votes_;
};

struct SimulationOptions {
  unsigned replicas = 5;
  std::uint64_t cache_pages = 0;  ///< Size of each replica's cache, in index pages.
  Eviction eviction = Eviction::LeastFrequentlyUsed;
};

struct ReplicaFigures {
  std::uint64_t queries = 0;
  std::uint64_t accessed_pages = 0;
  std::uint64_t missed_pages = 0;
};

struct SimulationResult {
  std::vector<ReplicaFigures> replicas;

  /// Returns missed pages over accessed pages, of all replicas.
  double miss_rate() const;
  /// Returns the accessed pages of the busiest replica over the mean of all replicas.
  double load_imbalance() const;
};

/// How often each cache held the list of each word when a query with the word came, wherever the query was sent.
struct HitCounts {
  std::vector<std::uint32_t> occurrences;  ///< By WordId: number of queries with the word.
  std::vector<std::uint32_t> hits;         ///< Row by row: the replicas of WordId 0, then those of WordId 1, and so on.
};

/// Sends the log through the replicas twice; the caches are empty at first. The first pass warms them up, the second
/// one counts [CALB 2019, algorithm 1]. With `counts`, also notes for all caches in the second pass which lists they
/// held.
SimulationResult simulate(const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                          ReplicaChooser& chooser, HitCounts* counts = nullptr);

/// Returns the smallest cache size in pages with which one replica misses at most `miss_rate` of the pages that the log
/// accesses, to within a thousandth.
std::uint64_t cache_pages_for(const QueryLog& log, const ListPages& pages, double miss_rate, Eviction eviction);

}  // namespace fjord::affinity
