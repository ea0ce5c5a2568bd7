#include "fjord/tuner/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fjord/tuner/seed_formulas.h"

namespace fjord::tuner {
namespace {

constexpr double kPageBytes = 4096;

/// The sum of i^-s for i up to k, as an integral.
double harmonic(double k, double s) {
  if (k < 1) return std::max(k, 0.0);
  if (std::abs(s - 1) < 1e-6) return 1 + std::log(k);
  return 1 + (std::pow(k, 1 - s) - 1) / (1 - s);
}

enum Station : std::size_t { kCpu, kStripes, kDiskReads, kDiskTransfer, kNetwork, kStations };
constexpr const char* kStationNames[] = {"cpu", "stripes", "disk reads", "disk transfer", "network"};
enum Class : std::size_t { kOperation, kScan, kClasses };

/// Seconds that one operation, or one docblock of a visit, needs of each station.
using Demands = std::array<std::array<double, kStations>, kClasses>;

struct Costs {
  Demands demand{};
  std::array<double, kClasses> delay{};  ///< Time in which a customer needs no station.
  /// Disk time that an operation causes later (runs, rewriting): slows others, not itself.
  std::array<double, kStations> later{};
  std::array<double, kClasses> visits_disk{};  ///< How often one of them comes to the disk.
  double scan_bytes = 0;  ///< Of a docblock.
  double stripe_block_s = 0;  ///< The longest that a docblock keeps a stripe.
};

struct Hits {
  double page = 0;
  double index = 0;
  double scan = 0;
};

Hits hits_of(const Workload& w, const Settings& settings, const NodeShape& shape, const StoreFacts& facts) {
  Hits hits;
  const double pages = std::max(0.0, shape.page_bytes) * (w.scan_share > 0 ? 0.85 : 1.0);
  const double unit = std::max(kPageBytes, w.document_bytes);
  const double popular = zipf_share(pages / unit, shape.documents, w.key_skew);
  hits.page = popular + (1 - popular) * std::min(1.0, pages / shape.bytes);
  if (pages >= shape.bytes) hits.page = 1;
  const double held = std::min(1.0, static_cast<double>(settings.index_bytes_max) / shape.index_bytes);
  const double slots_held = held * shape.slotfiles;
  const double hot = held >= 1 ? 1 : zipf_share(slots_held / 2, shape.documents, w.key_skew);
  hits.index = hot + (1 - hot) * held;
  static_cast<void>(facts);
  hits.scan = pages >= shape.bytes ? 1 : 0;
  return hits;
}

void add_operations(const Workload& w, const HardwareProfile& hw, const NodeShape& shape, const Hits& hits,
                    const StoreFacts& facts, Costs& costs) {
  const double r = w.read_share();
  const double d = w.document_bytes;
  const double read_rate = hw[Constant::SequentialReadRate];
  const double write_rate = hw[Constant::SequentialWriteRate];
  const double touch = d / hw[Constant::CopyRate] * 4 + d / hw[Constant::HashRate] * 2;
  const double index_miss = 1 - hits.index;
  const double load_cpu = index_miss * shape.entries_per_slotfile * facts.index_load_s_per_document;
  const double load_bytes = index_miss * shape.entries_per_slotfile * facts.index_disk_bytes_per_document;
  const double reads = r * (1 - hits.page) + index_miss;
  auto& demand = costs.demand[kOperation];
  costs.visits_disk[kOperation] = reads;
  const double cpu = r * facts.read_cpu_s + (1 - r) * facts.write_cpu_s + touch + load_cpu;
  demand[kCpu] = cpu;
  demand[kDiskReads] = reads * std::max(1e-9, 1 / hw[Constant::RandomReadsPerS]);
  const double foreground_bytes = r * (1 - hits.page) * std::max(d, kPageBytes) + load_bytes;
  demand[kDiskTransfer] = foreground_bytes / read_rate;
  // A stripe waits for the medium; the CPU time that it has itself is about half.
  const double wait = reads * hw[Constant::RandomReadS];
  double sync = 0;
  if (w.sync) {
    const double batch = std::max(1.0, facts.clients_per_node * (1 - r) / facts.stripes / 2);
    sync = (1 - r) * hw[Constant::SyncS] / batch;
  }
  demand[kStripes] = 0.4 * cpu + wait + sync + demand[kDiskTransfer];
  const double writes = 1 - r;
  demand[kNetwork] = (r * d + writes * d * 2) / hw[Constant::NetworkRate];
  const double amplification = w.overwrite_share * (1 - facts.dead_share_max) / facts.dead_share_max +
                               (1 - w.overwrite_share);
  costs.later[kDiskTransfer] =
      writes * d * (2 / write_rate + amplification * (1 / write_rate + 1 / read_rate));
  // Each run is written somewhere else, and the journal in between.
  costs.later[kDiskReads] = writes * d / std::max(shape.run_bytes, d) * 2 / hw[Constant::RandomReadsPerS];
  costs.later[kCpu] = writes * d * (1 + amplification) / hw[Constant::CopyRate] * 3;
  costs.delay[kOperation] = hw[Constant::RoundTripS];
}

void add_scan(const Workload& w, const HardwareProfile& hw, const Settings& settings, const NodeShape& shape,
              const Hits& hits, const StoreFacts& facts, Costs& costs) {
  const double block = std::min(static_cast<double>(settings.docblock_bytes), shape.bucket_bytes);
  const double documents = block / w.document_bytes;
  const double copy = block / hw[Constant::CopyRate] * 3 + block / hw[Constant::HashRate];
  const double fragment = std::min(shape.slotfile_bytes, std::max(shape.run_bytes, w.document_bytes) * 4);
  const double seeks = (block / fragment + block / shape.slotfile_bytes * 1.5) * (1 - hits.scan);
  const double depth = hw[Constant::RandomReadS] * hw[Constant::RandomReadsPerS];
  const double ahead = std::clamp(facts.readahead_bytes / fragment, 1.0, std::max(1.0, std::min(depth, 8.0)));
  costs.visits_disk[kScan] = 1;
  auto& demand = costs.demand[kScan];
  const double in_stripe = documents * facts.scan_cpu_s_per_document * 0.5 + copy * 0.5 + facts.docblock_cpu_s * 0.5;
  demand[kCpu] = documents * (facts.scan_cpu_s_per_document + w.map_s_per_document) + copy + facts.docblock_cpu_s;
  demand[kDiskReads] = seeks / hw[Constant::RandomReadsPerS];
  demand[kDiskTransfer] = block * (1 - hits.scan) / hw[Constant::SequentialReadRate];
  const double wait = seeks * hw[Constant::RandomReadS] / ahead + demand[kDiskTransfer];
  demand[kStripes] = in_stripe + wait;
  costs.stripe_block_s = demand[kStripes];
  costs.delay[kScan] = facts.bucket_scan_s * block / shape.bucket_bytes +
                       block / shape.slotfile_bytes * hw[Constant::FileOpenS] + hw[Constant::RoundTripS] / 4;
  if (w.tuple_bytes_per_document > 0) {
    demand[kNetwork] = documents * w.tuple_bytes_per_document * static_cast<double>(w.redundancy + 1) /
                       hw[Constant::NetworkRate];
  }
  costs.scan_bytes = block;
}

struct Solution {
  std::array<double, kClasses> rate{};
  std::array<double, kClasses> response{};
  std::array<double, kStations> use{};
};

/// Bard and Schweitzer's approximation; a station with m servers is one that is m times as fast and a delay (Seidmann).
Solution solve(const Costs& costs, const std::array<double, kStations>& servers,
               const std::array<double, kClasses>& customers) {
  Solution s;
  std::array<std::array<double, kStations>, kClasses> queue{};
  for (std::size_t c = 0; c < kClasses; ++c) {
    for (std::size_t k = 0; k < kStations; ++k) queue[c][k] = customers[c] / static_cast<double>(kStations);
  }
  std::array<double, kStations> later_use{};
  // How often a customer comes to a station, and how long one stay is: what an operation needs now and then is long.
  std::array<std::array<double, kStations>, kClasses> service = costs.demand;
  std::array<std::array<double, kStations>, kClasses> visits{};
  for (std::size_t c = 0; c < kClasses; ++c) {
    for (std::size_t k = 0; k < kStations; ++k) {
      visits[c][k] = 1;
      if ((k == kDiskReads || k == kDiskTransfer) && costs.visits_disk[c] > 0) {
        visits[c][k] = std::min(1.0, costs.visits_disk[c]);
        service[c][k] /= visits[c][k];
      }
    }
  }
  for (int round = 0; round < 60; ++round) {
    for (std::size_t c = 0; c < kClasses; ++c) {
      double response = 0;
      std::array<double, kStations> times{};
      for (std::size_t k = 0; k < kStations; ++k) {
        const double slower = 1 / (1 - std::min(later_use[k], 0.9));
        const double own = costs.demand[c][k] * slower;
        // First come, first served: each who is before us takes the time of his own kind.
        double wait = 0;
        for (std::size_t other = 0; other < kClasses; ++other) {
          const double there = queue[other][k] * (other == c && customers[c] > 0 ? 1 - 1 / customers[c] : 1);
          wait += there * service[other][k] * slower;
        }
        times[k] = own > 0 ? own + wait / servers[k] * visits[c][k] : 0;
        response += times[k];
      }
      const double rate = customers[c] > 0 ? customers[c] / (costs.delay[c] + response) : 0;
      s.response[c] = response + costs.delay[c];
      s.rate[c] = round == 0 ? rate : 0.7 * s.rate[c] + 0.3 * rate;
      for (std::size_t k = 0; k < kStations; ++k) {
        // In a multi-server those who are served do not stand in anybody's way until all are busy.
        const double waiting = s.rate[c] * times[k];
        const double served = std::min(s.rate[c] * costs.demand[c][k], servers[k]);
        queue[c][k] = std::max(0.0, waiting - served * (servers[k] - 1) / servers[k]);
      }
    }
    for (std::size_t k = 0; k < kStations; ++k) {
      // What comes later must get done, so operations cannot be more than it lets through.
      if (costs.later[k] > 0) s.rate[kOperation] = std::min(s.rate[kOperation], 0.9 * servers[k] / costs.later[k]);
      later_use[k] = s.rate[kOperation] * costs.later[k] / servers[k];
    }
  }
  for (std::size_t k = 0; k < kStations; ++k) {
    s.use[k] = (s.rate[kOperation] * (costs.demand[kOperation][k] + costs.later[k]) +
                s.rate[kScan] * costs.demand[kScan][k]) /
               servers[k];
  }
  return s;
}

}  // namespace

double zipf_share(double k, double n, double exponent) {
  if (n <= 0 || k >= n) return 1;
  if (k <= 0) return 0;
  return std::min(1.0, harmonic(k, exponent) / harmonic(n, exponent));
}

double objective_of(const Workload& workload, double operations_per_s, double scan_bytes_per_s, double p99_s) {
  const double s = workload.scan_share;
  const double latency = p99_s > 0 ? std::min(1.0, workload.latency_target_s / p99_s) : 1;
  return std::pow(std::max(operations_per_s, 1e-3), 1 - s) * std::pow(std::max(scan_bytes_per_s, 1e-3), s) * latency;
}

NodeShape shape_of(const Workload& w, const Settings& settings, const StoreFacts& facts) {
  NodeShape shape;
  shape.documents = std::max(1.0, w.documents_per_node());
  shape.bytes = std::max(1.0, w.bytes_per_node());
  const double split_at = std::min(static_cast<double>(settings.bucket_bytes_max),
                                   static_cast<double>(settings.bucket_entries_max) * w.document_bytes) *
                          facts.bucket_fill;
  shape.buckets_total = std::max(std::exp2(static_cast<double>(settings.distribution_bits)), w.total_bytes() / split_at);
  shape.buckets = std::max(1.0, shape.buckets_total * static_cast<double>(w.redundancy) / static_cast<double>(w.nodes));
  shape.bucket_bytes = shape.bytes / shape.buckets;
  const double file_at = std::min(static_cast<double>(settings.file_bytes_max),
                                  static_cast<double>(settings.entries_max) * w.document_bytes) *
                         facts.bucket_fill;
  const double files = std::clamp(shape.bucket_bytes / std::max(file_at, w.document_bytes), 1.0,
                                  static_cast<double>(settings.slotfiles_max));
  shape.slotfiles = shape.buckets * files;
  shape.slotfile_bytes = shape.bytes / shape.slotfiles;
  shape.entries_per_slotfile = shape.documents / shape.slotfiles;
  // Half of what is held is written when a slot's turn comes.
  shape.run_bytes = std::clamp(static_cast<double>(settings.held_bytes_max) / 2 / shape.slotfiles, w.document_bytes,
                               std::max(w.document_bytes, shape.slotfile_bytes));
  shape.index_bytes = shape.documents * facts.index_bytes_per_document;
  const double tuples =
      static_cast<double>(settings.visitors_max) * w.tuple_bytes_per_document * shape.documents / shape.buckets;
  const double blocks = static_cast<double>(settings.visitors_max) * (facts.docblocks_pending + 1) *
                        static_cast<double>(settings.docblock_bytes);
  shape.page_bytes = w.memory_bytes - facts.memory_reserve_bytes - static_cast<double>(settings.held_bytes_max) -
                     std::min(shape.index_bytes, static_cast<double>(settings.index_bytes_max)) - tuples - blocks;
  return shape;
}

StripeTimes stripe_times(const Workload& w, const HardwareProfile& hw, const Settings& settings,
                         const StoreFacts& facts) {
  const NodeShape shape = shape_of(w, settings, facts);
  const Hits hits = hits_of(w, settings, shape, facts);
  Costs costs;
  add_operations(w, hw, shape, hits, facts, costs);
  add_scan(w, hw, settings, shape, hits, facts, costs);
  return {costs.demand[kOperation][kStripes], costs.demand[kScan][kStripes]};
}

Prediction predict(const Workload& w, const HardwareProfile& hw, const Settings& settings, const StoreFacts& facts) {
  const NodeShape shape = shape_of(w, settings, facts);
  const Hits hits = hits_of(w, settings, shape, facts);
  Costs costs;
  add_operations(w, hw, shape, hits, facts, costs);
  add_scan(w, hw, settings, shape, hits, facts, costs);
  const double cores = static_cast<double>(w.cores);
  const std::array<double, kStations> servers = {cores, facts.stripes, 1, 1, 1};
  const double visitors =
      w.scan_share > 0 ? std::min(static_cast<double>(settings.visitors_max), shape.buckets) : 0;
  const Solution solved = solve(costs, servers, {facts.clients_per_node, visitors});
  Prediction p;
  const double nodes = static_cast<double>(w.nodes);
  // The fullest node decides when a visit ends, and how far the load can rise.
  const double uneven = 1 + std::sqrt(nodes / std::max(nodes, shape.buckets_total * static_cast<double>(w.redundancy)));
  const double rounds = visitors > 0 ? std::ceil(shape.buckets / visitors) * visitors / shape.buckets : 1;
  p.operations_per_s = solved.rate[kOperation] * nodes / uneven;
  p.scan_bytes_per_s = solved.rate[kScan] * costs.scan_bytes * nodes / uneven / rounds;
  p.p99_s = 2 * solved.response[kOperation] + (visitors > 0 ? 1.5 * costs.stripe_block_s : 0);
  p.node_memory_bytes = w.memory_bytes - shape.page_bytes;
  p.page_hit = hits.page;
  p.index_hit = hits.index;
  std::size_t busiest = 0;
  for (std::size_t k = 1; k < kStations; ++k) {
    if (solved.use[k] > solved.use[busiest]) busiest = k;
  }
  p.binding = kStationNames[busiest];
  if (shape.page_bytes < 0) {
    p.fits = false;
    p.binding = "memory";
    p.operations_per_s /= 10;
    p.scan_bytes_per_s /= 10;
    p.p99_s *= 10;
  }
  p.objective = objective_of(w, p.operations_per_s, p.scan_bytes_per_s, p.p99_s);
  return p;
}

}  // namespace fjord::tuner
