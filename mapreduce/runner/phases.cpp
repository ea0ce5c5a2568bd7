#include "phases.h"

#include <optional>
#include <utility>

#include "clean_up_phase.h"
#include "direct_phases.h"
#include "fjord/common/check.h"
#include "map_phase.h"
#include "put_phases.h"
#include "reduce_phase.h"

namespace fjord::mapreduce {

std::unique_ptr<Phase> make_phase(Step step, JobParts parts, bool is_taken_over, rpc::JobPhase outcome) {
  switch (step) {
    case Step::Map: {
      std::optional<visitors::SessionCursor> resume;
      if (!parts.job.resume.empty()) resume = std::move(*visitors::SessionCursor::parse(parts.job.resume));
      return std::make_unique<MapPhase>(std::move(parts), std::move(resume));
    }
    case Step::DirectMap:
      return std::make_unique<DirectMapPhase>(std::move(parts));
    case Step::DirectReduce:
      return std::make_unique<DirectReducePhase>(std::move(parts));
    case Step::Reduce:
      return std::make_unique<ReducePhase>(std::move(parts));
    case Step::Pages:
      return std::make_unique<PagesPhase>(std::move(parts));
    case Step::Put:
      return std::make_unique<PutPhase>(std::move(parts));
    case Step::MoveOutput:
      return std::make_unique<MoveOutputPhase>(std::move(parts));
    case Step::CleanUp: {
      const bool has_kept_rows = outcome == rpc::JobPhase::Done && parts.job.shuffle == rpc::Shuffle::Direct;
      return std::make_unique<CleanUpPhase>(std::move(parts), is_taken_over && has_kept_rows);
    }
    case Step::PassDone:
    case Step::KeepRows:
    case Step::Over:
      break;
  }
  FJORD_CHECK(false);
  return nullptr;
}

}  // namespace fjord::mapreduce
