#pragma once

#include <cstdint>
#include <vector>

namespace fjord::sim {

/// An operation on one register of numbers, which holds 0 at first. Every other value is written once.
struct RegisterOperation {
  enum class Kind {
    Read,        ///< The operation returned `value`.
    ReadOther,   ///< The operation found that the value is not `expected`.
    Write,       ///< The operation wrote `value`.
    TestAndSet,  ///< The operation found `expected` and wrote `value`.
  };
  Kind kind = Kind::Read;
  std::int64_t begin_us = 0;
  std::int64_t end_us = 0;
  std::uint32_t value = 0;
  std::uint32_t expected = 0;
  bool optional = false;  ///< Possibly applied: at any time after its begin, or not at all.
};

enum class Linearizability { Yes, No, Undecided };

/// Checks whether there is a linearization: an order that explains all values read, in which no operation precedes one
/// that ended before it began. Undecided if more than `steps_max` steps would be needed: the worst case is exponential,
/// but histories of a register with a few clients are nearly linear.
Linearizability check_register(std::vector<RegisterOperation> operations, std::uint64_t steps_max = 300'000);

}  // namespace fjord::sim
