#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/bulk_executor.h"
#include "fjord/common/result.h"

namespace fjord::mapreduce {

/// The results of a job: rows, each a key and a JSON value. A job can have millions of short rows, so they lie one
/// after the other in one piece of memory, as packed rows: the key and the value, each after its length as a varint.
///
/// Threading: confined. Lifetime: what a const method returns is valid until the next change.
class JobRows {
 public:
  struct Row {
    std::string_view key;
    std::string_view value;

    auto operator<=>(const Row&) const = default;
  };

  class Iterator {
   public:
    Iterator(const JobRows& rows, std::size_t at) : rows_(&rows), at_(at) {}
    Row operator*() const { return (*rows_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const JobRows* rows_;
    std::size_t at_;
  };

  JobRows() = default;
  JobRows(std::initializer_list<Row> rows);
  /// Takes packed rows. Errors: Corruption.
  static Result<JobRows> unpack(std::string packed);

  std::size_t size() const { return begins_.size(); }
  bool empty() const { return begins_.empty(); }
  Row operator[](std::size_t row) const;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }
  bool operator==(const JobRows& other) const { return packed_ == other.packed_; }

  void add(std::string_view key, std::string_view value);
  /// Memory of the rows in bytes.
  std::size_t bytes() const { return packed_.size() + begins_.size() * sizeof(begins_[0]); }
  /// Memory of the rows in bytes while sort() or merge() makes a sorted copy of them.
  std::size_t bytes_while_sorted() const { return 2 * bytes() + size() * kPlaceBytes; }
  /// Returns packed rows from `first` on, as many as fit into `bytes_max`, but at least one if there is one. Sets `end`
  /// to the number of the row after them.
  std::string_view packed(std::size_t first, std::size_t bytes_max, std::size_t& end) const;

  /// Sorts the rows by key.
  void sort();
  /// Returns all rows of `parts` sorted by key; empties `parts`. Uses the threads of `bulk`.
  static JobRows merge(std::vector<JobRows>& parts, BulkExecutor& bulk);

 private:
  class Sorting;
  static constexpr std::size_t kPlaceBytes = 24;  ///< What sorting needs for a row beside its copy.

  std::size_t end_of(std::size_t row) const { return row + 1 < begins_.size() ? begins_[row + 1] : packed_.size(); }

  std::string packed_;
  std::vector<std::size_t> begins_;  ///< Where each row begins in `packed_`.
};

}  // namespace fjord::mapreduce
