#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregate/scalar.h"
#include "columns/column_content.h"

/// The values that a job took from the documents of a bucket, kept for later jobs
/// (docs/design/0024-columns.md).
namespace fjord::mapreduce {

/// The values of one expression for the documents of a bucket, in the order in which these were read. All values are
/// canonical (scalar.h).
///
/// Integers and other numbers are arrays. Texts, and values of different kinds, are numbers of entries of a dictionary;
/// each entry occurs. Cannot be copied, because entries are views of bytes that the column owns.
class Column {
 public:
  struct Entry {
    std::string_view key;    ///< put_scalar() of the value.
    std::uint64_t hash = 0;  ///< hash64() of `key`.
    ScalarView value;        ///< A text is a view of `key`.
  };

  Column() = default;
  Column(Column&&) = default;
  Column& operator=(Column&&) = default;

  std::size_t rows() const { return rows_; }
  ScalarView at(std::size_t row) const;
  /// Appends put_scalar() of the value.
  void append_key(std::size_t row, std::string& key) const;

  bool has_dictionary() const { return form_ == Form::Dictionary; }
  const std::vector<Entry>& dictionary() const { return dictionary_; }
  std::uint32_t code(std::size_t row) const { return codes_[row]; }
  /// The values if all of them are integers; null otherwise.
  const std::int64_t* integers() const { return form_ == Form::Integers && !has_absent_ ? integers_.data() : nullptr; }

  /// Bytes in memory.
  std::size_t bytes() const;

 private:
  friend class ColumnBuilder;
  /// In the order in which a column that is built changes from one to the next.
  enum class Form : std::uint8_t { Integers, Numbers, Dictionary };

  Form form_ = Form::Integers;
  bool has_absent_ = false;  ///< Integers: `absent_` has a place for each row.
  std::size_t rows_ = 0;
  std::vector<std::int64_t> integers_;
  std::vector<bool> absent_;
  std::vector<double> numbers_;  ///< Absent values are NaN.
  std::vector<std::uint32_t> codes_;
  std::vector<Entry> dictionary_;
  std::vector<std::unique_ptr<char[]>> keys_;  ///< The bytes of the entries' keys.
  std::size_t keys_bytes_ = 0;
};

/// Makes a column, value by value.
class ColumnBuilder {
 public:
  void add(const ScalarView& value);
  std::size_t rows() const { return column_.rows_; }
  std::size_t bytes() const;
  /// Called last.
  Column finish();

 private:
  bool add_integer(const ScalarView& value);
  bool add_number(const ScalarView& value);
  void add_code(const ScalarView& value);
  /// Returns the number of the entry with that key; makes one if there is none.
  std::uint32_t code_of(std::string_view key);
  /// Returns a copy of the bytes, which lives as long as the column.
  std::string_view keep(std::string_view key);
  void grow();
  void become_numbers();
  void become_dictionary();

  Column column_;
  /// A hash table of the dictionary: the number of an entry plus one; 0: free. The size is a power of two.
  std::vector<std::uint32_t> slots_;
  char* free_ = nullptr;  ///< Room for keys.
  std::size_t free_bytes_ = 0;
  std::string key_;
};

/// Columns of the documents of a bucket that match a selection.
struct BucketColumns {
  ColumnContent content;         ///< The bucket's content that they stand for.
  std::uint64_t documents = 0;   ///< Number of documents: rows of each column.
  std::uint64_t read_bytes = 0;  ///< Bytes of these documents.
  std::shared_ptr<const std::vector<Column>> columns;

  std::size_t bytes() const;
};

/// Makes the columns of one bucket while its documents are mapped.
class ColumnsBuilder {
 public:
  explicit ColumnsBuilder(std::size_t columns) : columns_(columns) {}

  /// Adds the value of the next document to a column. Each document gives one value to each column.
  void add(std::size_t column, const ScalarView& value) { columns_[column].add(value); }
  std::size_t bytes() const;
  /// Returns the columns without `content`. `read_bytes` is the size of the documents. Called last.
  BucketColumns finish(std::uint64_t read_bytes);

 private:
  std::vector<ColumnBuilder> columns_;
};

}  // namespace fjord::mapreduce
