#include "fjord/tuner/model/grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "fjord/common/byte_units.h"
#include "fjord/common/random.h"
#include "fjord/tuner/advisor.h"

namespace fjord::tuner::model {
namespace {

constexpr double kGiB = 1ULL << 30;

double log_uniform(Random& random, double low, double high) { return low * std::pow(high / low, random.uniform()); }

SimulatedHardware draw_hardware(Random& random, std::string& name) {
  SimulatedHardware hw;
  hw.cores = static_cast<double>(std::uint64_t{2} << random.below(4));
  hw.cpu_factor = log_uniform(random, 0.7, 1.6);
  hw.network_rate = random.chance(0.5) ? 125e6 : 1.25e9;
  const std::uint64_t kind = random.below(4);
  if (kind == 0) {
    name = "disk";
    hw.seek_s = log_uniform(random, 4e-3, 10e-3);
    hw.channels = 1;
    hw.read_rate = log_uniform(random, 100e6, 250e6);
    hw.write_rate = hw.read_rate * 0.9;
    hw.sync_s = hw.seek_s * 1.5;
    hw.open_s = 50e-6;
  } else if (kind == 1) {
    name = "SATA SSD";
    hw.seek_s = log_uniform(random, 90e-6, 200e-6);
    hw.channels = 8;
    hw.read_rate = log_uniform(random, 400e6, 560e6);
    hw.write_rate = log_uniform(random, 250e6, 500e6);
    hw.sync_s = log_uniform(random, 0.3e-3, 3e-3);
  } else if (kind == 2) {
    name = "NVMe";
    hw.seek_s = log_uniform(random, 50e-6, 110e-6);
    hw.channels = 32;
    hw.read_rate = log_uniform(random, 1.5e9, 5e9);
    hw.write_rate = hw.read_rate * log_uniform(random, 0.3, 0.8);
    hw.sync_s = log_uniform(random, 30e-6, 1e-3);
  } else {
    name = "cloud volume";
    hw.seek_s = log_uniform(random, 0.5e-3, 2e-3);
    hw.channels = 16;
    hw.read_rate = log_uniform(random, 120e6, 400e6);
    hw.write_rate = hw.read_rate;
    hw.sync_s = log_uniform(random, 1e-3, 4e-3);
    hw.slow_read_share = 0.01;
  }
  return hw;
}

Scenario draw(Random& random, int number) {
  Scenario scenario;
  std::string disk;
  scenario.hardware = draw_hardware(random, disk);
  Workload& w = scenario.workload;
  w.cores = static_cast<std::int64_t>(scenario.hardware.cores);
  w.nodes = static_cast<std::int64_t>(log_uniform(random, 3, 60));
  w.memory_bytes = log_uniform(random, 3, 128) * kGiB;
  w.redundancy = 1 + static_cast<std::int64_t>(random.below(3));
  w.document_bytes = std::round(log_uniform(random, 150, 100'000));
  w.document_bytes_p99 = w.document_bytes * log_uniform(random, 1.5, 8);
  // The data of a node takes from a fifth of its memory to twenty times as much.
  const double node_bytes = w.memory_bytes * log_uniform(random, 0.2, 20);
  w.documents = std::round(std::min(node_bytes / w.document_bytes, 6e8) * static_cast<double>(w.nodes) /
                           static_cast<double>(w.redundancy));
  const double read_share = std::array<double, 4>{0.5, 0.8, 0.95, 0.2}[random.below(4)];
  w.reads_per_s = 1000 * read_share;
  w.writes_per_s = 1000 * (1 - read_share);
  // The best of a grid is the best without regard to what is given up, and to how much is wanted.
  w.headroom = 0;
  w.give_up_max = 1;
  w.overwrite_share = random.uniform();
  w.key_skew = random.chance(0.3) ? 0 : 0.5 + 0.6 * random.uniform();
  w.scan_share = std::array<double, 4>{0.1, 0.3, 0.5, 0.05}[random.below(4)];
  w.map_s_per_document = random.chance(0.3) ? log_uniform(random, 1e-6, 20e-6) : 0;
  w.tuple_bytes_per_document = random.chance(0.4) ? w.document_bytes * log_uniform(random, 0.01, 0.3) : 0;
  w.sync = random.chance(0.25);
  w.latency_target_s = log_uniform(random, 0.01, 0.2) * (scenario.hardware.seek_s > 3e-3 ? 5 : 1);
  w.current.visitors_max = static_cast<std::int64_t>(std::ceil(2.5 * scenario.hardware.cores));
  scenario.name = fmt::format("{} {}, {} x {} cores, {}, {:.2g} docs of {}, r {:.2g}, s {:.2g}{}", number, disk,
                              w.nodes, w.cores, bytes_text(w.memory_bytes), w.documents, bytes_text(w.document_bytes),
                              read_share, w.scan_share, w.sync ? ", sync" : "");
  return scenario;
}

std::vector<Settings> grid_of(const Scenario& scenario, int docblock_levels) {
  constexpr std::int64_t kKiB = 1024;
  constexpr std::int64_t kMiB = 1024 * kKiB;
  const std::int64_t cores = scenario.workload.cores;
  const auto memory = static_cast<std::int64_t>(scenario.workload.memory_bytes);
  std::vector<Settings> all;
  constexpr std::array<std::int64_t, 4> kDocblocks = {kMiB, 256 * kKiB, 64 * kKiB, 4 * kMiB};
  for (const std::int64_t file : {4 * kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB}) {
    for (const std::int64_t held : {64 * kMiB, 256 * kMiB, memory / 16, memory / 6}) {
      for (const std::int64_t index : {256 * kMiB, 1024 * kMiB, memory / 4, memory / 2}) {
        for (const std::int64_t visitors :
             {std::int64_t{1}, std::max<std::int64_t>(2, cores / 2), (cores * 5 + 1) / 2, cores * 5}) {
          for (const std::int64_t bucket : {8 * kMiB, 64 * kMiB, 256 * kMiB, 1024 * kMiB}) {
            for (int block = 0; block < docblock_levels; ++block) {
              Settings settings = scenario.workload.current;
              settings.file_bytes_max = file;
              settings.held_bytes_max = held;
              settings.index_bytes_max = index;
              settings.visitors_max = visitors;
              settings.bucket_bytes_max = bucket;
              settings.docblock_bytes = kDocblocks[static_cast<std::size_t>(block)];
              // A bucket is limited by its bytes and not by its entries, as in the advice.
              settings.bucket_entries_max = 64 * settings.entries_max;
              all.push_back(settings);
            }
          }
        }
      }
    }
  }
  return all;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

double GridRow::throughput_error() const {
  return std::abs(predicted.operations_per_s / advised_outcome.operations_per_s - 1);
}
double GridRow::latency_error() const { return std::abs(predicted.p99_s / advised_outcome.p99_s - 1); }

std::vector<Scenario> draw_scenarios(std::uint64_t seed, int count) {
  Random random(seed);
  std::vector<Scenario> all;
  for (int i = 1; i <= count; ++i) all.push_back(draw(random, i));
  return all;
}
std::vector<Scenario> fitting_scenarios(int count) { return draw_scenarios(1, count); }
std::vector<Scenario> held_out_scenarios() { return draw_scenarios(20'061'121, 32); }

GridRow run_grid(const Scenario& scenario, std::uint64_t seed, int docblock_levels, int operations) {
  GridRow row;
  row.scenario = scenario;
  const HardwareProfile profile = probe(scenario.hardware, seed);
  row.advised = advise(scenario.workload, profile).after;
  row.predicted = predict(scenario.workload, profile, row.advised);
  // Simulates the whole grid once, then the best settings again with other seeds and for longer: the maximum of
  // thousands of noisy figures is biased.
  std::vector<std::pair<double, Settings>> tried;
  for (const Settings& settings : grid_of(scenario, docblock_levels)) {
    tried.push_back({simulate(scenario.workload, scenario.hardware, settings, seed, operations).objective, settings});
  }
  row.settings_tried = tried.size() + 2;
  constexpr std::size_t kFinalists = 16;
  const auto finalists = std::min(tried.size(), kFinalists);
  std::partial_sort(tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>(finalists), tried.end(),
                    [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto settled = [&](const Settings& settings) {
    constexpr int kSeeds = 3;
    Outcome mean;
    for (std::uint64_t i = 1; i <= kSeeds; ++i) {
      const Outcome one = simulate(scenario.workload, scenario.hardware, settings, seed + 1000 * i, 3 * operations);
      mean.operations_per_s += one.operations_per_s / kSeeds;
      mean.scan_bytes_per_s += one.scan_bytes_per_s / kSeeds;
      mean.p99_s += one.p99_s / kSeeds;
      mean.objective += one.objective / kSeeds;
    }
    return mean;
  };
  row.advised_outcome = settled(row.advised);
  row.default_outcome = settled(scenario.workload.current);
  row.best = row.advised;
  row.best_objective = row.advised_outcome.objective;
  for (std::size_t i = 0; i < finalists; ++i) {
    const Outcome outcome = settled(tried[i].second);
    if (outcome.objective <= row.best_objective) continue;
    row.best = tried[i].second;
    row.best_objective = outcome.objective;
  }
  return row;
}

GridSummary summary_of(const std::vector<GridRow>& rows) {
  GridSummary summary;
  std::vector<double> of_best;
  std::vector<double> throughput;
  std::vector<double> latency;
  double sum = 0;
  double squares = 0;
  summary.worst_of_best = 1e300;
  summary.worst_of_default = 1e300;
  for (const GridRow& row : rows) {
    of_best.push_back(row.of_best());
    throughput.push_back(row.throughput_error());
    latency.push_back(row.latency_error());
    summary.worst_of_best = std::min(summary.worst_of_best, row.of_best());
    summary.worst_of_default = std::min(summary.worst_of_default, row.of_default());
    const double gain = std::log(row.of_default());
    sum += gain;
    squares += gain * gain;
  }
  const double n = static_cast<double>(rows.size());
  const double deviation = std::sqrt(std::max(0.0, squares / n - sum / n * sum / n) / n);
  summary.median_of_best = median(of_best);
  summary.mean_gain = std::exp(sum / n);
  summary.mean_gain_low = std::exp(sum / n - 1.96 * deviation);
  summary.mean_gain_high = std::exp(sum / n + 1.96 * deviation);
  summary.median_throughput_error = median(throughput);
  summary.median_latency_error = median(latency);
  return summary;
}

std::string grid_table(const std::vector<GridRow>& rows) {
  const auto text = [](const Settings& s) {
    return fmt::format("{} {} {} {} {} {}", bytes_text(static_cast<double>(s.file_bytes_max)),
                       bytes_text(static_cast<double>(s.held_bytes_max)),
                       bytes_text(static_cast<double>(s.index_bytes_max)), s.visitors_max,
                       bytes_text(static_cast<double>(s.bucket_bytes_max)),
                       bytes_text(static_cast<double>(s.docblock_bytes)));
  };
  std::string table =
      "| workload | advice: file, held, index, visitors, bucket, docblock | best of the grid | of the best | of the "
      "defaults | operations/s: predicted, simulated | p99 ms: predicted, simulated |\n"
      "|---|---|---|---:|---:|---:|---:|\n";
  for (const GridRow& row : rows) {
    table +=
        fmt::format("| {} | {} | {} | {:.3f} | {:.2f} | {:.0f}, {:.0f} | {:.1f}, {:.1f} |\n", row.scenario.name,
                    text(row.advised), text(row.best), row.of_best(), row.of_default(), row.predicted.operations_per_s,
                    row.advised_outcome.operations_per_s, 1e3 * row.predicted.p99_s, 1e3 * row.advised_outcome.p99_s);
  }
  return table;
}

}  // namespace fjord::tuner::model
