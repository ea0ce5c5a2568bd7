#include "fjord/common/byte_units.h"

#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <iterator>

namespace fjord {
namespace {

struct ByteUnit {
  std::string_view name;
  double factor;
};
constexpr double kKiB = 1024;
constexpr ByteUnit kBinaryUnits[] = {
    {"TiB", kKiB* kKiB* kKiB* kKiB}, {"GiB", kKiB* kKiB* kKiB}, {"MiB", kKiB* kKiB}, {"KiB", kKiB}, {"B", 1}};
constexpr ByteUnit kDecimalUnits[] = {{"", 1},    {"k", 1e3},  {"kB", 1e3}, {"M", 1e6},  {"MB", 1e6},
                                      {"G", 1e9}, {"GB", 1e9}, {"T", 1e12}, {"TB", 1e12}};
constexpr double kBytesMax = 4611686018427387904.0;  // 2^62

/// Returns the factor of a unit; 0 if it is unknown.
double factor_of(std::string_view unit) {
  for (const ByteUnit& known : kBinaryUnits) {
    if (known.name == unit) return known.factor;
  }
  for (const ByteUnit& known : kDecimalUnits) {
    if (known.name == unit) return known.factor;
  }
  return 0;
}

}  // namespace

Result<std::int64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const double bytes = std::round(number * factor_of(unit));
  const bool fits = error == std::errc() && factor_of(unit) != 0 && bytes >= 0 && bytes <= kBytesMax;
  if (fits) return static_cast<std::int64_t>(bytes);
  return Status(StatusCode::InvalidArgument,
                fmt::format("\"{}\" is not a number of bytes such as 64MiB, 10MB or 1500", text));
}

std::string exact_bytes_text(std::int64_t bytes) {
  for (const ByteUnit& unit : kBinaryUnits) {
    const auto factor = static_cast<std::int64_t>(unit.factor);
    if (bytes % factor == 0 && (bytes != 0 || factor == 1)) return fmt::format("{}{}", bytes / factor, unit.name);
  }
  return fmt::format("{}B", bytes);
}

std::string bytes_text(double bytes) {
  for (const ByteUnit& unit : kBinaryUnits) {
    if (std::abs(bytes) >= unit.factor) return fmt::format("{:.3g} {}", bytes / unit.factor, unit.name);
  }
  return fmt::format("{:.3g} B", bytes);
}

}  // namespace fjord
