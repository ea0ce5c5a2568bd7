#pragma once

#include <string>

#include "fjord/library/tuning.h"

namespace fjord::cli {

/// Return the output of `fjord tune advise`.
std::string tune_report_text(const tuner::Workload& workload, const tuner::Report& report);
std::string tune_report_json(const tuner::Workload& workload, const tuner::Report& report,
                             const std::vector<tuner::Input>& inputs);
std::string plan_text(const TuningPlan& plan);
std::string plan_json(const TuningPlan& plan);
/// Returns the rates and shares that the advice is based on, each with its origin, one on each line.
std::string inputs_text(const std::vector<tuner::Input>& inputs);

}  // namespace fjord::cli
