#pragma once

#include "fjord/common/random.h"
#include "fjord/rpc/transport.h"

namespace fjord::sim {

/// A fleet controller's transport that, once `active`, tells storage nodes with odd numbers of a cluster state in which
/// distributor.0 is down, under the version of the true one: as two controllers would that both believe to lead.
class ForkingTransport final : public rpc::Transport {
 public:
  ForkingTransport(rpc::Transport& transport, const bool& active) : transport_(transport), active_(active) {}
  void call(const rpc::Address& to, rpc::Request request, Duration timeout, Executor& executor,
            rpc::ReplyFunction done) override;

 private:
  rpc::Transport& transport_;
  const bool& active_;
};

/// A service whose visits lose a docblock now and then.
class ForgetfulVisits final : public rpc::Service {
 public:
  ForgetfulVisits(rpc::Service& service, Random random) : service_(service), random_(random) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  rpc::Service& service_;
  Random random_;
};

/// A service whose storage nodes hide removes from subscribers now and then.
class HidesRemoves final : public rpc::Service {
 public:
  HidesRemoves(rpc::Service& service, Random random) : service_(service), random_(random) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  rpc::Service& service_;
  Random random_;
};

/// A distributor that tells subscribers that nothing is under way.
class DeniesWrites final : public rpc::Service {
 public:
  explicit DeniesWrites(rpc::Service& service) : service_(service) {}
  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  rpc::Service& service_;
};

}  // namespace fjord::sim
