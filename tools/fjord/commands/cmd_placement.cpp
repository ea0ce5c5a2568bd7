#include <cstdio>
#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/cluster/placement_comparison.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

struct Row {
  std::string name;
  ComparisonResult result;
};

/// Draws the plot with Matplotlib. The rows are JSON in the program text, so that no shell quoting is needed.
constexpr std::string_view kPlotProgram = R"(
import json, sys
try:
    import matplotlib
except ImportError:
    sys.exit("plotting needs python3-matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt
rows = data["rows"]
names = [row["algorithm"] for row in rows]
figure, axes = plt.subplots(1, 3, figsize=(15, 4.5))
panels = [("max_over_mean", "fullest node, times the mean", "linear"),
          ("moved_over_least", "moved replicas, times the least possible", "symlog"),
          ("map_ns", "nanoseconds a mapping", "log")]
for axis, (key, label, scale) in zip(axes, panels):
    axis.bar(names, [row[key] for row in rows], color="tab:blue")
    axis.set(ylabel=label, yscale=scale)
    axis.tick_params(axis="x", labelrotation=60)
low = min(row["max_over_mean"] for row in rows)
axes[0].set_ylim(max(0, 2 * low - max(row["max_over_mean"] for row in rows)), None)
axes[1].axhline(1, color="black", linewidth=0.8)
figure.suptitle(data["title"])
figure.tight_layout()
try:
    figure.savefig(data["file"], dpi=110, format="png")
except OSError as error:
    sys.exit(str(error))
)";

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
  std::FILE* const pipe = popen("/usr/bin/python3 -", "w");
  if (pipe == nullptr) return report({StatusCode::IoError, "/usr/bin/python3 cannot be started"});
  // A JSON string is also a valid Python string literal.
  JsonText quoted;
  quoted.text(data.str());
  fmt::print(pipe, "import json\ndata = json.loads({})\n{}", quoted.str(), kPlotProgram);
  if (pclose(pipe) != 0) {
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
