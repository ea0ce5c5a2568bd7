#pragma once

#include <string>
#include <vector>

#include "administration.h"
#include "balance_answers.h"
#include "fjord/common/metrics.h"

namespace fjord::fleetcontroller {

/// Balances the storage nodes by load. In each round it collects the loads of buckets and plans a step with the
/// algorithm of `balancer.algorithm`. In mode `on` a new table of overrides carries the step out. A new leader begins
/// without knowledge, so it moves nothing before it has seen an imbalance itself. docs/design/0020-balancing-by-load.md
///
/// Threading: confined to the controller's executor.
class BalanceLoop {
 public:
  BalanceLoop(const FleetControllerOptions& options, const Clock& clock, MetricRegistry& metrics,
              rpc::Transport& transport, Executor& executor, Candidate& candidate, LeaderRecords& records,
              NodePoller& poller, Publisher& publisher, Administration& administration);

  /// Begins a round if one is due.
  void tick();
  void end_term();
  void handle(rpc::Balance request, rpc::Responder respond);

 private:
  void begin_round();
  void on_loads(std::uint64_t asking, std::uint16_t node, const Result<rpc::GetLoadsReply>& reply);
  void end_round();
  void make_round_model();
  void judge_round();
  void forget();

  void carry_out(const BalanceProposal& proposal);
  void take_back(std::uint64_t step);
  std::vector<std::string> reasons_against() const;
  /// Returns why a plan made on that state is outdated; OK if it is not.
  Status check_base(std::uint64_t state_version) const;

  void run_apply(const rpc::Balance& request, rpc::Responder respond);
  void run_revert(const rpc::Balance& request, rpc::Responder respond);
  /// Stores the table with the step. `respond` is called when it is stored or not.
  void save_step(OverrideTable table, BalanceStep step, rpc::BalanceReply reply, rpc::Responder respond);

  const SettingValues& config() const { return records_.cluster().config(); }

  const FleetControllerOptions& options_;
  const Clock& clock_;
  rpc::Transport& transport_;
  Executor& executor_;
  Candidate& candidate_;
  LeaderRecords& records_;
  NodePoller& poller_;
  Publisher& publisher_;
  Administration& administration_;
  Gauge& imbalance_percent_;
  Gauge& rows_;
  Counter& steps_;
  Counter& moves_;

  // The round that is being collected.
  std::uint64_t asking_ = 0;  ///< Number of the question; answers to an earlier one are dropped.
  bool is_asking_ = false;
  std::size_t missing_ = 0;
  std::vector<std::string> silent_;
  MonotonicTime next_at_;

  BalanceKnowledge known_;
  BalanceWatch watch_;
  BalanceAnswers answers_;
};

}  // namespace fjord::fleetcontroller
