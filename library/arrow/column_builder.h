#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/document/document_type.h"
#include "fjord/library/arrow_abi.h"

namespace fjord {

/// The bitmap of the rows that are not null. It takes no memory until the first null.
class Bitmap {
 public:
  void add(bool bit) {
    if (!bit && zeros_ == 0) bits_.assign(rows_ / 8 + 1, '\xff');
    if (!bit || zeros_ != 0) {
      if (rows_ / 8 >= bits_.size()) bits_.push_back('\xff');
      if (!bit) bits_[rows_ / 8] = static_cast<char>(bits_[rows_ / 8] & ~(1 << rows_ % 8));
    }
    zeros_ += bit ? 0 : 1;
    ++rows_;
  }
  std::size_t rows() const { return rows_; }
  std::size_t zeros() const { return zeros_; }
  /// Returns the bitmap, empty without a zero, and begins a new one.
  std::string take() {
    rows_ = zeros_ = 0;
    return std::exchange(bits_, {});
  }

 private:
  std::string bits_;
  std::size_t rows_ = 0;
  std::size_t zeros_ = 0;
};

/// Builds one column, or the children of one, from values in their wire form.
class ColumnBuilder {
 public:
  static std::unique_ptr<ColumnBuilder> make(const DataType& type);
  virtual ~ColumnBuilder() = default;

  /// Returns false if the value is malformed or of another type; the column cannot be used then.
  virtual bool append(const FieldSlice& value) = 0;
  virtual void append_null() = 0;
  /// Moves the column out and begins a new one.
  virtual void finish(ArrowArray* out) = 0;

  std::size_t rows() const { return valid_.rows(); }

 protected:
  /// Exports buffers and children, with the bitmap before them.
  void export_column(std::vector<std::string> buffers, std::vector<ArrowArray> children, ArrowArray* out);

  Bitmap valid_;
};

/// A column of texts or bytes.
class TextBuilder : public ColumnBuilder {
 public:
  explicit TextBuilder(TypeTag tag) : tag_(tag) {}
  bool append(const FieldSlice& value) override;
  void append_text(std::string_view text);
  void append_null() override;
  void finish(ArrowArray* out) override;

 private:
  TypeTag tag_;
  std::string offsets_;
  std::string bytes_;
  std::size_t last_rows_ = 0;  ///< Sizes of the batch before, which the next one will have, too.
  std::size_t last_bytes_ = 0;
};

/// A column of integers of 64 bits.
class LongBuilder : public ColumnBuilder {
 public:
  bool append(const FieldSlice& value) override;
  void append_number(std::int64_t number);
  void append_null() override;
  void finish(ArrowArray* out) override;

 private:
  std::string values_;
};

/// Sends the fields of a document or of a struct to their columns.
class FieldRouter {
 public:
  /// `column` outlives the router. Fields without a column are passed over.
  void add(const Field& field, ColumnBuilder& column);
  /// Call after the last add().
  void sort();
  /// Appends the values of `fields`. Returns what is wrong with them; empty if nothing is.
  std::string route(std::string_view fields);
  /// Appends null to the columns that have fewer than `rows` rows.
  void fill(std::size_t rows);

 private:
  struct Target {
    std::uint32_t id;
    const Field* field;
    ColumnBuilder* column;
  };
  std::vector<Target> targets_;  ///< By rising id, the order of fields in their wire form.
};

}  // namespace fjord
