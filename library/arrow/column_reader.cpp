#include "arrow/column_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <utility>
#include <vector>

#include "arrow/arrow_types.h"
#include "fjord/common/coding.h"
#include "fjord/document/document_format.h"

namespace fjord {
namespace {

bool bit(const void* bits, std::int64_t at) {
  return ((static_cast<const std::uint8_t*>(bits)[at / 8] >> (at % 8)) & 1) != 0;
}

template <typename T>
T value_at(const ArrowArray& array, std::int64_t row) {
  return load_fixed<T>(static_cast<const char*>(array.buffers[1]) + (array.offset + row) * std::int64_t{sizeof(T)});
}

/// Reads numbers of the Arrow type From as those of the field's type To.
template <typename From, typename To>
class NumberReader : public ColumnReader {
 public:
  Status append(std::int64_t row, std::string& out) const override {
    const From value = value_at<From>(*array_, row);
    if constexpr (std::is_integral_v<To>) {
      if constexpr (std::is_floating_point_v<From>) {
        // Both bounds are exact in floating point: the upper one is the first value that does not fit.
        const auto bound = -static_cast<double>(std::numeric_limits<To>::min());
        if (!(value >= -bound && value < bound) || std::trunc(value) != value) return no_fit(value);
      } else if (!std::in_range<To>(value)) {
        return no_fit(value);
      }
    } else if (!holds(value)) {
      return no_fit(value);
    }
    put_fixed(out, static_cast<To>(value));
    return Status::ok();
  }

 private:
  /// A number with a fraction is rounded to the nearest one of To, as everywhere. An integer has to stay the same,
  /// which a long double can tell of each of 64 bits, and a finite number finite.
  static bool holds(From value) {
    const To stored = static_cast<To>(value);
    if constexpr (std::is_integral_v<From>) {
      return static_cast<long double>(stored) == static_cast<long double>(value);
    } else {
      return std::isfinite(stored) || !std::isfinite(value);
    }
  }
  static Status no_fit(From value) {
    if constexpr (std::is_floating_point_v<To>) {
      return {StatusCode::InvalidField,
              fmt::format("{} does not fit in a floating-point number of {} bytes{}", +value, sizeof(To),
                          std::is_integral_v<From> ? " without being rounded" : "")};
    } else if constexpr (std::is_floating_point_v<From>) {
      return {StatusCode::InvalidField, fmt::format("not an integer of {1} bytes: {0}", value, sizeof(To))};
    } else {
      return {StatusCode::InvalidField, fmt::format("{} is out of the range {} to {}", +value,
                                                    +std::numeric_limits<To>::min(), +std::numeric_limits<To>::max())};
    }
  }
};

template <typename To>
std::unique_ptr<ColumnReader> number_reader(char format) {
  switch (format) {
    case 'c':
      return std::make_unique<NumberReader<std::int8_t, To>>();
    case 'C':
      return std::make_unique<NumberReader<std::uint8_t, To>>();
    case 's':
      return std::make_unique<NumberReader<std::int16_t, To>>();
    case 'S':
      return std::make_unique<NumberReader<std::uint16_t, To>>();
    case 'i':
      return std::make_unique<NumberReader<std::int32_t, To>>();
    case 'I':
      return std::make_unique<NumberReader<std::uint32_t, To>>();
    case 'l':
      return std::make_unique<NumberReader<std::int64_t, To>>();
    case 'L':
      return std::make_unique<NumberReader<std::uint64_t, To>>();
    case 'f':
      return std::make_unique<NumberReader<float, To>>();
    case 'g':
      return std::make_unique<NumberReader<double, To>>();
    default:
      return nullptr;
  }
}

/// Decimals of up to 128 bits, by their digits.
class DecimalReader : public ColumnReader {
 public:
  /// Returns none if the format is no decimal that is read here: "d:PRECISION,SCALE[,BITS]".
  static std::unique_ptr<ColumnReader> make(std::string_view format, TypeTag tag) {
    int numbers[3] = {0, 0, 128};
    const char* at = format.data() + 2;
    const char* const end = format.data() + format.size();
    for (int& number : numbers) {
      const auto [stop, error] = std::from_chars(at, end, number);
      if (error != std::errc()) return nullptr;
      at = stop < end ? stop + 1 : end;
      if (stop == end) break;
    }
    if (numbers[2] != 32 && numbers[2] != 64 && numbers[2] != 128) return nullptr;
    return std::make_unique<DecimalReader>(numbers[1], numbers[2] / 8, tag);
  }
  DecimalReader(int scale, int bytes, TypeTag tag) : scale_(scale), bytes_(bytes), tag_(tag) {}

  Status append(std::int64_t row, std::string& out) const override {
    const std::string digits = text(row);
    switch (tag_) {
      case TypeTag::Float:
        return append_number<float>(digits, out);
      case TypeTag::Double:
        return append_number<double>(digits, out);
      case TypeTag::Byte:
        return append_number<std::int8_t>(without_zeros(digits), out);
      case TypeTag::Int:
        return append_number<std::int32_t>(without_zeros(digits), out);
      case TypeTag::Long:
        return append_number<std::int64_t>(without_zeros(digits), out);
      default:
        out += digits;
        return Status::ok();
    }
  }

 private:
  std::string text(std::int64_t row) const {
    const char* const at = static_cast<const char*>(array_->buffers[1]) + (array_->offset + row) * bytes_;
    __int128 number = bytes_ == 4   ? static_cast<__int128>(load_fixed<std::int32_t>(at))
                      : bytes_ == 8 ? static_cast<__int128>(load_fixed<std::int64_t>(at))
                                    : static_cast<__int128>(load_fixed<std::int64_t>(at + 8)) << 64 |
                                          static_cast<__int128>(load_fixed<std::uint64_t>(at));
    const bool is_negative = number < 0;
    std::string digits;
    for (; number != 0; number /= 10)
      digits.push_back(static_cast<char>('0' + (is_negative ? -(number % 10) : number % 10)));
    if (scale_ > 0) digits.resize(std::max(digits.size(), static_cast<std::size_t>(scale_) + 1), '0');
    if (digits.empty()) digits = "0";
    std::reverse(digits.begin(), digits.end());
    if (scale_ > 0) digits.insert(digits.size() - static_cast<std::size_t>(scale_), ".");
    if (scale_ < 0 && digits != "0") digits.append(static_cast<std::size_t>(-scale_), '0');
    return is_negative ? "-" + digits : digits;
  }
  /// Takes the zeros behind the point away, and the point.
  static std::string without_zeros(std::string digits) {
    if (digits.find('.') == std::string::npos) return digits;
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.back() == '.') digits.pop_back();
    return digits;
  }
  template <typename T>
  static Status append_number(const std::string& digits, std::string& out) {
    T value{};
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || stop != digits.data() + digits.size()) {
      return {StatusCode::InvalidField, fmt::format("{} does not fit in {} of {} bytes", digits,
                                                    std::is_integral_v<T> ? "an integer" : "a number", sizeof(T))};
    }
    put_fixed(out, value);
    return Status::ok();
  }

  const int scale_;
  const int bytes_;
  const TypeTag tag_;
};

/// Integers for a field of texts: their digits, as in a cell of CSV.
class DigitsReader : public ColumnReader {
 public:
  DigitsReader(std::unique_ptr<ColumnReader> number, bool is_unsigned)
      : number_(std::move(number)), is_unsigned_(is_unsigned) {}
  Status set(const ArrowArray& array) override {
    FJORD_TRY(ColumnReader::set(array));
    return number_->set(array);
  }
  Status append(std::int64_t row, std::string& out) const override {
    if (is_unsigned_) {
      out += std::to_string(value_at<std::uint64_t>(*array_, row));
      return Status::ok();
    }
    std::string number;
    FJORD_TRY(number_->append(row, number));
    out += std::to_string(load_fixed<std::int64_t>(number.data()));
    return Status::ok();
  }

 private:
  std::unique_ptr<ColumnReader> number_;
  bool is_unsigned_;  ///< 64 bits, which no long holds all of.
};

/// A column of Arrow's type null.
class NullReader : public ColumnReader {
 public:
  bool is_null(std::int64_t) const override { return true; }
  Status append(std::int64_t, std::string&) const override { return Status::ok(); }
};

class BoolReader : public ColumnReader {
 public:
  Status append(std::int64_t row, std::string& out) const override {
    out.push_back(bit(array_->buffers[1], array_->offset + row) ? '\1' : '\0');
    return Status::ok();
  }
};

/// Texts and bytes with offsets.
template <typename Offset>
class BytesReader : public ColumnReader {
 public:
  Status append(std::int64_t row, std::string& out) const override {
    const auto* offsets = static_cast<const Offset*>(array_->buffers[1]) + array_->offset + row;
    out.append(static_cast<const char*>(array_->buffers[2]) + offsets[0],
               static_cast<std::size_t>(offsets[1] - offsets[0]));
    return Status::ok();
  }
};

/// Texts and bytes of a fixed size.
class FixedBytesReader : public ColumnReader {
 public:
  explicit FixedBytesReader(std::int64_t size) : size_(size) {}
  Status append(std::int64_t row, std::string& out) const override {
    out.append(static_cast<const char*>(array_->buffers[1]) + (array_->offset + row) * size_,
               static_cast<std::size_t>(size_));
    return Status::ok();
  }

 private:
  std::int64_t size_;
};

/// Texts and bytes as views: short ones are in the view, the others in one of several buffers.
class ViewReader : public ColumnReader {
 public:
  Status append(std::int64_t row, std::string& out) const override {
    constexpr std::int64_t kViewBytes = 16;
    constexpr std::int32_t kInlineMax = 12;
    const char* view = static_cast<const char*>(array_->buffers[1]) + (array_->offset + row) * kViewBytes;
    const auto size = load_fixed<std::int32_t>(view);
    if (size <= kInlineMax) {
      out.append(view + 4, static_cast<std::size_t>(size));
    } else {
      const auto* buffer = static_cast<const char*>(array_->buffers[2 + load_fixed<std::int32_t>(view + 8)]);
      out.append(buffer + load_fixed<std::int32_t>(view + 12), static_cast<std::size_t>(size));
    }
    return Status::ok();
  }
};

/// Values that rows name by their position in a dictionary.
class DictionaryReader : public ColumnReader {
 public:
  DictionaryReader(std::unique_ptr<ColumnReader> index, std::unique_ptr<ColumnReader> values)
      : index_(std::move(index)), values_(std::move(values)) {}

  Status set(const ArrowArray& array) override {
    if (array.dictionary == nullptr) return {StatusCode::InvalidArgument, "a column lacks its dictionary"};
    FJORD_TRY(ColumnReader::set(array));
    FJORD_TRY(index_->set(array));
    return values_->set(*array.dictionary);
  }
  bool is_null(std::int64_t row) const override {
    return ColumnReader::is_null(row) || values_->is_null(position(row));
  }
  Status append(std::int64_t row, std::string& out) const override { return values_->append(position(row), out); }

 private:
  std::int64_t position(std::int64_t row) const {
    std::string number;
    return index_->append(row, number) ? load_fixed<std::int64_t>(number.data()) : 0;
  }
  std::unique_ptr<ColumnReader> index_;
  std::unique_ptr<ColumnReader> values_;
};

Result<std::unique_ptr<ColumnReader>> no_reader(const ArrowSchema& from, const DataType& type) {
  return Status(StatusCode::InvalidField,
                fmt::format("Arrow's type {} has no values of type {}", arrow_type_name(from.format), type.name()));
}

std::unique_ptr<ColumnReader> bytes_reader(std::string_view format) {
  if (format == "u" || format == "z") return std::make_unique<BytesReader<std::int32_t>>();
  if (format == "U" || format == "Z") return std::make_unique<BytesReader<std::int64_t>>();
  if (format == "vu" || format == "vz") return std::make_unique<ViewReader>();
  if (!format.starts_with("w:")) return nullptr;
  std::int64_t size = 0;
  std::from_chars(format.data() + 2, format.data() + format.size(), size);
  return std::make_unique<FixedBytesReader>(size);
}

std::unique_ptr<ColumnReader> scalar_reader(std::string_view format, TypeTag tag) {
  const char number = format.size() == 1 ? format[0] : '\0';
  const bool is_scalar = tag == TypeTag::String || tag == TypeTag::Float || tag == TypeTag::Double ||
                         tag == TypeTag::Byte || tag == TypeTag::Int || tag == TypeTag::Long;
  if (format.starts_with("d:") && is_scalar) return DecimalReader::make(format, tag);
  switch (tag) {
    case TypeTag::Byte:
      return number_reader<std::int8_t>(number);
    case TypeTag::Int:
      return number_reader<std::int32_t>(number);
    case TypeTag::Long:
      return number_reader<std::int64_t>(number);
    case TypeTag::Float:
      return number_reader<float>(number);
    case TypeTag::Double:
      return number_reader<double>(number);
    case TypeTag::Bool:
      return format == "b" ? std::make_unique<BoolReader>() : nullptr;
    case TypeTag::String:
      if (number == 'f' || number == 'g') return nullptr;
      if (auto digits = number_reader<std::int64_t>(number)) {
        return std::make_unique<DigitsReader>(std::move(digits), number == 'L');
      }
      return format == "u" || format == "vu" || format == "U" ? bytes_reader(format) : nullptr;
    case TypeTag::Raw:
      return format == "z" || format == "vz" || format == "Z" || format.starts_with("w:") ? bytes_reader(format)
                                                                                          : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

Status ColumnReader::set(const ArrowArray& array) {
  array_ = &array;
  return Status::ok();
}

bool ColumnReader::is_null(std::int64_t row) const {
  return array_->null_count != 0 && array_->n_buffers > 0 && array_->buffers[0] != nullptr &&
         !bit(array_->buffers[0], array_->offset + row);
}

Result<std::unique_ptr<ColumnReader>> ColumnReader::make(const ArrowSchema& from, const DataType& type) {
  if (from.dictionary != nullptr) {
    auto index = number_reader<std::int64_t>(from.format[0]);
    if (index == nullptr) return no_reader(from, type);
    FJORD_TRY_ASSIGN(auto values, make(*from.dictionary, type));
    return std::unique_ptr<ColumnReader>(std::make_unique<DictionaryReader>(std::move(index), std::move(values)));
  }
  const std::string_view format = from.format;
  if (format == "n") return std::unique_ptr<ColumnReader>(std::make_unique<NullReader>());
  if (auto scalar = scalar_reader(format, type.tag())) return scalar;
  if (is_collection(type.tag()) || type.tag() == TypeTag::Struct) return make_nested_reader(from, type);
  return no_reader(from, type);
}

Result<TextReader> TextReader::make(const ArrowSchema& from) {
  const std::string_view format = from.dictionary != nullptr ? from.dictionary->format : from.format;
  if (format == "f" || format == "g") {
    return Status(
        StatusCode::InvalidField,
        fmt::format("Arrow's type {} makes no ids: cast the column to texts or integers", arrow_type_name(format)));
  }
  const auto text = DataType::primitive(TypeTag::String);
  FJORD_TRY_ASSIGN(auto reader, ColumnReader::make(from, *text));
  return TextReader(std::move(reader));
}

std::optional<std::string> TextReader::text(std::int64_t row) const {
  std::string text;
  if (reader_->is_null(row) || !reader_->append(row, text)) return std::nullopt;
  return text;
}

}  // namespace fjord
