#pragma once

#include <functional>
#include <string>

#include "leader_records.h"

namespace fjord::fleetcontroller {

/// Recovers the records of a leader from the knowledge of nodes, on an operator's request. The records are lost or
/// older than the knowledge of running nodes.
///
/// Threading: confined to the controller's executor.
class RecordRecovery {
 public:
  /// `strand(why)` ends all work with the present records; it is called before recovered ones are written.
  RecordRecovery(const FleetControllerOptions& options, const Clock& clock, rpc::Transport& transport,
                 Executor& executor, Candidate& candidate, LeaderRecords& records,
                 std::function<void(const std::string&)> strand);

  void recover(const rpc::RecoverState& request, rpc::Responder respond);

 private:
  /// Returns true if this leader is stranded or has no cluster state yet.
  bool has_no_records() const;
  std::map<std::string, rpc::Address> nodes_to_ask() const;
  void write(RecoveredRecords recovered, rpc::Responder respond);

  const FleetControllerOptions& options_;
  const Clock& clock_;
  rpc::Transport& transport_;
  Executor& executor_;
  Candidate& candidate_;
  LeaderRecords& records_;
  std::function<void(const std::string&)> strand_;
};

}  // namespace fjord::fleetcontroller
