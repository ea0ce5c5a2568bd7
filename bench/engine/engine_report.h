#pragma once

#include <string>
#include <vector>

#include "figures.h"

namespace fjord::bench {

struct ReportOptions {
  std::string subject;  ///< The engine whose figures the targets are about.
  std::vector<DocumentSize> sizes;
  std::vector<EngineConfiguration> engines;  ///< In the order of the columns.
};

enum class TableStyle : std::uint8_t { Text, Markdown };

/// Returns the report: for each document size a table of the figures and a table of the comparison with the targets.
/// Each figure is the median of the repetitions; if there are several, the smallest follows in brackets.
std::string make_report(const Figures& figures, const ReportOptions& options, TableStyle style);

/// Returns one line for each figure: size,engine,metric,unit,median,min,repetitions,ratio_to_fastest_other. The ratio
/// is empty if there is nothing to compare with; it is above 1 if the figure is better than the best of the other
/// families.
std::string make_csv(const Figures& figures, const ReportOptions& options);

}  // namespace fjord::bench
