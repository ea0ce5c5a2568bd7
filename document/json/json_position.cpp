#include "json_position.h"

#include <charconv>
#include <cmath>

namespace fjord {
namespace {

constexpr long double kMillion = 1e6L;

/// Reads the half of a position that one of two letters begins, such as N and S, or none.
std::optional<std::int32_t> half_of(std::string_view text, char positive, char negative, int degrees_max) {
  bool is_negative = false;
  if (!text.empty() && (text.front() == positive || text.front() == negative)) {
    is_negative = text.front() == negative;
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  const auto found = millionths_of(text, degrees_max);
  if (!found) return std::nullopt;
  return is_negative ? -*found : *found;
}

}  // namespace

bool is_position(const DataType& type) { return type.tag() == TypeTag::Struct && type.name() == "position"; }

std::optional<std::int32_t> millionths_of(std::string_view degrees, int degrees_max) {
  long double number = 0;
  const auto [end, error] = std::from_chars(degrees.data(), degrees.data() + degrees.size(), number);
  if (error != std::errc() || end != degrees.data() + degrees.size()) return std::nullopt;
  if (!(std::abs(number) <= static_cast<long double>(degrees_max))) return std::nullopt;
  return static_cast<std::int32_t>(std::llround(number * kMillion));
}

std::optional<Position> position_of(std::string_view text) {
  const std::size_t between = text.find(';');
  if (between == std::string_view::npos) return std::nullopt;
  std::string_view first = text.substr(0, between);
  std::string_view second = text.substr(between + 1);
  if (first.starts_with('E') || first.starts_with('W')) std::swap(first, second);
  const auto latitude = half_of(first, 'N', 'S', kLatitudeMax);
  const auto longitude = half_of(second, 'E', 'W', kLongitudeMax);
  if (!latitude || !longitude) return std::nullopt;
  return Position{*longitude, *latitude};
}

}  // namespace fjord
