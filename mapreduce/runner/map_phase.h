#pragma once

#include <optional>

#include "fjord/visitors/visitor_session.h"
#include "phase.h"
#include "task/task.h"

namespace fjord::mapreduce {

/// Map through the store: one task per input bucket puts tuple documents.
class MapPhase final : public Phase {
 public:
  /// `resume`: cursor of the buckets that are mapped already.
  MapPhase(JobParts parts, std::optional<visitors::SessionCursor> resume)
      : parts_(std::move(parts)), resume_(std::move(resume)) {}

  void start() override;
  void stop() override;
  std::string cursor() const override;

 private:
  Status on_task(BucketId bucket, const TaskReport& report);
  void on_ended();

  JobParts parts_;
  std::optional<visitors::SessionCursor> resume_;
  bool is_running_ = false;
};

/// Returns the options of a visit whose tasks map the input of the pass.
visitors::VisitorSessionOptions map_options(const JobParts& parts);

}  // namespace fjord::mapreduce
