#include "scalar.h"

#include <cmath>
#include <cstring>

namespace fjord::mapreduce {
namespace {

enum Tag : std::uint8_t { kAbsent = 0, kInteger = 1, kDouble = 2, kString = 3 };

int sign(std::strong_ordering order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }

/// Compares exactly. `number` is neither NaN nor equal to a 64-bit integer.
int compare_mixed(std::int64_t integer, double number) {
  if (number >= 0x1p63) return -1;
  if (number < -0x1p63) return 1;
  const auto below = static_cast<std::int64_t>(std::floor(number));
  return integer <= below ? -1 : 1;
}

}  // namespace

ScalarView canonical(ScalarView value) {
  if (value.kind != ScalarView::Kind::Double) return value;
  if (value.number >= -0x1p63 && value.number < 0x1p63) {
    const auto integer = static_cast<std::int64_t>(value.number);
    if (static_cast<double>(integer) == value.number) {
      value.kind = ScalarView::Kind::Integer;
      value.integer = integer;
    }
  }
  return value;
}

int compare(const ScalarView& a, const ScalarView& b) {
  using Kind = ScalarView::Kind;
  const auto rank = [](Kind kind) { return kind == Kind::Absent ? 0 : kind == Kind::String ? 2 : 1; };
  if (rank(a.kind) != rank(b.kind)) return rank(a.kind) < rank(b.kind) ? -1 : 1;
  if (a.kind == Kind::Absent) return 0;
  if (a.kind == Kind::String) return sign(a.string <=> b.string);
  if (a.kind == Kind::Integer && b.kind == Kind::Integer) return sign(a.integer <=> b.integer);
  if (a.kind == Kind::Integer) return compare_mixed(a.integer, b.number);
  if (b.kind == Kind::Integer) return -compare_mixed(b.integer, a.number);
  return a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
}

double as_double(const ScalarView& number) {
  return number.kind == ScalarView::Kind::Double ? number.number : static_cast<double>(number.integer);
}

void put_scalar(std::string& out, const ScalarView& value) {
  switch (value.kind) {
    case ScalarView::Kind::Absent:
      out.push_back(static_cast<char>(kAbsent));
      return;
    case ScalarView::Kind::Integer:
      out.push_back(static_cast<char>(kInteger));
      put_signed(out, value.integer);
      return;
    case ScalarView::Kind::Double:
      out.push_back(static_cast<char>(kDouble));
      put_fixed(out, value.number);
      return;
    case ScalarView::Kind::String:
      out.push_back(static_cast<char>(kString));
      put_string(out, value.string);
      return;
  }
}

bool read_scalar(ByteReader& in, ScalarView& value) {
  value = {};
  switch (in.fixed<std::uint8_t>()) {
    case kAbsent:
      break;
    case kInteger:
      value.kind = ScalarView::Kind::Integer;
      value.integer = read_signed(in);
      break;
    case kDouble:
      value.kind = ScalarView::Kind::Double;
      value.number = in.fixed<double>();
      // Accepts only what put_scalar() writes: each value has one form.
      return in.ok() && !std::isnan(value.number) && canonical(value).kind == ScalarView::Kind::Double;
    case kString:
      value.kind = ScalarView::Kind::String;
      value.string = in.string();
      break;
    default:
      return false;
  }
  return in.ok();
}

void write_number(JsonWriter& json, double number) {
  if (std::isfinite(number)) {
    json.Double(number);
  } else if (std::isnan(number)) {
    json.Null();
  } else {
    json.String(number > 0 ? "Infinity" : "-Infinity");
  }
}

void write_scalar(JsonWriter& json, const ScalarView& value, bool is_bool) {
  switch (value.kind) {
    case ScalarView::Kind::Absent:
      json.Null();
      return;
    case ScalarView::Kind::Integer:
      if (is_bool) {
        json.Bool(value.integer != 0);
      } else {
        json.Int64(value.integer);
      }
      return;
    case ScalarView::Kind::Double:
      write_number(json, value.number);
      return;
    case ScalarView::Kind::String:
      json.String(value.string.data(), static_cast<rapidjson::SizeType>(value.string.size()));
      return;
  }
}

void put_signed(std::string& out, std::int64_t value) {
  put_varint(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

std::int64_t read_signed(ByteReader& in) {
  const std::uint64_t coded = in.varint();
  return static_cast<std::int64_t>((coded >> 1) ^ (~(coded & 1) + 1));
}

void put_int128(std::string& out, __int128 value) {
  // Writes the low 64 bits as a signed number, then the rest divided by 2^64, which is zero for most values.
  const auto low = static_cast<std::int64_t>(value);
  put_signed(out, low);
  put_signed(out, static_cast<std::int64_t>((value - low) >> 64));
}

__int128 read_int128(ByteReader& in) {
  const std::int64_t low = read_signed(in);
  const std::int64_t high = read_signed(in);
  const auto shifted = static_cast<unsigned __int128>(static_cast<__int128>(high)) << 64;
  return static_cast<__int128>(shifted + static_cast<unsigned __int128>(static_cast<__int128>(low)));
}

}  // namespace fjord::mapreduce
