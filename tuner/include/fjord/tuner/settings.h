#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fjord::tuner {

/// The values of all settings that the tuner knows. The defaults are those of the programs.
struct Settings {
  std::int64_t file_bytes_max = 16LL << 20;
  std::int64_t entries_max = 8192;
  std::int64_t slotfiles_max = 64;
  std::int64_t held_bytes_max = 64LL << 20;
  std::int64_t index_bytes_max = 1LL << 30;
  std::int64_t journal_bytes_max = 256LL << 20;
  std::int64_t scrub_bytes_per_second = 4LL << 20;
  std::int64_t visitors_max = 5;  ///< 2.5 for each of two CPUs.
  std::int64_t docblock_bytes = 1LL << 20;
  std::int64_t bucket_bytes_max = 64LL << 20;
  std::int64_t bucket_entries_max = 200'000;
  std::int64_t distribution_bits = 8;
  std::int64_t maintenance_bytes_per_s = 128LL << 20;
  std::int64_t maintenance_bytes_per_s_min = 4LL << 20;
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
/// Returns bytes for display: "1.5 GiB".
std::string bytes_text(double bytes);

}  // namespace fjord::tuner
