#include <algorithm>
#include <bit>

#include "fjord/storage/slotfile/slotfile_provider.h"

namespace fjord {

namespace {

const Tunable& declare(TunableRegistry& registry, const char* name, Unit unit, std::uint64_t value, std::int64_t min,
                       std::int64_t max, const char* help) {
  return registry.declare({.name = std::string("storage.") + name,
                           .unit = unit,
                           .default_value = static_cast<std::int64_t>(value),
                           .min = min,
                           .max = max,
                           .help = help});
}

constexpr std::int64_t kMany = std::int64_t{1} << 50;

}  // namespace

SlotfileTunables::SlotfileTunables(TunableRegistry& registry, const SlotfileLimits& defaults)
    : file_bytes_max_(declare(registry, "file_bytes_max", Unit::Bytes, defaults.file_bytes_max, 4096,
                              std::int64_t{2} << 30, "Bytes of a slotfile beyond which all of its bucket are split")),
      entries_max_(declare(registry, "entries_max", Unit::Count, defaults.entries_max, 4, 1 << 24,
                           "Entries of a slotfile beyond which all of its bucket are split")),
      slotfiles_max_(declare(registry, "slotfiles_max", Unit::Count, defaults.slotfiles_max, 1, 64,
                             "Slotfiles of a bucket; the next power of two below counts")),
      held_bytes_max_(declare(registry, "held_bytes_max", Unit::Bytes, defaults.held_bytes_max, 1, kMany,
                              "Memory for writes that are in the journal and not yet in slotfiles")),
      index_bytes_max_(declare(registry, "index_bytes_max", Unit::Bytes, defaults.index_bytes_max, 1, kMany,
                               "Memory for the indexes of slotfiles")),
      journal_bytes_max_(declare(registry, "journal_bytes_max", Unit::Bytes, defaults.journal_bytes_max, 1, kMany,
                                 "Journal that is replayed after a crash at most")),
      dead_percent_max_(declare(registry, "dead_percent_max", Unit::Ratio, defaults.dead_percent_max, 1, 99,
                                "Percent of a slotfile that may be replaced or removed before it is written anew")),
      scrub_bytes_per_second_(declare(registry, "scrub_bytes_per_second", Unit::Bytes, defaults.scrub_bytes_per_second,
                                      0, kMany,
                                      "How fast everything that is stored is read and verified; 0: not at all")) {}

SlotfileLimits SlotfileTunables::of_stripe(unsigned stripes) const {
  const auto value = [](const Tunable& tunable) { return static_cast<std::uint64_t>(tunable.value()); };
  const auto share = [&](const Tunable& tunable) { return std::max<std::uint64_t>(1, value(tunable) / stripes); };
  return {.file_bytes_max = value(file_bytes_max_),
          .entries_max = static_cast<std::uint32_t>(value(entries_max_)),
          .slotfiles_max = std::bit_floor(static_cast<std::uint32_t>(value(slotfiles_max_))),
          .held_bytes_max = share(held_bytes_max_),
          .index_bytes_max = share(index_bytes_max_),
          .journal_bytes_max = share(journal_bytes_max_),
          .dead_percent_max = static_cast<std::uint32_t>(value(dead_percent_max_)),
          .scrub_bytes_per_second = value(scrub_bytes_per_second_) / stripes};
}

}  // namespace fjord
