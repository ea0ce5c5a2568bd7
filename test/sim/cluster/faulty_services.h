#pragma once

#include <map>
#include <string>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/rpc/transport.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// The transport of a fleet controller. While `active`, it sends storage nodes with odd indexes a cluster state in
/// which distributor.0 is down, under the version of the true state, as if two controllers believed to lead.
class ForkingTransport final : public rpc::Transport {
 public:
  ForkingTransport(rpc::Transport& transport, const bool& active) : transport_(transport), active_(active) {}
  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override;

 private:
  rpc::Transport& transport_;
  const bool& active_;
};

/// A service whose visits now and then lose a docblock.
class ForgetfulVisits final : public rpc::Service {
 public:
  ForgetfulVisits(rpc::Service& service, Random random) : service_(service), random_(random) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  rpc::Service& service_;
  Random random_;
};

/// A storage node's service that now and then hides removes from subscribers.
class HidesRemoves final : public rpc::Service {
 public:
  HidesRemoves(rpc::Service& service, Random random) : service_(service), random_(random) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  rpc::Service& service_;
  Random random_;
};

/// A distributor's service that tells subscribers that no write is in flight.
class DeniesWrites final : public rpc::Service {
 public:
  explicit DeniesWrites(rpc::Service& service) : service_(service) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  rpc::Service& service_;
};

/// A distributor's service that claims what is not so: Bug::AllowStops, ForbidStops, HideMissing, KeepOutage and
/// SayInSync.
class LyingService final : public rpc::Service {
 public:
  LyingService(Bug bug, rpc::Service& service) : bug_(bug), service_(service) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  /// Refuses those operations of the batch that hit an outage which has never ended.
  void refuse_forever(const std::vector<std::string>& ids, rpc::Reply& reply);

  Bug bug_;
  rpc::Service& service_;
  std::map<std::string, Status> refused_;  ///< By document: what was answered when it could not be served.
};

}  // namespace fjord::sim
