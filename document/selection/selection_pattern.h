#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "fjord/common/result.h"
#include "selection_budget.h"

namespace fjord::selection {

/// The right side of `=` or `=~`, compiled once. Immutable; several threads may use it at once.
class Pattern {
 public:
  virtual ~Pattern() = default;
  /// Takes time proportional to the text. The result means nothing if the budget is exceeded afterwards.
  virtual bool matches(std::string_view text, Budget& budget) const = 0;

  /// `*` matches any bytes, `?` one character of UTF-8. The whole text must match. Errors: InvalidSelection, without a
  /// column, for more than Selection::kGlobBytesMax bytes with a `*` or `?`.
  static Result<std::unique_ptr<const Pattern>> glob(std::string_view text);
};

/// A regular expression in RE2 syntax; a match of a part of the text suffices.
class Regex : public Pattern {
 public:
  /// Errors: InvalidSelection, without a column: no regular expression, or a larger one than
  /// Selection::kRegexInstructionsMax.
  static Result<std::unique_ptr<Regex>> compile(std::string_view text);

  /// Number of instructions of its program.
  virtual std::size_t instructions() const = 0;
  /// Tells it, before its first use, how many expressions the selection has, which share memory for their automata.
  /// What a text can fill in one evaluation takes time, so it does not grow with their number.
  virtual void share_memory(std::size_t expressions) = 0;
};

/// Maximum number of expressions of a selection times the instructions of the largest one: so much fits into the memory
/// that they share.
constexpr std::size_t kInstructionsMax = 1700;

/// Like Pattern::glob(), for a pattern that is not constant; the budget is exceeded if the pattern is too long.
bool glob_matches(std::string_view text, std::string_view pattern, Budget& budget);

}  // namespace fjord::selection
