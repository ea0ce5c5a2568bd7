#pragma once

#include <memory>
#include <string>

#include "administration.h"
#include "balance_loop.h"
#include "candidate.h"
#include "controller_settings.h"
#include "fjord/common/runtime.h"
#include "fjord/fleetcontroller/cluster_state_store.h"
#include "fjord/fleetcontroller/fleet_controller.h"
#include "fjord/rpc/transport.h"
#include "leader_records.h"
#include "node_poller.h"
#include "publisher.h"
#include "record_recovery.h"
#include "status_reports.h"

namespace fjord::fleetcontroller {

/// The implementation of FleetController: a candidate that leads while it is elected, with the parts of a leader.
///
/// A leader changes the cluster only by writing the record, one write at a time. Each part uses those declared above it
/// in this class; the events that go the other way end here.
///
/// Threading: confined to executor().
class Controller {
 public:
  Controller(const FleetControllerOptions& options, Runtime& runtime, rpc::Transport& transport,
             ClusterStateStore& store);
  ~Controller();

  void start();
  Executor& executor() { return *executor_; }
  void handle(rpc::Request request, rpc::Responder respond);
  /// Threading: any thread.
  FleetControllerHealth health() const { return candidate_.health(); }

 private:
  void tick();
  void on_term_ended();
  void on_records_loaded();
  /// Stops all publication, because nodes know more than the records.
  void strand(const std::string& why);

  const FleetControllerOptions options_;
  ClusterStateStore& store_;
  Gauge& leads_;
  std::unique_ptr<Executor> executor_;  // Ended first, because its tasks use the members below.

  Candidate candidate_;
  LeaderRecords records_;
  ControllerSettings settings_;
  NodePoller poller_;
  Publisher publisher_;
  StatusReports reports_;
  Administration administration_;
  BalanceLoop balance_;
  RecordRecovery recovery_;
};

}  // namespace fjord::fleetcontroller
