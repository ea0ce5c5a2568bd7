#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "selection_lexer.h"
#include "selection_value.h"

namespace fjord::selection {

/// Reads the steps of a path behind the name of a field: `.member`, `[index]`, `{key}`. A step that no value of the
/// field's type can take is an error, so that a selection with a mistyped path does not silently match nothing. So a
/// path is no longer than values of the type are deep.
class PathParser {
 public:
  /// `lexer` stands behind the name of `field`, which was written as `written`. Both outlive the parser.
  PathParser(Lexer& lexer, const Field& field, std::string written)
      : lexer_(lexer), type_(field.type.get()), written_(std::move(written)) {}

  /// Reads as many steps as there are. Returns the name of a function if the path ends with `.name(`; the lexer stands
  /// behind that name. Errors: InvalidSelection with the column of the step that does not fit.
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
  /// Sets the number of a key that stands for an integer or a bool.
  Status fit_key(PathStep& step, std::size_t column) const;
  void add(PathStep step);

  Lexer& lexer_;
  const DataType* type_;  ///< What the steps so far lead to; of an array also for one of its elements.
  std::string written_;   ///< The path so far, for messages.
  std::vector<PathStep> steps_;
};

}  // namespace fjord::selection
