#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "inquiry.h"
#include "publisher.h"

namespace fjord::fleetcontroller {

/// Carries out the changes that operators request, one after another: of nodes, of the configuration, of the schemas.
/// Some changes are decided after nodes were asked.
///
/// Threading: confined to the controller's executor.
class Administration {
 public:
  Administration(const FleetControllerOptions& options, const Clock& clock, rpc::Transport& transport,
                 Executor& executor, Candidate& candidate, LeaderRecords& records, const ControllerSettings& settings,
                 NodePoller& poller, Publisher& publisher);

  void deploy_schemas(rpc::DeploySchemas request, rpc::Responder respond);
  void change_config(rpc::ChangeConfig request, rpc::Responder respond);
  void change_nodes(rpc::ChangeNodes request, rpc::Responder respond);
  using Run = std::function<void(rpc::Request, rpc::Responder)>;
  /// Queues `run`; it is called when no other change is being written. It responds, and may begin to write the record.
  void enqueue(rpc::Request request, rpc::Responder respond, Run run);
  /// Runs the next change, or publishes what has changed meanwhile, unless a write is in flight.
  void run_next();
  /// Answers all waiting changes with the reason why this controller does not lead.
  void refuse_all();

 private:
  struct Change {
    rpc::Request request;
    rpc::Responder respond;
    Run run;
  };
  /// The answers of nodes that were asked about a change; they become parts of ClusterFacts.
  struct Answers {
    std::vector<std::uint64_t> bucket_bytes = {};
    std::vector<std::string> objections = {};
    std::string asked_as = {};
  };

  void ask_nodes_first(rpc::ChangeNodes request, rpc::Responder respond);
  void ask_sizes_first(rpc::ChangeNodes request, rpc::Responder respond);
  void enqueue_with(Answers answers, rpc::ChangeNodes request, rpc::Responder respond);
  Inquiry inquiry_for(const rpc::ChangeNodes& request) const;

  void run_schemas(const rpc::DeploySchemas& request, rpc::Responder respond);
  void run_config(const rpc::ChangeConfig& request, rpc::Responder respond);
  void run_nodes(const rpc::ChangeNodes& request, const ClusterFacts& known, rpc::Responder respond);

  const FleetControllerOptions& options_;
  const Clock& clock_;
  rpc::Transport& transport_;
  Executor& executor_;
  Candidate& candidate_;
  LeaderRecords& records_;
  const ControllerSettings& settings_;
  NodePoller& poller_;
  Publisher& publisher_;
  std::deque<Change> changes_;
};

}  // namespace fjord::fleetcontroller
