#include <algorithm>
#include <bit>

#include "fjord/storage/slotfile/slotfile_provider.h"

namespace fjord {
namespace {

const Tunable& declare(TunableRegistry& registry, const char* setting, std::uint64_t default_value) {
  return registry.declare(setting, static_cast<std::int64_t>(default_value));
}

}  // namespace

SlotfileTunables::SlotfileTunables(TunableRegistry& registry, const SlotfileLimits& defaults)
    : file_bytes_max_(declare(registry, "storage.file_bytes_max", defaults.file_bytes_max)),
      entries_max_(declare(registry, "storage.entries_max", defaults.entries_max)),
      slotfiles_max_(declare(registry, "storage.slotfiles_max", defaults.slotfiles_max)),
      held_bytes_max_(declare(registry, "storage.held_bytes_max", defaults.held_bytes_max)),
      index_bytes_max_(declare(registry, "storage.index_bytes_max", defaults.index_bytes_max)),
      journal_bytes_max_(declare(registry, "storage.journal_bytes_max", defaults.journal_bytes_max)),
      dead_percent_max_(declare(registry, "storage.dead_percent_max", defaults.dead_percent_max)),
      scrub_bytes_per_second_(declare(registry, "storage.scrub_bytes_per_second", defaults.scrub_bytes_per_second)) {}

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
