#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "acknowledged.h"
#include "claim_trial.h"
#include "fjord/sim/coverage.h"
#include "fjord/sim/sim_transport.h"
#include "outage_checker.h"

namespace fjord::sim {

/// Checks that what Fjord says of itself is so (I25). It sees the messages that `fjord status` is made of. At moments
/// that the seed decides, once the cluster says that all of its buckets are in sync, it makes a copy of the cluster and
/// does there what this permits (ClaimTrial).
///
/// The run itself goes on as if the checker were not there: the checker draws from generators of its own, and only its
/// own events are added. Threading: the scheduler's. Lifetime: outlives the cluster that it watches.
class ClaimChecker final : public NetworkObserver {
 public:
  /// `choice` is ScenarioOptions::claims.
  ClaimChecker(std::uint64_t seed, const std::string& choice);

  SeeReply see_request(const std::string& from, const std::string& to, const rpc::Request& request) override;

  /// Starts to record what the processes of the cluster say. Called before the cluster starts.
  void observe(SimCluster& cluster);
  /// Draws a moment of the next `span`, and looks from then on until the cluster is in sync.
  void watch(Duration span);
  /// Lets the checker make no further trial, but at_end().
  void stop() { stopped_ = true; }
  /// Called when all faults are over and nothing is damaged any more: makes a trial if there was none, else by chance.
  void at_end();

  /// Returns an empty string, or how I25 was broken.
  const std::string& failure() const {
    if (!failure_.empty()) return failure_;
    return outages_.failure().empty() ? acknowledged_.failure() : outages_.failure();
  }
  /// The end of the trace of the copy that broke a claim.
  const std::vector<std::string>& trace() const { return trace_; }
  /// Returns the columns of the coverage of the claims that were tested.
  std::vector<unsigned> tested() const;
  /// For a summary: which trials were made.
  std::string summary() const;

 private:
  struct Polled {
    MonotonicTime at;
    rpc::PollReply reply;
  };

  void look();
  void make_trial();
  /// Returns the state in force if all buckets are in sync by the numbers of `fjord status`, and nothing has happened
  /// to a storage node of which Fjord may not know yet.
  std::optional<ClusterView> state_in_sync() const;
  bool is_quiet() const;
  void see_state(const rpc::ClusterInfo& info);
  void see_poll(const std::string& to, const Result<rpc::Reply>& reply);

  const bool none_;
  const std::optional<Trial> only_;
  Random random_;
  SimCluster* cluster_ = nullptr;
  Acknowledged acknowledged_;
  OutageChecker outages_;
  std::optional<ClusterView> state_;  ///< The newest state that was sent as active.
  bool is_changing_ = false;          ///< A newer one is pending.
  std::map<std::string, Polled> polled_;
  bool stopped_ = false;
  std::map<Trial, unsigned> trials_;  ///< How many were begun.
  std::set<Trial> done_;              ///< Those that came to an answer.
  std::string failure_;
  std::vector<std::string> trace_;
};

}  // namespace fjord::sim
