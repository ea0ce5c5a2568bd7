#include "fjord/sim/scenarios.h"

namespace fjord::sim {
ScenarioResult run_job(const ScenarioOptions&) { return {}; }
}
