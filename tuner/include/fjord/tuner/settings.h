#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fjord::tuner {

/// What can be turned. The defaults are those of the programs.
struct Settings {
  std::int64_t file_bytes_max = 16LL << 20;
  std::int64_t entries_max = 8192;
  std::int64_t slotfiles_max = 64;
  std::int64_t held_bytes_max = 64LL << 20;
  std::int64_t index_bytes_max = 1LL << 30;
  std::int64_t journal_bytes_max = 256LL << 20;
  std::int64_t scrub_bytes_per_second = 4LL << 20;
  std::int64_t visitors_max = 5;  ///< 2.5 a CPU of two.
  std::int64_t docblock_bytes = 1LL << 20;
  std::int64_t bucket_bytes_max = 64LL << 20;
  std::int64_t bucket_entries_max = 200'000;
  std::int64_t distribution_bits = 8;
  std::int64_t maintenance_bytes_per_s = 128LL << 20;
  std::int64_t maintenance_bytes_per_s_min = 4LL << 20;
  std::int64_t output_buckets = 0;     ///< 0: the system chooses.
  std::int64_t visitors_per_node = 0;  ///< Of a job; 0: the system chooses.

  friend bool operator==(const Settings&, const Settings&) = default;
};

/// How a knob is turned.
enum class KnobPlace {
  Live,       ///< `fjord config set NAME=VALUE`, at once.
  File,       ///< A key of the configuration file; takes effect with the next start.
  JobOption,  ///< An option of `fjord job run`.
};

enum class KnobUnit { Count, Bytes };

/// One thing that can be turned, and what it is called where it is turned.
struct Knob {
  std::string_view name;  ///< "storage.file_bytes_max", "storage_options.docblock_bytes", "--output-buckets"
  KnobPlace place;
  KnobUnit unit;
  std::int64_t min;
  std::int64_t max;
  /// Changes what data looks like on disk or how it is divided: held to stricter rules (guard_rails.h).
  bool structural;
  std::int64_t Settings::*member;
};

std::span<const Knob> knobs();
/// Null if there is none of that name.
const Knob* find_knob(std::string_view name);

/// "16MiB" or "5", as `fjord config set` takes it.
std::string value_text(const Knob& knob, std::int64_t value);
/// Reads what value_text() prints and what `fjord config` shows. Nothing if it is no such value.
std::optional<std::int64_t> parse_value(const Knob& knob, std::string_view text);
/// "1.5 GiB", for people.
std::string bytes_text(double bytes);

}  // namespace fjord::tuner
