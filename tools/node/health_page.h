#pragma once

#include <string>

#include "fjord/distributor/distributor_node.h"
#include "fjord/fleetcontroller/fleet_controller.h"
#include "fjord/monitoring/metric_http_server.h"
#include "fjord/storage/storage_node.h"

namespace fjord {

/// What /health says of a node: 503 if it does not do a part of what it is there for, 200 with reasons if it does and
/// an operator should know something. Pure.
Health health_page(const std::string& name, const storage::StorageNodeHealth& node);
Health health_page(const std::string& name, const distributor::DistributorHealth& node);
Health health_page(const std::string& name, const fleetcontroller::FleetControllerHealth& node);

}  // namespace fjord
