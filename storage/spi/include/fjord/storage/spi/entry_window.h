#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

/// Returns the sort key of the narrowest bucket that can hold `gid`. A document and the idempotency tokens of its
/// operations have the same group, which hardly any other document shares. Groups are ordered like the bucket tree.
std::uint64_t group_of(const GlobalId& gid);

/// The highest possible group.
inline constexpr std::uint64_t kLastGroup = std::numeric_limits<std::uint64_t>::max();

/// The groups (see group_of()) after `after`, up to and including `last`.
struct GroupRange {
  bool from_start = true;  ///< If true, `after` is ignored and the range begins at the first group.
  std::uint64_t after = 0;
  std::uint64_t last = kLastGroup;

  bool contains(std::uint64_t group) const { return (from_start || group > after) && group <= last; }
};

struct EntryWindow {
  std::vector<EntryMeta> entries;  ///< Sorted by (group, gid).
  bool more = false;               ///< True if the range holds more entries after these.
};

/// Returns the first groups of the range, each group completely: as many as have at most `max_entries` entries
/// together, and at least one group, however large. Looks at all entries of the bucket, but keeps only about twice as
/// many in memory as it returns.
/// Errors: those of PersistenceProvider::for_each_entry.
Result<EntryWindow> list_window(PersistenceProvider& provider, BucketId bucket, const GroupRange& range,
                                std::size_t max_entries);

}  // namespace fjord::spi
