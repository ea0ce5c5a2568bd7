// Calls METIS. No other source does.

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <metis.h>
#include <numeric>

#include "fjord/affinity/clustering.h"
#include "fjord/common/check.h"

namespace fjord::affinity {
namespace {

// Largest sum that a graph may have: METIS counts each edge from both ends in 32 bits.
constexpr std::uint64_t kSumMax = std::numeric_limits<std::int32_t>::max() / 4;

/// Words and distinct queries with the edges between them, as METIS wants them: words are vertices 0, 1, ..., queries
/// follow.
struct Graph {
  std::vector<WordId> words;
  std::vector<idx_t> starts;
  std::vector<idx_t> neighbours;
  std::vector<idx_t> costs;
  // Pages of each vertex. With a load tolerance, each vertex has two numbers: its pages, then its accessed pages.
  std::vector<idx_t> masses;
  idx_t constraints = 1;

  std::size_t vertices() const { return starts.size() - 1; }
};

/// Returns the distinct queries and how often each occurs. Words below kOccurrencesMin are left out of the queries.
std::map<std::vector<WordId>, std::uint64_t> distinct_queries(const QueryLog& log,
                                                              const std::vector<std::uint32_t>& occurrences) {
  std::map<std::vector<WordId>, std::uint64_t> distinct;
  std::vector<WordId> words;
  for (std::size_t query = 0; query < log.size(); ++query) {
    words.clear();
    for (const WordId word : log.words(query)) {
      if (occurrences[word] >= kOccurrencesMin) words.push_back(word);
    }
    // A query with one word can follow this word, so it never cuts an edge.
    if (words.size() >= 2) ++distinct[words];
  }
  return distinct;
}

/// Scales numbers down so that their sum is at most kSumMax. Only 0 becomes 0.
std::vector<idx_t> fit(const std::vector<std::uint64_t>& numbers) {
  const std::uint64_t sum = std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
  const std::uint64_t divisor = sum / kSumMax + 1;
  std::vector<idx_t> result;
  result.reserve(numbers.size());
  for (const std::uint64_t number : numbers) {
    result.push_back(static_cast<idx_t>(number == 0 ? 0 : std::max<std::uint64_t>(1, number / divisor)));
  }
  return result;
}

std::vector<idx_t> interleave(const std::vector<idx_t>& a, const std::vector<idx_t>& b) {
  std::vector<idx_t> result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    result.push_back(a[i]);
    result.push_back(b[i]);
  }
  return result;
}

Graph make_graph(const QueryLog& log, const ListPages& pages, bool with_load) {
  const std::vector<std::uint32_t> occurrences = count_occurrences(log, pages.size());
  Graph graph;
  std::vector<idx_t> vertex_of(pages.size(), -1);
  std::vector<std::uint64_t> masses;
  std::vector<std::uint64_t> loads;
  for (WordId word = 0; word < pages.size(); ++word) {
    if (occurrences[word] < kOccurrencesMin) continue;
    vertex_of[word] = static_cast<idx_t>(graph.words.size());
    graph.words.push_back(word);
    masses.push_back(pages[word]);
    loads.push_back(std::uint64_t{pages[word]} * occurrences[word]);
  }
  const auto queries = distinct_queries(log, occurrences);
  masses.resize(masses.size() + queries.size(), 0);
  loads.resize(masses.size(), 0);
  std::vector<std::vector<std::pair<idx_t, std::uint64_t>>> edges(masses.size());
  auto query_vertex = static_cast<idx_t>(graph.words.size());
  for (const auto& [words, times] : queries) {
    for (const WordId word : words) {
      const std::uint64_t cost = times * pages[word];
      edges[static_cast<std::size_t>(query_vertex)].emplace_back(vertex_of[word], cost);
      edges[static_cast<std::size_t>(vertex_of[word])].emplace_back(query_vertex, cost);
    }
    ++query_vertex;
  }
  std::vector<std::uint64_t> costs;
  graph.starts.push_back(0);
  for (const auto& list : edges) {
    for (const auto& [neighbour, cost] : list) {
      graph.neighbours.push_back(neighbour);
      costs.push_back(cost);
    }
    graph.starts.push_back(static_cast<idx_t>(graph.neighbours.size()));
  }
  graph.costs = fit(costs);
  graph.masses = fit(masses);
  if (with_load) {
    graph.constraints = 2;
    graph.masses = interleave(graph.masses, fit(loads));
  }
  return graph;
}

/// Returns the part of each vertex, computed by METIS; empty if METIS fails.
std::vector<idx_t> run_metis(Graph& graph, const PartitionOptions& options, std::array<real_t, 2> limits) {
  idx_t metis_options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(metis_options);
  metis_options[METIS_OPTION_OBJTYPE] = METIS_OBJTYPE_CUT;
  metis_options[METIS_OPTION_NCUTS] = options.cuts;
  metis_options[METIS_OPTION_SEED] = static_cast<idx_t>(options.seed & 0x7fffffff);
  auto vertices = static_cast<idx_t>(graph.vertices());
  auto parts = static_cast<idx_t>(options.replicas);
  idx_t cut = 0;
  std::vector<idx_t> part(graph.vertices());
  const int result = METIS_PartGraphKway(&vertices, &graph.constraints, graph.starts.data(), graph.neighbours.data(),
                                         graph.masses.data(), nullptr, graph.costs.data(), &parts, nullptr,
                                         limits.data(), metis_options, &cut, part.data());
  if (result != METIS_OK) part.clear();
  return part;
}

/// Moves words out of parts that exceed a limit, because METIS does not always keep limits, above all two at once. The
/// words with the least additional cut for their mass move first.
class Repair {
 public:
  Repair(const Graph& graph, std::vector<idx_t>& part, const PartitionOptions& options, std::array<real_t, 2> limits)
      : graph_(graph), part_(part), parts_(options.replicas) {
    for (std::size_t c = 0; c < constraints(); ++c) {
      sums_[c].resize(parts_);
      for (std::size_t word = 0; word < graph.words.size(); ++word) sums_[c][at(word)] += mass(word, c);
      const std::int64_t all = std::accumulate(sums_[c].begin(), sums_[c].end(), std::int64_t{0});
      most_[c] = static_cast<std::int64_t>(static_cast<double>(limits[c]) * static_cast<double>(all) /
                                           static_cast<double>(parts_));
    }
  }

  void run() {
    for (int pass = 0; pass < kPasses; ++pass) {
      bool is_over = false;
      for (std::size_t c = constraints(); c-- > 0;) {
        for (std::size_t part = 0; part < parts_; ++part) {
          if (sums_[c][part] <= most_[c]) continue;
          is_over = true;
          relieve(c, part);
        }
      }
      if (!is_over) return;
    }
  }

 private:
  static constexpr int kPasses = 20;
  struct Candidate {
    double loss = 0.0;  // Additional cost of cut edges for each unit of the moved word's mass.
    std::size_t word = 0;
    std::size_t to = 0;
  };

  std::size_t constraints() const { return static_cast<std::size_t>(graph_.constraints); }
  std::int64_t mass(std::size_t word, std::size_t c) const { return graph_.masses[word * constraints() + c]; }
  std::size_t at(std::size_t word) const { return static_cast<std::size_t>(part_[word]); }

  /// Returns whether the part stays within its limits when it gets the word. Constraint 0 (pages) comes first: it is
  /// repaired without regard to constraint 1 (load).
  bool has_room(std::size_t part, std::size_t word, std::size_t constraint) const {
    for (std::size_t c = 0; c <= constraint; ++c) {
      if (sums_[c][part] + mass(word, c) > most_[c]) return false;
    }
    return true;
  }

  void relieve(std::size_t c, std::size_t part) {
    std::vector<Candidate> candidates;
    std::vector<std::int64_t> kept(parts_);  // By part: cost of the word's edges to vertices of the part.
    for (std::size_t word = 0; word < graph_.words.size(); ++word) {
      if (at(word) != part || mass(word, c) == 0) continue;
      std::fill(kept.begin(), kept.end(), 0);
      for (auto edge = static_cast<std::size_t>(graph_.starts[word]);
           edge < static_cast<std::size_t>(graph_.starts[word + 1]); ++edge) {
        kept[at(static_cast<std::size_t>(graph_.neighbours[edge]))] += graph_.costs[edge];
      }
      for (std::size_t to = 0; to < parts_; ++to) {
        const auto loss = static_cast<double>(kept[part] - kept[to]);
        if (to != part) candidates.push_back({loss / static_cast<double>(mass(word, c)), word, to});
      }
    }
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.loss < b.loss; });
    for (const Candidate& candidate : candidates) {
      if (sums_[c][part] <= most_[c]) return;
      if (at(candidate.word) == part && has_room(candidate.to, candidate.word, c)) move(candidate.word, candidate.to);
    }
  }

  void move(std::size_t word, std::size_t to) {
    for (std::size_t c = 0; c < constraints(); ++c) {
      sums_[c][at(word)] -= mass(word, c);
      sums_[c][to] += mass(word, c);
    }
    part_[word] = static_cast<idx_t>(to);
  }

  const Graph& graph_;
  std::vector<idx_t>& part_;
  std::size_t parts_;
  std::array<std::vector<std::int64_t>, 2> sums_;  // Mass of each part, by constraint and part.
  std::array<std::int64_t, 2> most_{};
};

}  // namespace

Result<Clustering> partition(const QueryLog& log, const ListPages& pages, const PartitionOptions& options) {
  FJORD_CHECK(options.replicas > 0 && options.replicas <= kReplicasMax);
  Graph graph = make_graph(log, pages, options.load_tolerance > 0.0);
  if (graph.words.size() < options.replicas) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("the log has {} words that occur {} times or more; {} replicas need as many",
                              graph.words.size(), kOccurrencesMin, options.replicas));
  }
  Clustering clustering(pages.size(), kNoReplica);
  std::vector<idx_t> part(graph.vertices(), 0);
  if (options.replicas > 1) {
    const std::array<real_t, 2> limits{static_cast<real_t>(1.0 + options.tolerance),
                                       static_cast<real_t>(1.0 + options.load_tolerance)};
    part = run_metis(graph, options, limits);
    if (part.empty()) return Status(StatusCode::InvalidArgument, "METIS could not part the graph of the query log");
    Repair(graph, part, options, limits).run();
  }
  for (std::size_t i = 0; i < graph.words.size(); ++i) clustering[graph.words[i]] = static_cast<std::uint8_t>(part[i]);
  const double imbalance = mass_imbalance(clustering, pages, options.replicas);
  // The addition allows for rounding by fit().
  if (imbalance > 1.0 + options.tolerance + 1e-3) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("the fullest replica would have {:.3f} times the mean pages; {:.3f} are allowed",
                              imbalance, 1.0 + options.tolerance));
  }
  return clustering;
}

}  // namespace fjord::affinity
