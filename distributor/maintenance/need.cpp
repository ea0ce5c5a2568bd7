#include "maintenance/need.h"

#include <algorithm>

namespace fjord::distributor {

Need need_of(const BucketEntry& entry, const NodeList& ideal) {
  if (!entry.filling.empty() && entry.intact().size() < ideal.size()) return Need::Restore;
  if (entry.repairable()) return Need::Repair;
  if (entry.dirty || entry.unsettled) return Need::Sync;
  const bool is_misplaced = std::any_of(entry.set.nodes.begin(), entry.set.nodes.end(),
                                        [&](std::uint16_t node) { return !ideal.contains(node); });
  if (!entry.filling.empty() || is_misplaced) return Need::Move;
  return entry.stale.empty() ? Need::None : Need::Delete;
}

unsigned priority_of(const BucketEntry& entry, Need need) {
  if (need == Need::Restore) return static_cast<unsigned>(std::min<std::size_t>(entry.intact().size(), kMaxRedundancy));
  return kMaxRedundancy + static_cast<unsigned>(need);
}

}  // namespace fjord::distributor
