#pragma once

#include <memory>

#include "job_steps.h"
#include "phase.h"

namespace fjord::mapreduce {

/// Makes the phase that does `step`, which is none of PassDone, KeepRows and Over. `is_taken_over`: another process ran
/// the job before, and this is the first step here. `outcome`: how the job ends if nothing else happens.
std::unique_ptr<Phase> make_phase(Step step, JobParts parts, bool is_taken_over, rpc::JobPhase outcome);

}  // namespace fjord::mapreduce
