#pragma once

#include <string>

#include "fjord/tuner/advisor.h"

namespace fjord::cli {

/// What `fjord tune advise` prints.
std::string tune_report_text(const tuner::Workload& workload, const tuner::Report& report);
std::string tune_report_json(const tuner::Workload& workload, const tuner::Report& report,
                             const std::vector<tuner::Input>& inputs);
/// Rates and shares that the advice is based on, and where each is from; a line each.
std::string inputs_text(const std::vector<tuner::Input>& inputs);
/// The same as an array.
std::string inputs_json(const std::vector<tuner::Input>& inputs);

}  // namespace fjord::cli
