#include "job_steps.h"

namespace fjord::mapreduce {
namespace {

Step after_reduce(const PassShape& shape) {
  if (!shape.puts_rows) return Step::PassDone;
  if (shape.is_direct || shape.is_limited) return Step::Pages;
  return shape.puts_documents ? Step::Put : Step::PassDone;
}

Step after_pass(const PassShape& shape) {
  if (!shape.is_last) return first_step(shape);
  if (!shape.has_output) return Step::Over;
  return shape.keeps_rows ? Step::KeepRows : Step::CleanUp;
}

}  // namespace

Step next_step(Step step, StepEvent event, const PassShape& shape) {
  if (event == StepEvent::TooLarge) return Step::Map;
  if (event == StepEvent::Restart) return first_step(shape);
  if (event == StepEvent::Move) return Step::MoveOutput;
  if (event == StepEvent::Abort) return shape.has_output ? Step::CleanUp : Step::Over;
  switch (step) {
    case Step::Map:
      return Step::Reduce;
    case Step::DirectMap:
      return Step::DirectReduce;
    case Step::Reduce:
    case Step::DirectReduce:
      return after_reduce(shape);
    case Step::Pages:
      return shape.puts_documents ? Step::Put : Step::PassDone;
    case Step::Put:
      return Step::PassDone;
    case Step::PassDone:
      return after_pass(shape);
    case Step::KeepRows:
      return Step::CleanUp;
    case Step::MoveOutput:
      return first_step(shape);
    case Step::CleanUp:
    case Step::Over:
      break;
  }
  return Step::Over;
}

std::optional<Step> continued_step(const JobState& job, unsigned bits) {
  if (job.output_buckets == 0) return std::nullopt;
  if (job.phase == rpc::JobPhase::CleanUp && job.outcome != rpc::JobPhase::Unknown) return Step::CleanUp;
  if (job.phase == rpc::JobPhase::Put) return Step::Put;
  const bool fits =
      job.shuffle == rpc::Shuffle::Store && job.bits == bits && job.expected_documents.size() == job.output_buckets;
  if (!fits) return std::nullopt;
  if (job.phase == rpc::JobPhase::Reduce) return Step::Reduce;
  const bool has_cursor = !job.resume.empty() || job.counts.map_tasks_done == 0;
  if (job.phase == rpc::JobPhase::Map && has_cursor) return Step::Map;
  return std::nullopt;
}

rpc::JobPhase phase_of(Step step, rpc::JobPhase before) {
  switch (step) {
    case Step::Map:
    case Step::DirectMap:
      return rpc::JobPhase::Map;
    case Step::Reduce:
    case Step::DirectReduce:
      return rpc::JobPhase::Reduce;
    case Step::Put:
      return rpc::JobPhase::Put;
    case Step::CleanUp:
      return rpc::JobPhase::CleanUp;
    case Step::Pages:
    case Step::PassDone:
    case Step::KeepRows:
    case Step::MoveOutput:
    case Step::Over:
      break;
  }
  return before;
}

bool is_recorded_first(Step step) {
  return step == Step::Map || step == Step::Reduce || step == Step::Pages || step == Step::Put || step == Step::CleanUp;
}

}  // namespace fjord::mapreduce
