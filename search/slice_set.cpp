#include "fjord/search/slice_set.h"

#include <algorithm>

namespace fjord::search {

SliceSet::SliceSet(unsigned bits, std::string_view bytes) : SliceSet(bits) {
  std::copy_n(bytes.begin(), std::min(bytes.size(), set_.size()), set_.begin());
  for (std::size_t bit = slices(); bit < set_.size() * 8; ++bit) {
    set_[bit / 8] = static_cast<char>(set_[bit / 8] & ~(1 << (bit % 8)));
  }
}

std::size_t SliceSet::count() const {
  std::size_t count = 0;
  for (const char byte : set_) count += static_cast<std::size_t>(std::popcount(static_cast<unsigned char>(byte)));
  return count;
}

}  // namespace fjord::search
