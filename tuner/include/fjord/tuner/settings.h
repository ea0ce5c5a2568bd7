#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fjord/common/setting.h"

namespace fjord::tuner {

/// The values of all settings that the tuner knows. The defaults are those of the programs.
struct Settings {
  std::int64_t file_bytes_max = setting_default("storage.file_bytes_max");
  std::int64_t entries_max = setting_default("storage.entries_max");
  std::int64_t slotfiles_max = setting_default("storage.slotfiles_max");
  std::int64_t held_bytes_max = setting_default("storage.held_bytes_max");
  std::int64_t index_bytes_max = setting_default("storage.index_bytes_max");
  std::int64_t journal_bytes_max = setting_default("storage.journal_bytes_max");
  std::int64_t scrub_bytes_per_second = setting_default("storage.scrub_bytes_per_second");
  std::int64_t visitors_max = 5;  ///< 2.5 for each of two CPUs.
  std::int64_t docblock_bytes = setting_default("storage_options.docblock_bytes");
  std::int64_t bucket_bytes_max = setting_default("distributor.bucket_bytes_max");
  std::int64_t bucket_entries_max = setting_default("distributor.bucket_entries_max");
  std::int64_t distribution_bits = setting_default("cluster.distribution_bits");
  std::int64_t maintenance_bytes_per_s = setting_default("maintenance.bytes_per_s");
  std::int64_t maintenance_bytes_per_s_min = setting_default("maintenance.bytes_per_s_min");
  std::int64_t output_buckets = 0;     ///< 0: the system chooses.
  std::int64_t visitors_per_node = 0;  ///< Visitors of one job on a node; 0: the system chooses.

  friend bool operator==(const Settings&, const Settings&) = default;
};

/// The way in which a knob is changed.
enum class KnobPlace {
  Live,       ///< `fjord config set NAME=VALUE`, at once.
  File,       ///< A key of the configuration file; takes effect with the next start.
  JobOption,  ///< An option of `fjord job run`.
};

enum class KnobUnit { Count, Bytes };

/// A setting that the tuner can change, under the name that users change it by.
struct Knob {
  std::string_view name;  ///< "storage.file_bytes_max", "storage_options.docblock_bytes", "--output-buckets"
  KnobPlace place;
  KnobUnit unit;
  std::int64_t min;
  std::int64_t max;
  /// The setting changes the layout of data on disk or its division; stricter rules hold (guard_rails.h).
  bool structural;
  std::int64_t Settings::*member;
};

std::span<const Knob> knobs();
/// Returns null if no knob has that name.
const Knob* find_knob(std::string_view name);

/// Returns the value as `fjord config set` takes it: "16MiB" or "5".
std::string value_text(const Knob& knob, std::int64_t value);
/// Parses the output of value_text() and of `fjord config`. Returns nullopt if the text is not such a value.
std::optional<std::int64_t> parse_value(const Knob& knob, std::string_view text);

}  // namespace fjord::tuner
