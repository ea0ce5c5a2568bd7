#pragma once

#include <string>
#include <string_view>

#include "fjord/cluster/distribution.h"

/// The part of a distribution's text that says how buckets are placed.
namespace fjord {

/// Reads what follows `algorithm:`. Errors: InvalidArgument.
Status parse_algorithm(std::string_view text, PlacementSettings& settings);
/// Reads what follows `rule:`. Errors: InvalidArgument.
Status parse_rule(std::string_view text, PlacementSettings& settings);
/// Checks the settings against the tree: unknown groups, a rule without an end and the like. Errors: InvalidArgument.
Status check_placement(const PlacementSettings& settings, const DistributionGroup& root);
/// "algorithm:... rule:... " with a space after each; defaults are left out.
std::string print_placement(const PlacementSettings& settings);

}  // namespace fjord
