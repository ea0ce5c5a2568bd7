#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

/// What a document and the tokens of its operations have in common, and hardly anything else: the narrowest bucket
/// that it is in. Groups are in the order of the bucket tree.
std::uint64_t group_of(const GlobalId& gid);

/// No group comes after it.
inline constexpr std::uint64_t kLastGroup = std::numeric_limits<std::uint64_t>::max();

/// The groups behind `after` up to `last`, both ends of them as group_of() has them.
struct GroupRange {
  bool from_start = true;  ///< Ignore `after`.
  std::uint64_t after = 0;
  std::uint64_t last = kLastGroup;

  bool contains(std::uint64_t group) const { return (from_start || group > after) && group <= last; }
};

struct EntryWindow {
  std::vector<EntryMeta> entries;  ///< By rising (group, gid).
  bool more = false;               ///< There are entries in the range behind these.
};

/// The first whole groups of the range that have `max_entries` entries together at most; the first one even if it has
/// more. Looks at all entries of the bucket, but keeps about twice as many as it returns in memory.
/// Errors: those of PersistenceProvider::for_each_entry.
Result<EntryWindow> list_window(PersistenceProvider& provider, BucketId bucket, const GroupRange& range,
                                std::size_t max_entries);

}  // namespace fjord::spi
