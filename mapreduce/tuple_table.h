#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {

/// The tuples of one task: a hash table of keys, each with its values, combined as far as the application does. Keys
/// and uncombined values lie in an arena, so a tuple of a known key usually allocates nothing.
///
/// Threading: confined. Lifetime: `application` outlives it.
class TupleTable {
 public:
  TupleTable(Application& application, std::size_t bytes_max) : application_(application), bytes_max_(bytes_max) {}

  /// Errors: TooLarge when the tuples need more than `bytes_max`; the message names the setting.
  Status add(std::string_view key, std::string_view value);
  std::size_t keys() const { return entries_.size(); }
  std::size_t bytes() const;

  /// All keys by (destination, bytes), where a key's destination is its hash modulo `destinations`.
  struct Key {
    std::uint32_t destination = 0;
    std::uint32_t entry = 0;
    std::string_view key;
  };
  std::vector<Key> sorted_keys(std::uint32_t destinations) const;
  /// The values of a key by rising bytes. Views live until the table changes.
  void sorted_values(const Key& key, std::vector<std::string_view>& values) const;

 private:
  struct More {
    const More* next = nullptr;
    std::string_view value;
  };
  struct Entry {
    std::uint64_t hash = 0;
    std::string_view key;
    std::string first;           ///< What combine() works on.
    const More* more = nullptr;  ///< Values that were not combined.
  };

  char* allocate(std::size_t size, std::size_t alignment);
  std::string_view copy(std::string_view bytes);
  void grow();

  Application& application_;
  std::size_t bytes_max_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  ///< Index of an entry plus one; 0: free. A power of two.
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::size_t value_bytes_ = 0;  ///< Of `first` beyond what a string holds in itself.
};

}  // namespace fjord::mapreduce
