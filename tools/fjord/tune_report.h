#pragma once

#include <string>

#include "fjord/tuner/advisor.h"

namespace fjord::cli {

/// What `fjord tune advise` prints.
std::string tune_report_text(const tuner::Workload& workload, const tuner::Report& report);
std::string tune_report_json(const tuner::Workload& workload, const tuner::Report& report);

}  // namespace fjord::cli
