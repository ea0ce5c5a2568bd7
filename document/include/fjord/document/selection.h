#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

namespace fjord {

namespace selection {
class Condition;
}

/// Three-valued result of a selection. Invalid: it has no meaning for this document, e.g. a comparison of a string with
/// a number, or of a field that a document of this type does not have.
enum class Match : std::uint8_t { False, True, Invalid };

/// "False", "True", "Invalid".
std::string_view to_string(Match match);
inline std::ostream& operator<<(std::ostream& out, Match match) { return out << to_string(match); }

/// A compiled condition on documents; the language is described in document/SELECTION.md. Names of types and fields are
/// looked up once, when parsing.
///
/// A value: immutable, cheap to copy, readable from any thread; does not keep or need the repo it was parsed with.
class Selection {
 public:
  static constexpr std::size_t kBytesMax = 1 << 20;
  /// How deep parentheses and negations may be nested.
  static constexpr int kDepthMax = 256;

  /// Selects every document; the same as parse("true").
  Selection();

  /// A text of white space alone selects every document. Errors: InvalidSelection with the column, what was found and
  /// what was expected; also for types and fields that `repo` does not know.
  static Result<Selection> parse(std::string_view text, const DocumentTypeRepo& repo);

  /// Reads the view in place, without allocation.
  Match evaluate(const DocumentView& document) const;
  /// Where only the id is at hand, as for a remove: fields are Invalid. `type_id` 0: by the type that the id names; an
  /// id of an old scheme names none, and the test for a type is Invalid then.
  Match evaluate_id(std::string_view document_id, std::uint32_t type_id = 0) const;
  /// Invalid counts as no match.
  bool matches(const DocumentView& document) const { return evaluate(document) == Match::True; }
  bool matches_id(std::string_view document_id) const { return evaluate_id(document_id) == Match::True; }

  /// True if a field is named that is stored in the body part; without it evaluate() may be given views without a body.
  bool needs_body() const { return needs_body_; }
  /// True if it matches every document, whatever it holds.
  bool is_trivial() const;
  /// The ids of the only types whose documents can match, rising; null if there is no such limit. Types of a later
  /// schema that inherit one of them are not in it.
  const std::vector<std::uint32_t>* possible_types() const { return limits_types_ ? &possible_types_ : nullptr; }
  /// Canonical text; parses back to an equal selection.
  std::string to_string() const;

 private:
  explicit Selection(std::shared_ptr<const selection::Condition> root);

  std::shared_ptr<const selection::Condition> root_;
  std::vector<std::uint32_t> possible_types_;
  bool limits_types_ = false;
  bool needs_body_ = false;
};

inline std::ostream& operator<<(std::ostream& out, const Selection& selection) { return out << selection.to_string(); }

}  // namespace fjord
