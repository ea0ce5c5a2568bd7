#include "engine_report.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

namespace fjord::bench {
namespace {

constexpr double kMega = 1e6;

using Row = std::vector<std::string>;

std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::DocumentsPerSecond:
      return "docs/s";
    case Unit::MegabytesPerSecond:
      return "MB/s";
    case Unit::Milliseconds:
      return "ms";
    case Unit::Seconds:
      return "s";
    case Unit::Ratio:
      return "x";
    case Unit::Microseconds:
      return "us";
    case Unit::Mebibytes:
      return "MiB";
  }
  return "";
}

/// Returns the value with three significant digits and separated thousands.
std::string format_value(double value) {
  if (value >= 1000) {
    std::string digits = fmt::format("{:.0f}", value);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
      digits.insert(static_cast<std::size_t>(at), ",");
    }
    return digits;
  }
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

double minimum(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

class Reporter {
 public:
  Reporter(const Figures& figures, const ReportOptions& options, DocumentSize size)
      : figures_(figures), options_(options), size_(size) {
    if (figures.has(size, std::string(kPlainFile))) columns_.emplace_back(kPlainFile);
    for (const EngineConfiguration& engine : options.engines) {
      if (figures.has(size, engine.name)) columns_.push_back(engine.name);
      families_[engine.name] = engine.family;
    }
  }

  const std::vector<std::string>& columns() const { return columns_; }

  std::optional<double> value(const std::string& engine, Metric metric) const {
    const std::vector<double>* values = figures_.values(size_, engine, metric);
    if (values == nullptr) return std::nullopt;
    return median(*values);
  }

  struct Best {
    std::string engine;
    double value = 0;
  };
  /// Returns the best value of the engines outside of the family of `not_of`, or of all engines if `not_of` is null.
  std::optional<Best> best(Metric metric, const std::string* not_of) const {
    std::optional<Best> found;
    const bool more = info_of(metric).more_is_better;
    for (const std::string& engine : columns_) {
      if (engine == kPlainFile) continue;
      if (not_of != nullptr && families_.at(engine) == families_.at(*not_of)) continue;
      const std::optional<double> candidate = value(engine, metric);
      if (!candidate) continue;
      if (!found || (more ? *candidate > found->value : *candidate < found->value)) found = Best{engine, *candidate};
    }
    return found;
  }
  /// Returns the ratio of the engine's value to the best of the other families; above 1: the engine is better.
  std::optional<double> ratio(const std::string& engine, Metric metric) const {
    if (engine == kPlainFile) return std::nullopt;
    const std::optional<double> own = value(engine, metric);
    const std::optional<Best> other = best(metric, &engine);
    if (!own || !other || *own == 0 || other->value == 0) return std::nullopt;
    return info_of(metric).more_is_better ? *own / other->value : other->value / *own;
  }

  std::string cell(const std::string& engine, Metric metric) const {
    const std::vector<double>* values = figures_.values(size_, engine, metric);
    if (values == nullptr) return "";
    std::string text = format_value(shown(metric, median(*values)));
    if (values->size() > 1) text += fmt::format(" ({})", format_value(shown(metric, minimum(*values))));
    return text;
  }

  /// Returns the value in its table unit; rates of large documents are shown in MB/s.
  double shown(Metric metric, double value) const {
    if (unit(metric) == info_of(metric).unit) return value;
    return value * static_cast<double>(figures_.document_bytes(size_)) / kMega;
  }
  Unit unit(Metric metric) const {
    const Unit own = info_of(metric).unit;
    return own == Unit::DocumentsPerSecond && size_ == DocumentSize::Large ? Unit::MegabytesPerSecond : own;
  }

  std::vector<Row> figures_table() const {
    std::vector<Row> rows = {{"", "unit"}};
    rows[0].insert(rows[0].end(), columns_.begin(), columns_.end());
    if (has_subject()) rows[0].push_back(options_.subject + " / best other");
    for (const MetricInfo& metric : metric_infos()) {
      Row row = {std::string(metric.name), std::string(unit_name(unit(metric.metric)))};
      bool any = false;
      for (const std::string& engine : columns_) {
        row.push_back(cell(engine, metric.metric));
        any = any || !row.back().empty();
      }
      if (has_subject()) {
        const std::optional<double> own = ratio(options_.subject, metric.metric);
        row.push_back(own ? fmt::format("{:.2f}", *own) : "");
      }
      if (any) rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<Row> targets_table() const {
    std::vector<Row> rows = {{"target", options_.subject, "compared with", "ratio", "wanted", "reached"}};
    if (!has_subject()) return {};
    for (const Metric metric : {Metric::PutProcess, Metric::PutSync})
      add_against_best(rows, metric, metric, 1.0, false);
    for (const Metric metric : {Metric::GetHot, Metric::GetHotReopened, Metric::GetCold}) {
      add_against_best(rows, metric, metric, 0.8, false);
    }
    for (const Metric metric : {Metric::IterateHot, Metric::IterateHotReopened, Metric::IterateCold}) {
      add_against_best(rows, metric, metric, 1.0, false);
    }
    if (const std::optional<double> plain = value(std::string(kPlainFile), Metric::IterateCold)) {
      add(rows, Metric::IterateCold, Metric::IterateCold, Best{"plain sequential read", *plain}, 0.7);
    }
    add_against_best(rows, Metric::SelectHot, Metric::IterateHot, 3.0, true);
    add_against_best(rows, Metric::SelectHotReopened, Metric::IterateHotReopened, 3.0, true);
    add_against_best(rows, Metric::SelectCold, Metric::IterateCold, 3.0, true);
    for (const Metric metric : {Metric::SpaceAfterPut, Metric::SpaceAfterOverwrite}) {
      const std::optional<double> space = value(options_.subject, metric);
      if (!space) continue;
      rows.push_back({std::string(info_of(metric).name), fmt::format("{:.3f}", *space), "bytes of the documents",
                      fmt::format("{:.3f}", *space), "at most 1.15", *space <= 1.15 ? "yes" : "NO"});
    }
    return rows;
  }

 private:
  bool has_subject() const { return figures_.has(size_, options_.subject); }

  void add_against_best(std::vector<Row>& rows, Metric own, Metric others, double wanted, bool of_all) const {
    if (const std::optional<Best> other = best(others, of_all ? nullptr : &options_.subject)) {
      add(rows, own, others, *other, wanted);
    }
  }

  void add(std::vector<Row>& rows, Metric own, Metric others, const Best& other, double wanted) const {
    const std::optional<double> mine = value(options_.subject, own);
    if (!mine || other.value == 0) return;
    const double ratio = *mine / other.value;
    std::string with = fmt::format("{}: {}", other.engine, format_value(shown(others, other.value)));
    if (own != others) with += fmt::format(" ({})", info_of(others).name);
    rows.push_back({std::string(info_of(own).name), format_value(shown(own, *mine)), with, fmt::format("{:.2f}", ratio),
                    fmt::format("at least {}", wanted), ratio >= wanted ? "yes" : "NO"});
  }

  const Figures& figures_;
  const ReportOptions& options_;
  DocumentSize size_;
  std::vector<std::string> columns_;
  std::map<std::string, std::string> families_;
};

std::string render(const std::vector<Row>& rows, TableStyle style) {
  if (rows.empty()) return "";
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      if (style == TableStyle::Markdown) {
        line += fmt::format("| {} ", rows[r][i]);
      } else {
        line += i == 0 ? fmt::format("{:<{}}", rows[r][i], widths[i]) : fmt::format("  {:>{}}", rows[r][i], widths[i]);
      }
    }
    if (style == TableStyle::Markdown) line += '|';
    text += line + '\n';
    if (r == 0 && style == TableStyle::Markdown) {
      text += "|---|";
      for (std::size_t i = 1; i < rows[r].size(); ++i) text += "---:|";
      text += '\n';
    }
  }
  return text;
}

}  // namespace

std::string make_report(const Figures& figures, const ReportOptions& options, TableStyle style) {
  std::string text;
  for (const DocumentSize size : options.sizes) {
    const Reporter reporter(figures, options, size);
    if (reporter.columns().empty()) continue;
    const std::string title = fmt::format("Documents of {} bytes", figures.document_bytes(size));
    text += style == TableStyle::Markdown ? fmt::format("\n### {}\n\n", title) : fmt::format("\n{}\n\n", title);
    text += render(reporter.figures_table(), style);
    if (const std::string targets = render(reporter.targets_table(), style); !targets.empty()) text += '\n' + targets;
  }
  return text;
}

std::string make_csv(const Figures& figures, const ReportOptions& options) {
  std::string text = "size,engine,metric,unit,median,min,repetitions,ratio_to_fastest_other\n";
  for (const DocumentSize size : options.sizes) {
    const Reporter reporter(figures, options, size);
    for (const std::string& engine : reporter.columns()) {
      for (const MetricInfo& metric : metric_infos()) {
        const std::vector<double>* values = figures.values(size, engine, metric.metric);
        if (values == nullptr) continue;
        const std::optional<double> ratio = reporter.ratio(engine, metric.metric);
        text += fmt::format("{},{},\"{}\",{},{:.6g},{:.6g},{},{}\n", to_string(size), engine, metric.name,
                            unit_name(reporter.unit(metric.metric)), reporter.shown(metric.metric, median(*values)),
                            reporter.shown(metric.metric, minimum(*values)), values->size(),
                            ratio ? fmt::format("{:.3f}", *ratio) : "");
      }
    }
  }
  return text;
}

}  // namespace fjord::bench
