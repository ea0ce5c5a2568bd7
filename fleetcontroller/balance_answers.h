#pragma once

#include <string>

#include "balance_knowledge.h"
#include "publisher.h"

namespace fjord::fleetcontroller {

/// Answers about balancing by load. A view of the loop's knowledge and the leader's records.
///
/// Threading: confined to the controller's executor.
class BalanceAnswers {
 public:
  BalanceAnswers(const FleetControllerOptions& options, const Clock& clock, const LeaderRecords& records,
                 const Publisher& publisher, const BalanceKnowledge& known)
      : options_(options), clock_(clock), records_(records), publisher_(publisher), known_(known) {}

  /// Returns the status; for the actions Slices and History with all buckets or all steps.
  rpc::BalanceReply status(const rpc::Balance& request) const;
  rpc::BalanceReply plan(const rpc::Balance& request) const;
  /// `reason`: why its moves are made; empty: the reasons of its algorithm.
  rpc::BalancePlan plan_message(const BalanceProposal& proposal, const std::string& reason = {}) const;

 private:
  const SettingValues& config() const { return records_.cluster().config(); }
  std::string doing() const;
  BalanceProposal propose_initial(const rpc::Balance& request, const balancer::BalancingAlgorithm& algorithm) const;

  const FleetControllerOptions& options_;
  const Clock& clock_;
  const LeaderRecords& records_;
  const Publisher& publisher_;
  const BalanceKnowledge& known_;
};

}  // namespace fjord::fleetcontroller
