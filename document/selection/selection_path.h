#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "selection_lexer.h"
#include "selection_value.h"

namespace fjord::selection {

/// Reads the steps of a path after the name of a field: `.member`, `[index]`, `{key}`. A step that cannot fit any value
/// of the field's type is an error, so a selection with a mistyped path never silently matches nothing. Hence a path is
/// at most as long as the type is deep.
class PathParser {
 public:
  /// `lexer` is directly after the name of `field`, which was written as `written`. Both outlive the parser.
  PathParser(Lexer& lexer, const Field& field, std::string written)
      : lexer_(lexer), type_(field.type.get()), written_(std::move(written)) {}

  /// Reads all steps. If the path ends with `.name(`, returns the name of the function and leaves the lexer after it.
  /// Errors: InvalidSelection with the column of the step that does not fit.
  Result<std::optional<Token>> parse();

  /// The steps that were read.
  std::vector<PathStep> take_steps() { return std::move(steps_); }

 private:
  const Token& current() const { return lexer_.current(); }
  Status unexpected(std::string_view expected) const;
  Status misfit(std::size_t column, std::string_view what, std::string_view expected) const;
  Result<std::optional<Token>> parse_step();
  Result<PathStep> parse_member(const Token& name) const;
  Result<PathStep> parse_index();
  Result<PathStep> parse_key();
  /// Converts a key of type integer or bool to its number. Errors: InvalidSelection.
  Status fit_key(PathStep& step, std::size_t column) const;
  void add(PathStep step);

  Lexer& lexer_;
  const DataType* type_;  ///< Type that the steps so far lead to; of an array also the type of one of its elements.
  std::string written_;   ///< The path so far, for error messages.
  std::vector<PathStep> steps_;
};

}  // namespace fjord::selection
