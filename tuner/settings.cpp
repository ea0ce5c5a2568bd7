#include "fjord/tuner/settings.h"

#include <charconv>

#include "fjord/common/byte_units.h"
#include "fjord/common/setting.h"

namespace fjord::tuner {
namespace {

using enum KnobPlace;
using enum KnobUnit;

/// Returns the knob of a setting. Its bounds and unit are those of the table of settings. Without find_setting(): with
/// -fsanitize=undefined, g++ 12 refuses to compare a pointer with null in a constant.
consteval Knob knob(std::string_view name, KnobPlace place, bool structural, std::int64_t Settings::*member) {
  for (const SettingDeclaration& setting : settings()) {
    if (setting.name != name) continue;
    const KnobUnit unit = setting.type == SettingType::Bytes ? Bytes : Count;
    return {name, place, unit, setting.min, setting.max, structural, member};
  }
  throw "no setting has this name";
}

constexpr Knob kKnobs[] = {
    knob("storage.file_bytes_max", Live, true, &Settings::file_bytes_max),
    knob("storage.entries_max", Live, true, &Settings::entries_max),
    knob("storage.slotfiles_max", Live, true, &Settings::slotfiles_max),
    knob("storage.held_bytes_max", Live, false, &Settings::held_bytes_max),
    knob("storage.index_bytes_max", Live, false, &Settings::index_bytes_max),
    knob("storage.journal_bytes_max", Live, false, &Settings::journal_bytes_max),
    knob("storage.scrub_bytes_per_second", Live, false, &Settings::scrub_bytes_per_second),
    knob("storage.visitors_max", Live, false, &Settings::visitors_max),
    knob("storage_options.docblock_bytes", File, false, &Settings::docblock_bytes),
    knob("distributor.bucket_bytes_max", Live, true, &Settings::bucket_bytes_max),
    knob("distributor.bucket_entries_max", Live, true, &Settings::bucket_entries_max),
    knob("cluster.distribution_bits", Live, true, &Settings::distribution_bits),
    knob("maintenance.bytes_per_s", Live, false, &Settings::maintenance_bytes_per_s),
    knob("maintenance.bytes_per_s_min", Live, false, &Settings::maintenance_bytes_per_s_min),
    {"--output-buckets", JobOption, Count, 0, 1 << 20, false, &Settings::output_buckets},
    {"--visitors-per-node", JobOption, Count, 0, 1024, false, &Settings::visitors_per_node},
};

}  // namespace

std::span<const Knob> knobs() { return kKnobs; }

const Knob* find_knob(std::string_view name) {
  for (const Knob& knob : kKnobs) {
    if (knob.name == name) return &knob;
  }
  return nullptr;
}

std::string value_text(const Knob& knob, std::int64_t value) {
  // The configuration file takes plain numbers, without units.
  if (knob.unit == Count || knob.place == File) return std::to_string(value);
  return exact_bytes_text(value);
}

std::optional<std::int64_t> parse_value(const Knob& knob, std::string_view text) {
  if (knob.unit == Bytes) {
    const Result<std::int64_t> bytes = parse_bytes(text);
    return bytes ? std::optional(*bytes) : std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace fjord::tuner
