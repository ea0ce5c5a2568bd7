#include "fjord/tuner/cost_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "fjord/tuner/seed_formulas.h"

namespace fjord::tuner {
namespace {

constexpr double kPageBytes = 4096;

/// Approximates the sum of i^-s for i = 1..k by an integral.
double harmonic(double k, double s) {
  if (k < 1) return std::max(k, 0.0);
  if (std::abs(s - 1) < 1e-6) return 1 + std::log(k);
  return 1 + (std::pow(k, 1 - s) - 1) / (1 - s);
}

enum Station : std::size_t { kCpu, kStripes, kDiskReads, kDiskTransfer, kNetwork, kStations };
constexpr const char* kStationNames[] = {"cpu", "stripes", "disk reads", "disk transfer", "network"};
enum Class : std::size_t { kOperation, kScan, kClasses };

/// Seconds of each station that one operation, or one docblock of a visit, needs.
using Demands = std::array<std::array<double, kStations>, kClasses>;

struct Costs {
  Demands demand{};
  std::array<double, kClasses> delay{};  ///< Seconds in which a customer uses no station.
  /// Station time of the later work that an operation causes (runs, rewriting): it slows others, not the operation
  /// itself.
  std::array<double, kStations> later{};
  /// Part of the demand for stripes, in seconds, in which the stripe waits for its reads from the disk.
  std::array<double, kClasses> disk_in_stripe{};
  std::array<double, kClasses> visits_disk{};  ///< Mean number of disk accesses of one operation or docblock.
  double step_s = 0;                           ///< Disk time of one step of rewriting a slotfile.
  double scan_bytes = 0;                       ///< Bytes of a docblock.
  double stripe_block_s = 0;                   ///< Time for which a docblock occupies a stripe.
};

struct Hits {
  double page = 0;
  double index = 0;
  double scan = 0;
};

Hits hits_of(const Workload& w, const Settings& settings, const NodeShape& shape, const StoreFacts& facts) {
  Hits hits;
  const double pages = std::max(0.0, shape.page_bytes) * (w.scan_share > 0 ? 0.8 : 0.95);
  const double unit = std::max(kPageBytes, w.document_bytes);
  // An LRU cache is as good as a cache of a quarter of its size that keeps the most popular documents.
  const double popular = zipf_share(pages / unit / 4, shape.documents, w.key_skew);
  const double on_disk = shape.bytes * facts.disk_bytes_per_byte;
  hits.page = pages >= on_disk ? 1 : popular + (1 - popular) * std::min(1.0, pages / on_disk);
  // Popular documents are spread over all slots, so all slots are used alike.
  hits.index = std::min(1.0, static_cast<double>(settings.index_bytes_max) / shape.index_bytes);
  hits.scan = pages >= on_disk ? 1 : 0;
  return hits;
}

/// Returns the CPU time of this machine relative to the one on which the facts were measured.
double cpu_factor(const HardwareProfile& hw, const StoreFacts& facts) {
  return facts.decode_rate / hw[Constant::DecodeRate];
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
  const double slow = cpu_factor(hw, facts);
  const double cpu = (r * facts.read_cpu_s + (1 - r) * facts.write_cpu_s + touch + load_cpu) * slow;
  demand[kCpu] = cpu;
  demand[kDiskReads] = reads * std::max(1e-9, 1 / hw[Constant::RandomReadsPerS]);
  const double foreground_bytes = r * (1 - hits.page) * std::max(d, kPageBytes) + load_bytes;
  demand[kDiskTransfer] = foreground_bytes / read_rate;
  // A stripe waits for the medium; about half of the CPU time is spent in the stripe.
  const double wait = reads * hw[Constant::RandomReadS];
  double sync = 0;
  if (w.sync) {
    const double batch = std::max(1.0, facts.clients_per_node * (1 - r) / facts.stripes / 2);
    sync = (1 - r) * hw[Constant::SyncS] / batch;
  }
  costs.disk_in_stripe[kOperation] = wait + demand[kDiskTransfer];
  demand[kStripes] = (0.4 * (cpu - load_cpu * slow) + load_cpu * slow) + sync + costs.disk_in_stripe[kOperation];
  const double writes = 1 - r;
  demand[kNetwork] = (r * d + writes * d * 2) / hw[Constant::NetworkRate];
  const double amplification =
      w.overwrite_share * (1 - facts.dead_share_max) / facts.dead_share_max + (1 - w.overwrite_share);
  costs.later[kDiskTransfer] = writes * d * (2 / write_rate + amplification * (1 / write_rate + 1 / read_rate));
  // Bytes of one step of a rewrite. Each run is written at another place of the disk, with journal writes in between.
  constexpr double kStepBytes = 1 << 20;
  const double run = std::max(shape.run_bytes, d);
  const double step = std::min(kStepBytes, shape.slotfile_bytes);
  const double places = d / run * 1.3 + d / std::min(run, kStepBytes) * 0.2 +
                        d * amplification / step * (2 + step / std::max(4 * run, 65536.0));
  costs.step_s = step / write_rate + step / read_rate + 3 / hw[Constant::RandomReadsPerS];
  costs.later[kDiskReads] = writes * places / hw[Constant::RandomReadsPerS];
  // The CPU time of this later work is spent in the stripe.
  const double behind =
      writes * slow *
      (d / std::min(run, kStepBytes) * facts.run_cpu_s + d * amplification / step * facts.rewrite_step_cpu_s +
       d * (2 + 3 * amplification) / hw[Constant::CopyRate]);
  costs.later[kCpu] = behind;
  demand[kStripes] += behind;
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
  const double slow = cpu_factor(hw, facts);
  const double in_stripe =
      slow * (documents * facts.scan_cpu_s_per_document * 0.5 + copy * 0.5 + facts.docblock_cpu_s * 0.5);
  demand[kCpu] =
      slow * (documents * (facts.scan_cpu_s_per_document + w.map_s_per_document) + copy + facts.docblock_cpu_s);
  demand[kDiskReads] = seeks / hw[Constant::RandomReadsPerS];
  demand[kDiskTransfer] = block * (1 - hits.scan) / hw[Constant::SequentialReadRate];
  const double wait = seeks * hw[Constant::RandomReadS] / ahead + demand[kDiskTransfer];
  costs.disk_in_stripe[kScan] = wait;
  demand[kStripes] = in_stripe + wait;
  costs.stripe_block_s = demand[kStripes];
  costs.delay[kScan] = facts.bucket_scan_s * block / shape.bucket_bytes +
                       block / shape.slotfile_bytes * hw[Constant::FileOpenS] + hw[Constant::RoundTripS] / 4;
  if (w.tuple_bytes_per_document > 0) {
    demand[kNetwork] =
        documents * w.tuple_bytes_per_document * static_cast<double>(w.redundancy + 1) / hw[Constant::NetworkRate];
  }
  costs.scan_bytes = block;
}

struct Solution {
  std::array<double, kClasses> rate{};
  std::array<double, kClasses> response{};
  std::array<double, kStations> use{};
  bool is_held_up = false;  ///< Whether writers wait for the disk.
  double network_s = 0;     ///< The part of an operation's response that it spends in the network and in its queue.
};

/// The queueing network, solved with `held_up` extra seconds in the stripe for each operation.
///
/// Uses the approximation of Bard and Schweitzer for service in order of arrival: each customer ahead takes the service
/// time of its own class. In a station with several servers a customer waits only if all are busy.
class Network {
 public:
  Network(const Costs& costs, const std::array<double, kStations>& servers,
          const std::array<double, kClasses>& customers)
      : costs_(costs), servers_(servers), customers_(customers), service_(costs.demand) {
    for (std::size_t c = 0; c < kClasses; ++c) {
      visits_[c].fill(1);
      if (costs.visits_disk[c] <= 0) continue;
      // `demand` is a mean over all operations; if only some use the disk, each of those uses it for longer.
      for (const std::size_t k : {kDiskReads, kDiskTransfer}) {
        visits_[c][k] = std::min(1.0, costs.visits_disk[c]);
        service_[c][k] /= visits_[c][k];
      }
    }
    disk_later_ = costs.later[kDiskTransfer] + costs.later[kDiskReads];
  }

  Solution solve(double held_up) const {
    Solution s;
    auto service = service_;
    service[kOperation][kStripes] += held_up;
    std::array<std::array<double, kStations>, kClasses> queue{};
    for (std::size_t c = 0; c < kClasses; ++c) queue[c].fill(customers_[c] / 3);
    std::array<double, kStations> later_use{};
    for (int round = 0; round < 40; ++round) {
      for (std::size_t c = 0; c < kClasses; ++c) {
        if (customers_[c] <= 0) continue;
        const double rate = one_class(s, service, later_use, queue, c);
        s.rate[c] = round == 0 ? rate : 0.6 * s.rate[c] + 0.4 * rate;
      }
      const double left = std::max(1.0 / 3, 1 - reads(s));
      later_use[kDiskTransfer] = later_use[kDiskReads] = std::min(1.0, s.rate[kOperation] * disk_later_ / left);
      later_use[kCpu] = s.rate[kOperation] * costs_.later[kCpu] / servers_[kCpu];
    }
    for (std::size_t k = 0; k < kStations; ++k) {
      s.use[k] = (s.rate[kOperation] * (service[kOperation][k] * visits_[kOperation][k] + costs_.later[k]) +
                  s.rate[kScan] * costs_.demand[kScan][k]) /
                 servers_[k];
    }
    return s;
  }

  /// Returns the highest rate at which the later work gets done: reads come first, but leave a third of the disk to it.
  double most_operations(const Solution& s) const {
    return disk_later_ <= 0 ? 1e300 : std::max(1.0 / 3, 1 - reads(s)) / disk_later_;
  }

 private:
  /// Returns the share of the disk's time that reads take.
  double reads(const Solution& s) const {
    double sum = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      sum += s.rate[c] * (costs_.demand[c][kDiskTransfer] + costs_.demand[c][kDiskReads]);
    }
    return sum;
  }
  /// Returns the time for which a class occupies a stripe while the other stripes use the disk as well. Each stripe has
  /// at most one request at the disk, so there is no queue: a request waits only for those that have begun.
  double stripe_service(const Solution& s, const std::array<std::array<double, kStations>, kClasses>& service,
                        const std::array<double, kStations>& later_use, std::size_t c) const {
    double waiting = 0;
    for (const std::size_t k : {kDiskReads, kDiskTransfer}) {
      // Background writes share the disk. They yield, but not without limit.
      const double slower = 1 + 0.5 * later_use[k];
      double use = 0;
      double begun = 0;
      for (std::size_t other = 0; other < kClasses; ++other) {
        const double half = 0.5 * s.rate[other] * costs_.demand[other][k] * slower;
        use += half;
        begun += half * service[other][k] * slower;
      }
      waiting += visits_[c][k] * begun / (1 - std::min(use, 0.9));
    }
    const double disk = costs_.disk_in_stripe[c];
    return service[c][kStripes] - disk + disk * (1 + 0.5 * later_use[kDiskReads]) + (disk > 0 ? waiting : 0);
  }

  double one_class(Solution& s, const std::array<std::array<double, kStations>, kClasses>& service,
                   const std::array<double, kStations>& later_use,
                   std::array<std::array<double, kStations>, kClasses>& queue, std::size_t c) const {
    std::array<double, kStations> times{};
    std::array<std::array<double, kStations>, kClasses> stay = service;
    for (std::size_t other = 0; other < kClasses; ++other) {
      stay[other][kStripes] = stripe_service(s, service, later_use, other);
    }
    double response = costs_.delay[c];
    for (const std::size_t k : {kCpu, kStripes, kNetwork}) {
      const double slower = k == kCpu ? 1 / (1 - std::min(later_use[k], 0.9)) : 1;
      double wait = 0;
      for (std::size_t other = 0; other < kClasses; ++other) {
        const double there = queue[other][k] * (other == c ? 1 - 1 / customers_[c] : 1);
        wait += there * stay[other][k];
      }
      times[k] = stay[c][k] > 0 ? (stay[c][k] + wait / servers_[k]) * slower : 0;
      response += times[k];
    }
    const double rate = customers_[c] / response;
    s.response[c] = response;
    if (c == kOperation) s.network_s = times[kNetwork];
    for (const std::size_t k : {kCpu, kStripes, kNetwork}) {
      const double served = std::min(rate * stay[c][k], servers_[k]);
      queue[c][k] = std::max(0.0, rate * times[k] - served * (servers_[k] - 1) / servers_[k]);
    }
    return rate;
  }

  const Costs& costs_;
  const std::array<double, kStations>& servers_;
  const std::array<double, kClasses>& customers_;
  std::array<std::array<double, kStations>, kClasses> service_;
  std::array<std::array<double, kStations>, kClasses> visits_{};
  double disk_later_ = 0;
};

Solution solve(const Costs& costs, const std::array<double, kStations>& servers,
               const std::array<double, kClasses>& customers) {
  const Network network(costs, servers, customers);
  Solution s = network.solve(0);
  if (s.rate[kOperation] <= network.most_operations(s)) return s;
  // Writers wait in their stripe until no more is written than the disk gets done.
  double low = 1e-7;
  double high = 100;
  for (int i = 0; i < 22; ++i) {
    const double middle = std::sqrt(low * high);
    s = network.solve(middle);
    (s.rate[kOperation] > network.most_operations(s) ? low : high) = middle;
  }
  s.is_held_up = true;
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
  const double operations = std::min(operations_per_s, workload.operations_that_count());
  return std::pow(std::max(operations, 1e-3), 1 - s) * std::pow(std::max(scan_bytes_per_s, 1e-3), s) * latency;
}

NodeShape shape_of(const Workload& w, const Settings& settings, const StoreFacts& facts) {
  NodeShape shape;
  shape.documents = std::max(1.0, w.documents_per_node());
  shape.bytes = std::max(1.0, w.bytes_per_node());
  const double split_at = std::min(static_cast<double>(settings.bucket_bytes_max),
                                   static_cast<double>(settings.bucket_entries_max) * w.document_bytes) *
                          facts.bucket_fill;
  shape.buckets_total =
      std::max(std::exp2(static_cast<double>(settings.distribution_bits)), w.total_bytes() / split_at);
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
  // On average half of the held bytes are written when a slot's turn comes.
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
  const double visitors = w.scan_share > 0 ? std::min(static_cast<double>(settings.visitors_max), shape.buckets) : 0;
  const Solution solved = solve(costs, servers, {facts.clients_per_node, visitors});
  Prediction p;
  const double nodes = static_cast<double>(w.nodes);
  // The fullest node limits load and visits. Random placement gives it about sqrt(nodes / replicas) more than the mean.
  const double uneven = 1 + std::sqrt(nodes / std::max(nodes, shape.buckets_total * static_cast<double>(w.redundancy)));
  const double rounds = visitors > 0 ? std::ceil(shape.buckets / visitors) * visitors / shape.buckets : 1;
  p.operations_per_s = solved.rate[kOperation] * nodes / uneven;
  p.scan_bytes_per_s = solved.rate[kScan] * costs.scan_bytes * nodes / uneven / rounds;
  // The time in the network varies little; waits for stripes and disks vary much, and sometimes a device is slow.
  const double slow_read = hits.page < 0.98 ? 6 * hw[Constant::RandomReadS] : 0;
  p.p99_s = 1.9 * (solved.response[kOperation] - solved.network_s) + 1.2 * solved.network_s + slow_read +
            (visitors > 0 ? 1.5 * costs.stripe_block_s : 0) + (solved.is_held_up ? 1.5 * costs.step_s : 0);
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
