#pragma once

#include <memory>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord::selection {

/// The right side of `=` or `=~`, compiled once. Immutable; several threads may use it at once.
class Pattern {
 public:
  virtual ~Pattern() = default;
  virtual bool matches(std::string_view text) const = 0;

  /// `*` matches any bytes, `?` one character of UTF-8. The whole text must match.
  static std::unique_ptr<const Pattern> glob(std::string_view text);
  /// RE2 syntax; a match of a part of the text suffices. Takes time proportional to the text. Errors: InvalidSelection,
  /// without a column.
  static Result<std::unique_ptr<const Pattern>> regex(std::string_view text);
};

/// Like Pattern::glob(), for a pattern that is not constant. Takes time at most proportional to the product of the
/// sizes.
bool glob_matches(std::string_view text, std::string_view pattern);

}  // namespace fjord::selection
