#include "fjord/tuner/settings.h"

#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace fjord::tuner {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kGiB = 1024 * kMiB;
constexpr std::int64_t kTiB = 1024 * kGiB;

using enum KnobPlace;
using enum KnobUnit;

constexpr Knob kKnobs[] = {
    {"storage.file_bytes_max", Live, Bytes, 4 * kKiB, 2 * kGiB, true, &Settings::file_bytes_max},
    {"storage.entries_max", Live, Count, 4, 1 << 24, true, &Settings::entries_max},
    {"storage.slotfiles_max", Live, Count, 1, 64, true, &Settings::slotfiles_max},
    {"storage.held_bytes_max", Live, Bytes, 1, kTiB, false, &Settings::held_bytes_max},
    {"storage.index_bytes_max", Live, Bytes, 1, kTiB, false, &Settings::index_bytes_max},
    {"storage.journal_bytes_max", Live, Bytes, 1, kTiB, false, &Settings::journal_bytes_max},
    {"storage.scrub_bytes_per_second", Live, Bytes, 0, kTiB, false, &Settings::scrub_bytes_per_second},
    {"storage.visitors_max", Live, Count, 1, 1024, false, &Settings::visitors_max},
    {"storage_options.docblock_bytes", File, Bytes, 4 * kKiB, 16 * kMiB, false, &Settings::docblock_bytes},
    {"distributor.bucket_bytes_max", Live, Bytes, 1, kTiB, true, &Settings::bucket_bytes_max},
    {"distributor.bucket_entries_max", Live, Count, 1, 1 << 30, true, &Settings::bucket_entries_max},
    {"cluster.distribution_bits", Live, Count, 1, 32, true, &Settings::distribution_bits},
    {"maintenance.bytes_per_s", Live, Bytes, kKiB, kTiB, false, &Settings::maintenance_bytes_per_s},
    {"maintenance.bytes_per_s_min", Live, Bytes, kKiB, kTiB, false, &Settings::maintenance_bytes_per_s_min},
    {"--output-buckets", JobOption, Count, 0, 1 << 20, false, &Settings::output_buckets},
    {"--visitors-per-node", JobOption, Count, 0, 1024, false, &Settings::visitors_per_node},
};

struct ByteUnit {
  std::string_view name;
  std::int64_t factor;
};
constexpr std::array<ByteUnit, 5> kUnits = {{{"TiB", kTiB}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}, {"B", 1}}};

}  // namespace

std::span<const Knob> knobs() { return kKnobs; }

const Knob* find_knob(std::string_view name) {
  for (const Knob& knob : kKnobs) {
    if (knob.name == name) return &knob;
  }
  return nullptr;
}

std::string value_text(const Knob& knob, std::int64_t value) {
  // The configuration file takes plain numbers.
  if (knob.unit == Count || knob.place == File) return std::to_string(value);
  for (const ByteUnit& unit : kUnits) {
    if (value % unit.factor == 0 && (value != 0 || unit.factor == 1)) {
      return fmt::format("{}{}", value / unit.factor, unit.name);
    }
  }
  return std::to_string(value);
}

std::optional<std::int64_t> parse_value(const Knob& knob, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (rest.empty()) return value;
  for (const ByteUnit& unit : kUnits) {
    if (knob.unit == Bytes && rest == unit.name && value <= (std::int64_t{1} << 62) / unit.factor) {
      return value * unit.factor;
    }
  }
  return std::nullopt;
}

std::string bytes_text(double bytes) {
  for (const ByteUnit& unit : kUnits) {
    if (std::abs(bytes) >= static_cast<double>(unit.factor)) {
      return fmt::format("{:.3g} {}", bytes / static_cast<double>(unit.factor), unit.name);
    }
  }
  return fmt::format("{:.3g} B", bytes);
}

}  // namespace fjord::tuner
