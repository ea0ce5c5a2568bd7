#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/bench/placement_comparison.h"
#include "fjord/plugins/child_process.h"
#include "output/json_text.h"
#include "output/python.h"

namespace fjord::cli {
namespace {

struct Row {
  std::string name;
  ComparisonResult result;
};

std::string rows_json(const std::vector<Row>& rows) {
  JsonText json;
  json.begin_array();
  for (const Row& row : rows) {
    const ComparisonResult& result = row.result;
    json.begin_object().key("algorithm").text(row.name);
    json.key("max_over_mean").real(result.max_over_mean, 4).key("stddev").real(result.stddev, 4);
    json.key("max_over_mean_after").real(result.max_over_mean_after, 4);
    json.key("moved_share").real(result.moved_share, 6).key("least_share").real(result.least_share, 6);
    json.key("moved_over_least").real(result.moved_over_least(), 3);
    json.key("map_ns").real(result.map_ns, 1).key("prepare_us").real(result.prepare_us, 0).end_object();
  }
  json.end_array();
  return json.str();
}

std::string title_of(const PlacementArgs& args) {
  return fmt::format("{} nodes in {} group{}, {} buckets, {} replicas, {}", args.nodes, args.groups,
                     args.groups == 1 ? "" : "s", args.buckets, args.replicas, args.change);
}

int plot(const PlacementArgs& args, const std::vector<Row>& rows) {
  JsonText data;
  data.begin_object().key("title").text(title_of(args)).key("file").text(args.plot).key("rows").raw(rows_json(rows));
  data.end_object();
  // The rows are JSON in an argument, so that they need no quoting.
  if (run_python({ChildProcess::beside_this_program("fjord-plot-placement.py"), data.str()}, false) != 0) {
    complain(fmt::format("the plot {} was not made", args.plot));
    return kFailed;
  }
  return kOk;
}

void print_table(const PlacementArgs& args, const std::vector<Row>& rows) {
  print_line(title_of(args));
  print_line(fmt::format("{:<14} {:>8} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9}", "algorithm", "max/mean", "stddev",
                         "then max", "moved %", "least %", "times", "ns"));
  for (const Row& row : rows) {
    const ComparisonResult& result = row.result;
    print_line(fmt::format("{:<14} {:>8.3f} {:>8.4f} {:>10.3f} {:>9.3f} {:>9.3f} {:>9.2f} {:>9.0f}", row.name,
                           result.max_over_mean, result.stddev, result.max_over_mean_after, result.moved_share * 100,
                           result.least_share * 100, result.moved_over_least(), result.map_ns));
  }
}

}  // namespace

int run_placement_compare(const PlacementArgs& args) {
  const auto change = cluster_change_of(args.change);
  if (!change) return report(change.error());
  const CpuClock clock;
  std::vector<Row> rows;
  for (const PlacementKind kind : kPlacementKinds) {
    PlacementSettings settings;
    settings.levels = {kind};
    if (kind == PlacementKind::Consistent) settings.tokens_per_node = args.tokens;
    const ComparisonOptions options{args.nodes, args.groups, args.buckets, args.replicas, *change};
    const auto result = compare_placement(settings, options, clock);
    if (!result) return report(result.error());
    rows.push_back({std::string(to_string(kind)), *result});
  }
  if (args.json()) {
    print_line(rows_json(rows));
  } else {
    print_table(args, rows);
  }
  return args.plot.empty() ? kOk : plot(args, rows);
}

}  // namespace fjord::cli
