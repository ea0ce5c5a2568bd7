#pragma once

#include <string>
#include <vector>

#include "figures.h"

namespace fjord::bench {

struct ReportOptions {
  std::string subject;  ///< The engine that the targets are for.
  std::vector<DocumentSize> sizes;
  std::vector<EngineConfiguration> engines;  ///< In the order of the columns.
};

enum class TableStyle : std::uint8_t { Text, Markdown };

/// What was measured and how it compares with the targets: for each size a table of the figures, one of the targets.
/// Each figure is the median of the repetitions, with the least of them in brackets if there are several.
std::string make_report(const Figures& figures, const ReportOptions& options, TableStyle style);

/// One line for each figure: size,engine,metric,unit,median,min,repetitions,ratio_to_fastest_other. The last is empty
/// where nothing is to be compared; it is above 1 for what is better than the best of the other families.
std::string make_csv(const Figures& figures, const ReportOptions& options);

}  // namespace fjord::bench
