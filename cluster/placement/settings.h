#pragma once

#include <string>
#include <string_view>

#include "fjord/cluster/distribution.h"

/// Parses and prints the part of a distribution's text that says how buckets are placed.
namespace fjord {

/// Parses the text behind `algorithm:`. Errors: InvalidArgument.
Status parse_algorithm(std::string_view text, PlacementSettings& settings);
/// Parses the text behind `rule:`. Errors: InvalidArgument.
Status parse_rule(std::string_view text, PlacementSettings& settings);
/// Checks the settings against the tree: unknown groups, a rule without an end and the like. Errors: InvalidArgument.
Status check_placement(const PlacementSettings& settings, const DistributionGroup& root);
/// Returns "algorithm:... rule:... ", each with a space after it; leaves out defaults.
std::string print_placement(const PlacementSettings& settings);

}  // namespace fjord
