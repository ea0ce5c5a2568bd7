#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "balance_checker.h"
#include "causal_order.h"
#include "claim_checker.h"
#include "fault.h"
#include "fjord/sim/sim_transport.h"
#include "maintenance_checker.h"
#include "transfers.h"

namespace fjord::sim {

/// Watches the network for I11. Each cluster state version has one text, whichever controller publishes it. Each term
/// has one fleet controller, and newer states never belong to older terms. In each version storage nodes accept the
/// operations of only one distributor for a bucket. Also counts events that expose other invariants.
class Recorder final : public NetworkObserver {
 public:
  /// `claims` is ScenarioOptions::claims; claims() has to be told of a cluster before it sees anything.
  explicit Recorder(Exposure& exposure, std::uint64_t seed = 0, const std::string& claims = "none")
      : exposure_(exposure), transfers_(exposure), maintenance_(exposure), claims_(seed, claims) {}
  SeeReply see_request(const std::string& from, const std::string& to, const rpc::Request& request) override {
    if (on_repair_ && is_of_repair(request)) on_repair_(to);
    return both(claims_.see_request(from, to, request),
                both(causal_order_.see_request(from, to, request), see_rest(from, to, request)));
  }
  /// Calls `task` with the name of the storage node before it gets a message that may be a step of a repair; empty: no
  /// longer.
  void on_repair(std::function<void(const std::string& node)> task) { on_repair_ = std::move(task); }
  /// Returns an empty string, or how the invariant was broken.
  const std::string& failure() const {
    if (!failure_.empty()) return failure_;
    if (!causal_order_.failure().empty()) return causal_order_.failure();
    if (!transfers_.failure().empty()) return transfers_.failure();
    return maintenance_.failure().empty() ? claims_.failure() : maintenance_.failure();
  }
  ClaimChecker& claims() { return claims_; }
  /// Makes this the observer of the network, with claims() among what it watches: ClaimChecker::watch() within `span`,
  /// or not before the end of the run if that is zero. For runs that damage files: while a node has not read what is
  /// damaged, the replicas of others cannot be spared.
  void watch_claims(SimCluster& cluster, Duration span) {
    claims_.observe(cluster);
    cluster.network().set_observer(this);
    if (span.count() > 0) claims_.watch(span);
  }
  TransferChecker& transfers() { return transfers_; }
  MaintenanceChecker& maintenance() { return maintenance_; }
  BalanceChecker& balance() { return balance_; }
  CausalOrderChecker& causal_order() { return causal_order_; }
  /// Returns the number of terms in which a fleet controller sent messages.
  std::size_t terms() const { return terms_.size(); }

 private:
  static bool is_of_repair(const rpc::Request& request) {
    return std::holds_alternative<rpc::MergeBucket>(request) || std::holds_alternative<rpc::SetReplicaSets>(request) ||
           std::holds_alternative<rpc::GetBucketInfo>(request);
  }
  static SeeReply both(SeeReply first, SeeReply second);
  SeeReply see_rest(const std::string& from, const std::string& to, const rpc::Request& request);
  SeeReply see_apply(const std::string& to, const rpc::Apply& request);
  void see_state(const std::string& from, const rpc::ClusterInfo& info);
  void see_term(const std::string& from, const rpc::ClusterInfo& info);
  void note_text(const std::string& from, std::uint64_t version, const std::string& state,
                 const std::string& distribution, bool is_active);
  void note_owner(const std::string& to, std::uint64_t version, BucketId bucket, std::uint16_t distributor);

  Exposure& exposure_;
  std::map<std::uint64_t, std::pair<std::string, std::string>> states_;      ///< By version: text, publisher.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint16_t> owners_;  ///< By version and bucket: distributor.
  std::map<std::uint64_t, std::string> terms_;                               ///< By term: the fleet controller.
  std::map<std::uint64_t, std::uint64_t> term_of_state_;  ///< By version: the term in which the state was first active.
  TransferChecker transfers_;
  MaintenanceChecker maintenance_;
  BalanceChecker balance_;
  CausalOrderChecker causal_order_;
  ClaimChecker claims_;
  std::function<void(const std::string& node)> on_repair_;
  std::string failure_;
};

}  // namespace fjord::sim
