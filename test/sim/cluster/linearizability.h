#pragma once

#include <cstdint>
#include <vector>

namespace fjord::sim {

/// An operation on one register, whose values are numbers; it holds 0 at first. Every other value is written once.
struct RegisterOperation {
  enum class Kind {
    Read,        ///< Saw `value`.
    ReadOther,   ///< Saw that it is not `expected`.
    Write,       ///< Of `value`.
    TestAndSet,  ///< Saw `expected` and wrote `value`.
  };
  Kind kind = Kind::Read;
  std::int64_t begin_us = 0;
  std::int64_t end_us = 0;
  std::uint32_t value = 0;
  std::uint32_t expected = 0;
  bool optional = false;  ///< May have happened at any time after its begin, or not at all.
};

enum class Linearizability { Yes, No, Undecided };

/// Whether there is an order that explains all, in which nothing comes before what ended when it had not begun.
/// Undecided if more than `steps_max` steps would be needed: the worst case is exponential, histories of a register
/// with a few clients are nearly linear.
Linearizability check_register(std::vector<RegisterOperation> operations, std::uint64_t steps_max = 300'000);

}  // namespace fjord::sim
