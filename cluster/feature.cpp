#include "fjord/cluster/feature.h"

#include <algorithm>

namespace fjord {
namespace {

constexpr std::size_t kNameMax = 32;

}  // namespace

std::vector<std::string> known_features() { return {std::string(feature::kForget), std::string(feature::kReadShares)}; }

bool is_feature_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameMax && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::vector<std::string> normalize_features(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return !is_feature_name(name); });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace fjord
