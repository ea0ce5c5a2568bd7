#include "tuning_metrics.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/tuner/cost_model.h"

namespace fjord {
namespace {

/// Bytes of an index for each entry of a slotfile; measured in docs/experiments.
constexpr double kIndexBytesOfEntry = 60;
constexpr const char* kOperations = "fjord_distributor_operations_total";

/// The activity of one node between two of its metric pages.
class NodePeriod {
 public:
  NodePeriod(const MetricPage& before, const MetricPage& after) : before_(before), after_(after) {}

  double rise(std::string_view name, const Labels& labels = {}) const {
    return counter_increase(before_, after_, name, labels).value_or(0);
  }
  double now(std::string_view name) const { return after_.sum(name).value_or(0); }
  double least(std::string_view name) const { return std::min(before_.sum(name).value_or(0), now(name)); }
  HistogramPeriod histogram(std::string_view name) const { return HistogramPeriod::between(before_, after_, name); }
  bool has(std::string_view name) const { return after_.sum(name).has_value(); }
  /// Returns the cost of puts for each class of slotfiles that was written to.
  std::vector<tuner::PutCost> put_costs() const {
    std::vector<tuner::PutCost> costs;
    const auto [begin, end] = after_.range("fjord_slotfile_sampled_puts_total");
    for (auto at = begin; at != end; ++at) {
      const double puts = rise(at->name, at->labels);
      if (puts <= 0) continue;
      costs.push_back({.puts = puts,
                       .entries = rise("fjord_slotfile_sampled_put_entries_total", at->labels) / puts,
                       .put_s = 1e-6 * rise("fjord_slotfile_sampled_put_us_total", at->labels) / puts,
                       .search_s = 1e-6 * rise("fjord_slotfile_sampled_put_search_us_total", at->labels) / puts});
    }
    return costs;
  }

 private:
  const MetricPage& before_;
  const MetricPage& after_;
};

/// Adds counts, which figures_between() turns into rates.
void add_distributor(const NodePeriod& node, tuner::PeriodFigures& sum, HistogramPeriod& times) {
  sum.reads_per_s += node.rise(kOperations, {{"operation", "get"}, {"outcome", "applied"}});
  for (const char* operation : {"put", "update", "remove"}) {
    sum.writes_per_s += node.rise(kOperations, {{"operation", operation}, {"outcome", "applied"}});
  }
  // A failed condition is a regular answer, so it counts as a write and not as a failure.
  const double conditions = node.rise("fjord_distributor_not_applied_total", {{"reason", "TEST_AND_SET_FAILED"}});
  sum.writes_per_s += conditions;
  sum.failed_per_s += node.rise(kOperations, {{"outcome", "not_applied"}}) - conditions;
  sum.failed_per_s += node.rise(kOperations, {{"outcome", "in_doubt"}}) + node.rise("fjord_distributor_refused_total");
  sum.pending += node.now("fjord_distributor_pending_operations");
  times.add(node.histogram("fjord_distributor_operation_seconds"));
}

void add_storage(const NodePeriod& node, tuner::PeriodFigures& sum) {
  sum.node_operations_per_s += node.rise("fjord_storage_operations_total");
  sum.docblocks_per_s += node.rise("fjord_visitor_docblocks_total");
  sum.scan_bytes_per_s += node.rise("fjord_visitor_docblock_bytes_total");
  sum.visitors_running += node.least("fjord_visitor_running");
  sum.visitors_queued += node.now("fjord_visitor_queued");
  sum.throttled_share += node.rise("fjord_storage_maintenance_throttled_ms_total") / 1000;
  sum.resident_bytes = std::max(sum.resident_bytes, node.now("fjord_process_resident_bytes"));
  const double used = node.now("fjord_storage_space_used_bytes");
  const double all = used + node.now("fjord_storage_space_free_bytes");
  if (all > 0) sum.fullest_used_share = std::max(sum.fullest_used_share, used / all);
}

/// Adds waits in seconds, which figures_between() turns into shares.
void add_caches(const NodePeriod& node, tuner::PeriodFigures& sum) {
  sum.index_wait_share += 1e-6 * node.rise("fjord_slotfile_index_wait_us");
  sum.document_wait_share += 1e-6 * node.rise("fjord_slotfile_document_wait_us");
  sum.index_bytes_all = std::max(sum.index_bytes_all, kIndexBytesOfEntry * node.now("fjord_slotfile_entries"));
  const double available = node.now("fjord_machine_memory_available_bytes");
  if (available <= 0) return;
  const double cache = available + node.now("fjord_slotfile_index_bytes");
  sum.cache_bytes = sum.cache_bytes <= 0 ? cache : std::min(sum.cache_bytes, cache);
  sum.memory_available_bytes =
      sum.memory_available_bytes <= 0 ? available : std::min(sum.memory_available_bytes, available);
}

/// Docblocks per second of all nodes together; a smaller rate does not come from users' visits.
constexpr double kDocblocksOfVisits = 4;

/// Returns the share of visits in the stripe time of operations and visits.
double share_of_visits(const tuner::PeriodFigures& figures, const tuner::HardwareProfile& profile,
                       const tuner::Workload& workload) {
  // Distributors visit the job records every few seconds, so docblocks are read without any user's visit.
  if (figures.docblocks_per_s < kDocblocksOfVisits) return 0;
  const tuner::StripeTimes times = tuner::stripe_times(workload, profile, workload.current);
  const double visits = figures.docblocks_per_s * times.docblock_s;
  const double operations = figures.node_operations_per_s * times.operation_s;
  return visits + operations > 0 ? visits / (visits + operations) : 0;
}

}  // namespace

ClusterReading read_cluster(const std::vector<std::string>& addresses) {
  const MonotonicTime at = SystemClock().now();
  return {at, scrape(addresses)};
}

tuner::PeriodFigures figures_between(const ClusterReading& before, const ClusterReading& after) {
  tuner::PeriodFigures figures;
  HistogramPeriod times;
  figures.seconds = std::max(1e-3, std::chrono::duration<double>(after.at - before.at).count());
  for (std::size_t i = 0; i < std::min(before.pages.size(), after.pages.size()); ++i) {
    if (!before.pages[i] || !after.pages[i]) {
      ++figures.nodes_silent;
      continue;
    }
    ++figures.nodes_read;
    const NodePeriod node(*before.pages[i], *after.pages[i]);
    if (node.has("fjord_distributor_pending_operations")) add_distributor(node, figures, times);
    if (node.has("fjord_visitor_running")) add_storage(node, figures);
    if (!node.has("fjord_slotfile_sampled_puts_total")) continue;
    add_caches(node, figures);
    figures.puts.push_back({.node = i, .costs = node.put_costs()});
  }
  const double nodes_time = figures.seconds * static_cast<double>(std::max<std::size_t>(1, figures.puts.size()));
  figures.index_wait_share /= nodes_time;
  figures.document_wait_share /= nodes_time;
  figures.operations = figures.reads_per_s + figures.writes_per_s + figures.failed_per_s;
  for (double* rate :
       {&figures.reads_per_s, &figures.writes_per_s, &figures.failed_per_s, &figures.node_operations_per_s,
        &figures.docblocks_per_s, &figures.scan_bytes_per_s, &figures.throttled_share}) {
    *rate = std::max(0.0, *rate / figures.seconds);
  }
  figures.p99_s = times.quantile(0.99);
  figures.mean_s = times.mean();
  return figures;
}

std::map<std::string, std::int64_t, std::less<>> settings_in_use(const ClusterReading& reading) {
  std::map<std::string, std::int64_t, std::less<>> values;
  for (const Result<MetricPage>& page : reading.pages) {
    if (!page) continue;
    const auto [begin, end] = page->range("fjord_setting_value");
    for (auto at = begin; at != end; ++at) {
      const auto name = at->labels.find("setting");
      if (name == at->labels.end()) continue;
      const auto value = static_cast<std::int64_t>(at->value);
      const auto [known, is_new] = values.emplace(name->second, value);
      if (!is_new) known->second = std::min(known->second, value);
    }
  }
  return values;
}

std::vector<tuner::Input> take_figures(const tuner::PeriodFigures& figures, bool has_file,
                                       const tuner::HardwareProfile& profile, tuner::Workload& workload) {
  std::vector<tuner::Input> inputs = inputs_not_measured(has_file, workload);
  const std::string origin = fmt::format("measured for {:.0f} s on {} of {} nodes", figures.seconds, figures.nodes_read,
                                         figures.nodes_read + figures.nodes_silent);
  const auto measured = [&](std::string_view name, double& field, double value) {
    field = value;
    const auto input = std::find_if(inputs.begin(), inputs.end(), [&](const auto& one) { return one.name == name; });
    input->value = value;
    input->origin = origin;
  };
  if (figures.operations_per_s() > 0) {
    measured("reads_per_s", workload.reads_per_s, figures.reads_per_s);
    measured("writes_per_s", workload.writes_per_s, figures.writes_per_s);
  }
  const double visits = share_of_visits(figures, profile, workload);
  // A period without visits does not mean that visits are unimportant.
  if (!has_file && visits > 0) measured("scan_share", workload.scan_share, std::clamp(visits, 0.01, 0.95));
  inputs.push_back({"visits_of_stripe_time", visits, "", origin});
  inputs.push_back({"scan_bytes_per_s", figures.scan_bytes_per_s, "bytes/s", origin});
  inputs.push_back({"resident_bytes_max", figures.resident_bytes, "bytes", origin});
  if (figures.p99_s) inputs.push_back({"p99_s", *figures.p99_s, "s", origin});
  return inputs;
}

std::vector<tuner::Input> inputs_not_measured(bool has_file, const tuner::Workload& workload) {
  const std::string origin = has_file ? "workload file" : "assumed";
  return {{"reads_per_s", workload.reads_per_s, "1/s", origin},
          {"writes_per_s", workload.writes_per_s, "1/s", origin},
          {"scan_share", workload.scan_share, "", origin},
          {"latency_target_s", workload.latency_target_s, "s", origin}};
}

}  // namespace fjord
