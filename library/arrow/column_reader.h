#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/library/arrow_abi.h"

namespace fjord {

/// Reads the values of one column of Arrow arrays as values of a document type's field, in their wire form.
///
/// Threading: one thread. Lifetime: an array that was set must live until the next one is set.
class ColumnReader {
 public:
  /// Makes the reader for a column of type `from`. Errors: InvalidField if its values are none of `type`.
  static Result<std::unique_ptr<ColumnReader>> make(const ArrowSchema& from, const DataType& type);
  virtual ~ColumnReader() = default;

  /// Sets the array that the next calls read. Errors: InvalidArgument for one without the parts that its type has.
  virtual Status set(const ArrowArray& array);
  virtual bool is_null(std::int64_t row) const;
  /// Appends the value of the row, which is not null, without tag and length. Errors: InvalidField for a value that
  /// does not fit; part of it may be appended then.
  virtual Status append(std::int64_t row, std::string& out) const = 0;

 protected:
  const ArrowArray* array_ = nullptr;
};

/// Makes the reader for a field of kind Array, WeightedSet, Map or Struct. Errors: as ColumnReader::make().
Result<std::unique_ptr<ColumnReader>> make_nested_reader(const ArrowSchema& from, const DataType& type);

/// Reads a column of texts, or of integers or decimals as their digits.
class TextReader {
 public:
  /// Errors: InvalidField if the column has none of these.
  static Result<TextReader> make(const ArrowSchema& from);
  Status set(const ArrowArray& array) { return reader_->set(array); }
  /// Returns none for null.
  std::optional<std::string> text(std::int64_t row) const;

 private:
  explicit TextReader(std::unique_ptr<ColumnReader> reader) : reader_(std::move(reader)) {}
  std::unique_ptr<ColumnReader> reader_;
};

}  // namespace fjord
