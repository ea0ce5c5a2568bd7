#pragma once

#include <map>
#include <string>
#include <utility>

#include "fault.h"
#include "fjord/sim/sim_transport.h"

namespace fjord::sim {

/// Watches the network for I11: of each cluster state version there is one text, and in each version only one
/// distributor acts for a bucket, that is, only its operations are taken by storage nodes. Counts also what other
/// invariants are exposed to.
class Recorder final : public NetworkObserver {
 public:
  explicit Recorder(Exposure& exposure) : exposure_(exposure) {}
  SeeReply see_request(const std::string& from, const std::string& to, const rpc::Request& request) override;
  /// Empty, or what was broken.
  const std::string& failure() const { return failure_; }

 private:
  SeeReply see_apply(const std::string& to, const rpc::Apply& request);
  void see_state(const std::string& from, const rpc::ClusterInfo& info);
  void note_owner(const std::string& to, std::uint64_t version, BucketId bucket, std::uint16_t distributor);

  Exposure& exposure_;
  std::map<std::uint64_t, std::pair<std::string, std::string>> states_;      ///< Version to text and publisher.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint16_t> owners_;  ///< Version and bucket to distributor.
  std::string failure_;
};

}  // namespace fjord::sim
