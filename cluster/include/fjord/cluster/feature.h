#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fjord {

/// Names of what a program can do and programs of earlier versions cannot. Each node announces the names that it knows
/// (PollReply.features). The cluster state lists the names that all serving nodes announce (ClusterState::announces()).
/// A feature that needs all nodes is used only while the state lists it. A name is never reused.
namespace feature {

/// Replicas drop old remove entries and tokens together (docs/design/0013-retention.md).
inline constexpr std::string_view kForget = "forget";
/// Reads go to replicas by ClusterState::read_shares() (docs/design/0020-balancing-by-load.md).
inline constexpr std::string_view kReadShares = "read_shares";

}  // namespace feature

/// Returns the names that this program announces, whatever its role.
std::vector<std::string> known_features();

/// Returns true for 1 to 32 lower-case letters, digits and underscores.
bool is_feature_name(std::string_view name);

/// Returns the names in order, without duplicates and without those that is_feature_name() refuses.
std::vector<std::string> normalize_features(std::vector<std::string> names);

}  // namespace fjord
