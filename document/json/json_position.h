#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fjord/document/document_type.h"

namespace fjord {

/// A place on the earth in millionths of a degree, as a field of type position stores it.
struct Position {
  std::int32_t x = 0;  ///< Longitude, east is positive.
  std::int32_t y = 0;  ///< Latitude, north is positive.
};

constexpr int kLatitudeMax = 90;
constexpr int kLongitudeMax = 180;

/// Returns whether the type is that of positions, which has the members x and y.
bool is_position(const DataType& type);
/// Returns the millionths of a number of degrees; nothing if the text is no number, or one beyond `degrees_max`.
std::optional<std::int32_t> millionths_of(std::string_view degrees, int degrees_max);
/// Reads "N63.4;E10.4", or degrees with signs, latitude first: "63.4;10.4". Nothing for other texts.
std::optional<Position> position_of(std::string_view text);

}  // namespace fjord
