#pragma once

#include <memory>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::selection {

/// The right side of `=` or `=~`, compiled once. Immutable; may be used by several threads at a time.
class Pattern {
 public:
  virtual ~Pattern() = default;
  virtual bool matches(std::string_view text) const = 0;

  /// `*` stands for any bytes, `?` for one character of UTF-8; the whole text has to match.
  static std::unique_ptr<const Pattern> glob(std::string_view text);
  /// In the syntax of RE2; a part of the text has to match. Takes time proportional to the text.
  /// Errors: InvalidSelection, without a column.
  static Result<std::unique_ptr<const Pattern>> regex(std::string_view text);
};

/// As Pattern::glob(), for a pattern that is known only now. Takes at most time proportional to the product of the
/// sizes.
bool glob_matches(std::string_view text, std::string_view pattern);

}  // namespace fjord::selection
