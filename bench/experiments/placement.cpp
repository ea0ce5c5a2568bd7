// Compares placement algorithms: [Tell 2016, figures 7 and 8], [VDS 2007, table 2.2], and the times of single mappings
// and of changes.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <memory>

#include "fjord/bench/placement_comparison.h"
#include "fjord/cluster/cluster_view.h"
#include "fjord/cluster/placement_plan.h"
#include "fjord/cluster/placement_statistics.h"
#include "fjord/common/clock.h"

namespace fjord {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

template <typename T>
T must(Result<T> result) {
  FJORD_CHECK(result.has_value());
  return std::move(*result);
}

class Experiment {
 public:
  Experiment(std::string folder, unsigned bits_fewer) : folder_(std::move(folder)), bits_fewer_(bits_fewer) {}

  bool run() { return key_distribution() && bucket_types() && tokens() && times() && settle() && exceptions(); }

 private:
  static constexpr unsigned kKeyNodes = 10;

  File open(const char* name, const char* columns) {
    File file(std::fopen((folder_ + "/" + name + ".csv").c_str(), "w"));
    if (file == nullptr) {
      fmt::print(stderr, "fjord-experiment-placement: cannot write into {}\n", folder_);
    } else {
      fmt::print(file.get(), "{}\n", columns);
    }
    return file;
  }

  /// Repeats [Tell 2016, 7.1]: a million consecutive keys on ten nodes.
  bool key_distribution() {
    const File file = open("keys", "tokens,scheme,node,keys");
    if (file == nullptr) return false;
    const std::uint64_t keys = 1'000'000 >> bits_fewer_;
    for (const unsigned tokens : {1u, 50u, 200u}) {
      write_keys(file.get(), tokens, "modulo", by_algorithm("modulo", keys));
      write_keys(file.get(), tokens, "std::hash of the number",
                 by_ring(tokens, keys, [](std::uint64_t key) { return std::hash<std::uint64_t>()(key); }));
      write_keys(file.get(), tokens, "std::hash of the text", by_ring(tokens, keys, [](std::uint64_t key) {
                   return std::hash<std::string>()(std::to_string(key));
                 }));
      write_keys(file.get(), tokens, "murmur3", by_algorithm(fmt::format("consistent*{}", tokens), keys));
    }
    return true;
  }

  static void write_keys(std::FILE* file, unsigned tokens, std::string_view scheme,
                         const std::vector<std::uint64_t>& counts) {
    for (std::size_t node = 0; node < counts.size(); ++node) {
      fmt::print(file, "{},{},{},{}\n", tokens, scheme, node, counts[node]);
    }
  }

  static std::vector<std::uint64_t> by_algorithm(const std::string& algorithm, std::uint64_t keys) {
    const auto config = std::make_shared<const DistributionConfig>(must(
        DistributionConfig::parse(fmt::format("redundancy:1 algorithm:{} (root 0-{})", algorithm, kKeyNodes - 1))));
    const auto map = placement_algorithm().prepare(
        std::make_shared<const ClusterState>(must(ClusterState::parse("bits:20 storage:10"))), config);
    std::vector<std::uint64_t> counts(kKeyNodes);
    for (std::uint64_t key = 0; key < keys; ++key) ++counts[map->ideal_nodes(BucketId(20, key)).front()];
    return counts;
  }

  /// Counts keys by node on a ring as that of the product, but with another hash for keys. The tokens are hashes of
  /// texts, because std::hash of a small number is the number itself.
  static std::vector<std::uint64_t> by_ring(unsigned tokens, std::uint64_t keys,
                                            const std::function<std::uint64_t(std::uint64_t)>& hash) {
    std::map<std::uint64_t, unsigned> ring;
    for (unsigned node = 0; node < kKeyNodes; ++node) {
      for (unsigned token = 0; token < tokens; ++token) {
        ring[std::hash<std::string>()(fmt::format("node {} token {}", node, token))] = node;
      }
    }
    std::vector<std::uint64_t> counts(kKeyNodes);
    for (std::uint64_t key = 0; key < keys; ++key) {
      const auto next = ring.lower_bound(hash(key));
      ++counts[next == ring.end() ? ring.begin()->second : next->second];
    }
    return counts;
  }

  /// Repeats [VDS 2007, table 2.2], and adds the algorithms that are not in it.
  bool bucket_types() {
    const File file = open("algorithms",
                           "algorithm,nodes,change,max_over_mean,stddev,max_over_mean_after,moved_share,least_share,"
                           "moved_over_least,map_ns,prepare_us");
    if (file == nullptr) return false;
    for (const unsigned nodes : {10u, 30u, 100u, 300u, 1000u}) {
      for (const PlacementKind kind : kPlacementKinds) {
        for (const ClusterChange change : {ClusterChange::Add, ClusterChange::Remove, ClusterChange::Reweight}) {
          PlacementSettings settings;
          settings.levels = {kind};
          const ComparisonResult result =
              must(compare_placement(settings, {nodes, 1, std::uint64_t{1} << (16 - bits_fewer_), 3, change}, clock_));
          fmt::print(file.get(), "{},{},{},{:.4f},{:.4f},{:.4f},{:.6f},{:.6f},{:.3f},{:.1f},{:.0f}\n", to_string(kind),
                     nodes, to_string(change), result.max_over_mean, result.stddev, result.max_over_mean_after,
                     result.moved_share, result.least_share, result.moved_over_least(), result.map_ns,
                     result.prepare_us);
        }
      }
      fmt::print(stderr, "{} nodes compared\n", nodes);
    }
    return true;
  }

  bool tokens() {
    const File file = open("tokens", "tokens,nodes,max_over_mean,stddev,map_ns,prepare_us");
    if (file == nullptr) return false;
    for (const unsigned count : {1u, 10u, 50u, 200u, 1000u, 5000u}) {
      PlacementSettings settings;
      settings.levels = {PlacementKind::Consistent};
      settings.tokens_per_node = count;
      const ComparisonResult result =
          must(compare_placement(settings, {10, 1, std::uint64_t{1} << 16, 1, ClusterChange::Add}, clock_));
      fmt::print(file.get(), "{},10,{:.4f},{:.4f},{:.1f},{:.0f}\n", count, result.max_over_mean, result.stddev,
                 result.map_ns, result.prepare_us);
    }
    return true;
  }

  static DistributionConfig three_levels(unsigned racks, unsigned hosts, unsigned nodes, std::string_view algorithm) {
    std::string text = fmt::format("redundancy:3 algorithm:{} (root", algorithm);
    for (unsigned rack = 0; rack < racks; ++rack) {
      text += fmt::format(" (rack{}", rack);
      for (unsigned host = 0; host < hosts; ++host) {
        const unsigned first = (rack * hosts + host) * nodes;
        text += fmt::format(" (host{}_{} {}-{})", rack, host, first, first + nodes - 1);
      }
      text += ")";
    }
    return must(DistributionConfig::parse(text + ")"));
  }

  /// Measures one mapping, one answer of the cache, and the mapping of all buckets after a change, with 100 nodes in
  /// three levels and a million buckets.
  bool times() {
    const File file = open("times", "algorithm,what,value,unit");
    if (file == nullptr) return false;
    const unsigned bits = 20 - bits_fewer_;
    const std::uint64_t buckets = std::uint64_t{1} << bits;
    for (const PlacementKind kind : kPlacementKinds) {
      ClusterView view = ClusterView::make(must(ClusterState::parse(fmt::format("bits:{} storage:100", bits))),
                                           three_levels(5, 4, 5, to_string(kind)));
      std::uint64_t sum = 0;
      const MonotonicTime begin = clock_.now();
      const auto map = placement_algorithm().prepare(view.state, view.distribution);
      const auto by_map = [&](BucketId bucket) { sum += map->ideal_nodes(bucket).front(); };
      const double mapping_ns = fastest_ns(bits, by_map);
      const double all = seconds(clock_.now() - begin);
      fmt::print(file.get(), "{0},one mapping,{1:.0f},ns\n{0},{2} buckets,{3:.3f},s\n", to_string(kind), mapping_ns,
                 buckets, all);
      if (kind == PlacementKind::Straw2) {  // The cache answers equally fast for all algorithms.
        PlacementCache cache(view);
        const auto by_cache = [&](BucketId bucket) { sum += cache.ideal_nodes(bucket).front(); };
        fastest_ns(bits, by_cache);
        fmt::print(file.get(), "{},from the cache,{:.1f},ns\n", to_string(kind), fastest_ns(bits, by_cache));
      }
      FJORD_CHECK(sum > 0);
    }
    return true;
  }

  /// Calls ask(bucket) for all buckets, in 16 parts, and returns the fastest part's mean time per call in ns.
  template <typename Ask>
  double fastest_ns(unsigned bits, Ask ask) const {
    const std::uint64_t part = (std::uint64_t{1} << bits) / 16;
    double fastest = 1e18;
    for (std::uint64_t first = 0; first < 16 * part; first += part) {
      const MonotonicTime begin = clock_.now();
      for (std::uint64_t bucket = first; bucket < first + part; ++bucket) ask(BucketId(bits, bucket));
      fastest = std::min(fastest, seconds(clock_.now() - begin) * 1e9 / static_cast<double>(part));
    }
    return fastest;
  }

  /// Measures what moves when a cluster of 1,000 nodes and a million buckets loses a rack.
  bool settle() {
    const File file = open("settle", "algorithm,buckets,placed_s,moved,least,short,max_over_mean");
    if (file == nullptr) return false;
    const unsigned bits = 20 - bits_fewer_;
    for (const PlacementKind kind : kPlacementKinds) {
      if (kind == PlacementKind::Rendezvous) continue;  // Rendezvous takes too long: a mapping takes 25 us.
      const DistributionConfig config = three_levels(10, 10, 10, to_string(kind));
      ClusterState state = must(ClusterState::parse(fmt::format("bits:{} storage:1000", bits)));
      const std::vector<NodeList> before = place_all_buckets(state, config);
      std::uint64_t least = 0;
      for (const NodeList& list : before) {
        for (const std::uint16_t node : list) least += node / 100 == 4 ? 1 : 0;
      }
      for (std::uint16_t node = 400; node < 500; ++node) state.set_node_state(NodeId::storage(node), NodeState::Down);
      const MonotonicTime begin = clock_.now();
      const std::vector<NodeList> after = place_all_buckets(state, config);
      const double placed = seconds(clock_.now() - begin);
      std::uint64_t too_few = 0;
      for (const NodeList& list : after) too_few += list.size() < 3 ? 1 : 0;
      fmt::print(file.get(), "{},{},{:.3f},{},{},{},{:.4f}\n", to_string(kind), after.size(), placed,
                 moved_replicas(before, after), least, too_few,
                 balance_of(replicas_by_node(after), fair_shares(state, config)).max_over_mean);
    }
    return true;
  }

  /// Measures the imbalance of buckets of 1 to 5 MB, without and with the exceptions of plan_exceptions().
  bool exceptions() {
    const File file = open("exceptions", "algorithm,nodes,buckets,without,after,rows,rows_after_failure,kept,plan_ms");
    if (file == nullptr) return false;
    for (const char* algorithm : {"straw2", "consistent"}) {
      for (const auto& [nodes, bits] : {std::pair(10u, 8u), {10u, 16u}, {100u, 16u}, {300u, 16u}}) {
        const DistributionConfig config =
            must(DistributionConfig::parse(fmt::format("redundancy:3 algorithm:{} (root 0-{})", algorithm, nodes - 1)));
        ClusterState state = must(ClusterState::parse(fmt::format("bits:{} storage:{}", bits, nodes)));
        std::vector<std::uint64_t> bytes(std::size_t{1} << bits);
        for (std::size_t bucket = 0; bucket < bytes.size(); ++bucket) {
          bytes[bucket] = 1'000'000 + mix64(bucket, 1) % 4'000'000;
        }
        const MonotonicTime begin = clock_.now();
        const ExceptionPlan plan = plan_exceptions(bytes, state, config);
        const double took = seconds(clock_.now() - begin);
        state.set_exceptions(plan.exceptions);
        state.set_node_state(NodeId::storage(3), NodeState::Down);
        const ExceptionPlan next = plan_exceptions(bytes, state, config);
        std::size_t kept = 0;
        for (const PlacementException& row : next.exceptions) {
          kept += static_cast<std::size_t>(std::count(plan.exceptions.begin(), plan.exceptions.end(), row));
        }
        fmt::print(file.get(), "{},{},{},{:.4f},{:.4f},{},{},{},{:.1f}\n", algorithm, nodes, bytes.size(), plan.without,
                   plan.after, plan.exceptions.size(), next.exceptions.size(), kept, took * 1e3);
      }
    }
    return true;
  }

  CpuClock clock_;
  std::string folder_;
  unsigned bits_fewer_;
};

}  // namespace
}  // namespace fjord

int main(int argc, char** argv) {
  CLI::App app("Compares placement algorithms, as [Tell 2016, 7.1] and [VDS 2007, 2.3] do.",
               "fjord-experiment-placement");
  std::string output = ".";
  bool quick = false;
  app.add_option("--output", output, "Folder for the CSV files")->capture_default_str();
  app.add_flag("--quick", quick, "A sixteenth of the buckets, to see that it works");
  CLI11_PARSE(app, argc, argv);
  std::filesystem::create_directories(output);
  return fjord::Experiment(output, quick ? 4 : 0).run() ? 0 : 1;
}
