#include "sim_services.h"

namespace fjord::sim {

struct StorageServices::Parts {};
StorageServices::StorageServices(Runtime&, rpc::Transport&, storage::StorageNode&, std::vector<rpc::Address>, Bug) {}
StorageServices::~StorageServices() = default;
std::vector<rpc::Service*> StorageServices::list(storage::StorageNode& node) { return {&node}; }

struct DistributorServices::Parts {};
DistributorServices::DistributorServices(Runtime&, rpc::Transport&, std::vector<rpc::Address>) {}
DistributorServices::~DistributorServices() = default;
std::vector<rpc::Service*> DistributorServices::list(distributor::DistributorNode& node) { return {&node}; }

}  // namespace fjord::sim
