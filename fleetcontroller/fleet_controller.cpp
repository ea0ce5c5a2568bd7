#include "fjord/fleetcontroller/fleet_controller.h"

#include "controller.h"
#include "fjord/cluster/distribution.h"

namespace fjord::fleetcontroller {

FleetController::FleetController(std::unique_ptr<Controller> controller) : controller_(std::move(controller)) {}
FleetController::~FleetController() = default;

Result<std::unique_ptr<FleetController>> FleetController::open(const FleetControllerOptions& options, Runtime& runtime,
                                                               rpc::Transport& transport, ClusterStateStore& store) {
  FJORD_TRY_ASSIGN(DistributionConfig distribution, DistributionConfig::parse(options.distribution));
  for (const DistributionGroup::Node& node : distribution.flat_nodes()) {
    if (node.index >= options.storage.size()) {
      return Status(StatusCode::InvalidArgument, "the distribution names storage." + std::to_string(node.index) +
                                                     ", but there are " + std::to_string(options.storage.size()) +
                                                     " storage nodes");
    }
  }
  auto controller = std::make_unique<Controller>(options, runtime, transport, store);
  controller->start();
  return std::unique_ptr<FleetController>(new FleetController(std::move(controller)));
}

bool FleetController::handle(rpc::Request& request, rpc::Responder& respond) {
  const bool known =
      std::holds_alternative<rpc::GetClusterInfo>(request) || std::holds_alternative<rpc::DeploySchemas>(request) ||
      std::holds_alternative<rpc::GetStatus>(request) || std::holds_alternative<rpc::ChangeNodes>(request) ||
      std::holds_alternative<rpc::GetConfig>(request) || std::holds_alternative<rpc::ChangeConfig>(request) ||
      std::holds_alternative<rpc::GetHistory>(request) || std::holds_alternative<rpc::RecoverState>(request) ||
      std::holds_alternative<rpc::Balance>(request);
  if (!known) return false;
  Controller* controller = controller_.get();
  controller->executor().post([controller, request = std::move(request), respond = std::move(respond)]() mutable {
    controller->handle(std::move(request), std::move(respond));
  });
  return true;
}

FleetControllerHealth FleetController::health() const { return controller_->health(); }

}  // namespace fjord::fleetcontroller
