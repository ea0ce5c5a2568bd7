#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {

/// The tuples of one task: a hash table of keys, each with its values, combined as far as the application can. Keys and
/// uncombined values are in an arena, so a tuple of a known key usually allocates nothing.
///
/// Threading: confined. Lifetime: `application` outlives it.
class TupleTable {
 public:
  TupleTable(Application& application, std::size_t bytes_max) : application_(application), bytes_max_(bytes_max) {}

  /// Adds a tuple. Errors: TooLarge if the tuples need more than `bytes_max` bytes; the message names the setting.
  Status add(std::string_view key, std::string_view value);
  std::size_t keys() const { return entries_.size(); }
  std::size_t bytes() const;

  /// A key for sorted_keys(), which sorts by destination, then by bytes. The destination is the key's hash modulo
  /// `destinations`.
  struct Key {
    std::uint32_t destination = 0;
    std::uint32_t entry = 0;
    std::string_view key;
  };
  std::vector<Key> sorted_keys(std::uint32_t destinations) const;
  /// Stores the values of a key in `values`, sorted by their bytes. Views are valid until the table changes.
  void sorted_values(const Key& key, std::vector<std::string_view>& values) const;

 private:
  struct More {
    const More* next = nullptr;
    std::string_view value;
  };
  struct Entry {
    std::uint64_t hash = 0;
    std::string_view key;
    std::string first;           ///< The value that combine() merges into.
    const More* more = nullptr;  ///< List of values that were not combined.
  };

  char* allocate(std::size_t size, std::size_t alignment);
  std::string_view copy(std::string_view bytes);
  void grow();

  Application& application_;
  std::size_t bytes_max_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  ///< Index of an entry plus one; 0: free. The size is a power of two.
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::size_t value_bytes_ = 0;  ///< Heap bytes of the values kept in the table.
};

}  // namespace fjord::mapreduce
