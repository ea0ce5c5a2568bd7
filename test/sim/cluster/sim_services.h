#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/common/runtime.h"
#include "fjord/distributor/distributor_node.h"
#include "fjord/rpc/transport.h"
#include "fjord/sim/sim_cluster.h"
#include "fjord/storage/storage_node.h"

namespace fjord::sim {

/// The services beside a storage node in its process: visitors, searches, and the client through which map tasks put
/// their output.
class StorageServices {
 public:
  StorageServices(Runtime& runtime, rpc::Transport& transport, storage::StorageNode& node,
                  std::vector<rpc::Address> distributors, const SimClusterOptions& options);
  ~StorageServices();
  std::vector<rpc::Service*> list(storage::StorageNode& node);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The services beside a distributor in its process: jobs and searches.
class DistributorServices {
 public:
  DistributorServices(const std::string& name, Runtime& runtime, rpc::Transport& transport,
                      std::vector<rpc::Address> distributors, const SimClusterOptions& options);
  ~DistributorServices();
  std::vector<rpc::Service*> list(distributor::DistributorNode& node);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace fjord::sim
