#include "fjord/node/node.h"

#include <fmt/format.h>

#include "process_runtime.h"

namespace fjord {

Result<std::unique_ptr<Node>> Node::start(const config::ClusterConfig& config, config::ProcessName name,
                                          const StateStoreFactory& zookeeper) {
  if (config.find(name) == nullptr) {
    std::string known;
    for (const config::ProcessName& other : config.names()) known += (known.empty() ? "" : ", ") + other.to_string();
    return Status(StatusCode::InvalidArgument,
                  fmt::format("the configuration has no node {}; it has {}", name.to_string(), known));
  }
  switch (name.role) {
    case config::Role::FleetController:
      return start_fleetcontroller(config, name, zookeeper);
    case config::Role::Distributor:
      return start_distributor(config, name);
    case config::Role::Storage:
      return start_storage(config, name);
    case config::Role::Gateway:
      return start_gateway(config, name);
  }
  return Status(StatusCode::InvalidArgument, "unknown role");
}

}  // namespace fjord
