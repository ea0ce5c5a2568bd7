#pragma once

#include <string>

#include "fjord/distributor/distributor_node.h"
#include "fjord/fleetcontroller/fleet_controller.h"
#include "fjord/monitoring/metric_http_server.h"
#include "fjord/storage/storage_node.h"

namespace fjord {

/// Returns the /health page of a node: 503 if the node does not perform its role completely; else 200, with the reasons
/// if something needs an operator's attention. Pure.
Health health_page(const std::string& name, const storage::StorageNodeHealth& node);
Health health_page(const std::string& name, const distributor::DistributorHealth& node);
Health health_page(const std::string& name, const fleetcontroller::FleetControllerHealth& node);

}  // namespace fjord
