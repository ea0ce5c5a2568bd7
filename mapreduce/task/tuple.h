#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord::mapreduce {

/// A key with the values of its tuples, combined as far as the application can.
struct Tuple {
  std::uint32_t destination = 0;
  std::string_view key;
  std::vector<std::string_view> values;  ///< Sorted by their bytes.
};

/// A sequence of tuples in which each key occurs once.
class TupleSource {
 public:
  virtual ~TupleSource() = default;
  /// Reads the next tuple; returns false at the end. Views are valid until the next call. Errors: those of the medium.
  virtual Result<bool> next(Tuple& tuple) = 0;
};

}  // namespace fjord::mapreduce
