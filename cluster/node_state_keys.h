#pragma once

#include <string>
#include <string_view>

#include "fjord/cluster/cluster_state.h"

namespace fjord {

/// Says which keys to print: those of a cluster state, these and the description, or all that a node reports.
enum class NodeStateKeys { Cluster, ClusterWithDescription, Report };

/// Sets the field that has this key in the text form; unknown keys are ignored.
Status set_node_state_key(NodeStateInfo& info, NodeType type, std::string_view key, std::string_view value);

/// Resets fields that have no meaning in this state or for this type, so that equal states compare equal.
void normalize_node_state(NodeStateInfo& info, NodeType type);

/// Appends " <prefix><key>:<value>" for each key that is not at its default.
void append_node_state(std::string& out, const NodeStateInfo& info, std::string_view prefix, NodeStateKeys keys);

}  // namespace fjord
