#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"

namespace fjord::search {

/// A set of slices: a slice is a bucket of as many bits as a cluster state distributes by. In messages it is a string
/// with a bit for each slice, from the lowest bit of the first byte.
class SliceSet {
 public:
  /// A cluster with more distribution bits cannot be searched.
  static constexpr unsigned kBitsMax = 16;

  explicit SliceSet(unsigned bits) : bits_(bits), set_((std::size_t{1} << bits) / 8 + 1, '\0') {}
  /// Reads the string of a message, and ignores bits behind the last slice.
  SliceSet(unsigned bits, std::string_view bytes);

  unsigned bits() const { return bits_; }
  std::size_t slices() const { return std::size_t{1} << bits_; }
  bool contains(std::size_t slice) const { return ((set_[slice / 8] >> (slice % 8)) & 1) != 0; }
  void remove(std::size_t slice) { set_[slice / 8] = static_cast<char>(set_[slice / 8] & ~(1 << (slice % 8))); }
  void add(std::size_t slice) { set_[slice / 8] = static_cast<char>(set_[slice / 8] | (1 << (slice % 8))); }
  std::size_t count() const;
  bool empty() const { return count() == 0; }
  const std::string& bytes() const { return set_; }

  /// Returns the slice of a document.
  std::size_t slice_of(const GlobalId& gid) const { return gid.location_bits() & (slices() - 1); }
  BucketId bucket(std::size_t slice) const { return {bits_, slice}; }

  /// Calls `use` with the number of each slice, in rising order.
  template <typename F>
  void for_each(F use) const {
    for (std::size_t slice = 0; slice < slices(); ++slice) {
      if (contains(slice)) use(slice);
    }
  }

 private:
  unsigned bits_;
  std::string set_;
};

}  // namespace fjord::search
