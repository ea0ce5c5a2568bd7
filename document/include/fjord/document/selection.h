#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document.h"
#include "fjord/document/document_id.h"
#include "fjord/document/document_type.h"

namespace fjord {

namespace selection {
struct Compiled;
}

/// Three-valued result of a selection. Invalid: the selection has no meaning for this document, e.g. it compares a
/// string with a number, or names a field that the document's type lacks.
enum class Match : std::uint8_t { False, True, Invalid };

/// "False", "True", "Invalid".
std::string_view to_string(Match match);
inline std::ostream& operator<<(std::ostream& out, Match match) { return out << to_string(match); }

/// A compiled condition on documents. document/SELECTION.md describes the language. Names of types and fields are
/// looked up once, when parsing.
///
/// A value: immutable, cheap to copy, readable from any thread. It does not need the repo after parsing.
class Selection {
 public:
  static constexpr std::size_t kBytesMax = 1 << 20;
  /// Maximum nesting depth of parentheses and negations, and maximum length of a chain of functions.
  static constexpr int kDepthMax = 256;
  /// Maximum number of literals, fields, parts of the id and types.
  static constexpr int kLeavesMax = 10000;
  static constexpr int kRegexesMax = 32;
  /// Maximum number of instructions of the program that a regular expression is compiled to.
  static constexpr std::size_t kRegexInstructionsMax = 500;
  /// Maximum size of a text in which a regular expression is searched for.
  static constexpr std::size_t kRegexTextMax = std::size_t{1} << 20;
  /// Maximum size of a glob: of a text with a `*` or `?`.
  static constexpr std::size_t kGlobBytesMax = 1024;
  /// Maximum number of steps of one evaluation. A step is about a nanosecond of work: each byte and each element that
  /// is looked at counts.
  static constexpr std::uint64_t kStepsMax = std::uint64_t{3} << 19;
  /// Steps after which a thread that serves others pauses between two documents.
  static constexpr std::uint64_t kPauseSteps = std::uint64_t{1} << 20;

  /// Selects every document; the same as parse("true").
  Selection();

  /// A text of only white space selects every document. Errors: InvalidSelection with the column, what was found and
  /// what was expected; also for types and fields that `repo` does not know.
  static Result<Selection> parse(std::string_view text, const DocumentTypeRepo& repo);
  /// Parses a text in which fields of `type` may also be named without the type: "year > 1990".
  static Result<Selection> parse(std::string_view text, const DocumentTypeRepo& repo, const DocumentType& type);

  /// Evaluates the view in place. Allocates only if a function or a pattern needs memory. Adds the steps that it took
  /// to `steps`. Errors: InvalidSelection, with the id, if the document needs more than kStepsMax steps.
  Result<Match> try_evaluate(const DocumentView& document, std::uint64_t* steps = nullptr) const;
  /// As try_evaluate(), but Invalid for a document that needs too many steps.
  Match evaluate(const DocumentView& document, std::uint64_t* steps = nullptr) const;
  /// Evaluates the id alone, as for a remove: fields are Invalid. If `type_id` is 0, the id names the type; an id of an
  /// old scheme names none, and a test for a type is then Invalid. `steps` as for try_evaluate().
  Match evaluate_id(std::string_view document_id, std::uint32_t type_id = 0, std::uint64_t* steps = nullptr) const;
  /// True only for Match::True: Invalid counts as no match.
  bool matches(const DocumentView& document) const { return evaluate(document) == Match::True; }
  bool matches_id(std::string_view document_id) const { return evaluate_id(document_id) == Match::True; }

  /// A copy in which now() is `seconds` since 1970. A selection has no clock: without this call now() is Invalid.
  Selection with_now(std::int64_t seconds) const;
  /// True if the selection contains now().
  bool needs_now() const;

  /// True if the selection names a field of the body part. If false, evaluate() accepts views without a body.
  bool needs_body() const;
  /// True if the selection matches every document.
  bool is_trivial() const;
  /// The ids of the only types whose documents can match, in ascending order; null if any type can match. The list
  /// lacks types that a later schema derives from them.
  const std::vector<std::uint32_t>* possible_types() const;

  /// The only buckets in which documents can match, with any number of bits, in the order of the bucket tree, none
  /// inside another. Null if there is no such limit. The limit follows from the conditions on `id`, `id.user`,
  /// `id.group` and `id.bucket`.
  const std::vector<BucketId>* possible_buckets() const;
  /// False if no document in this bucket can match, so the bucket need not be visited.
  bool may_match(BucketId bucket) const;
  /// False if the document with this id cannot match, so it need not be read.
  bool may_match(const GlobalId& gid) const { return may_match(bucket_of(gid, BucketId::kUsedBitsMax)); }

  /// Canonical text, which parses to an equal selection.
  std::string to_string() const;

 private:
  explicit Selection(std::shared_ptr<const selection::Compiled> compiled);

  std::shared_ptr<const selection::Compiled> compiled_;
  std::optional<std::int64_t> now_;
};

inline std::ostream& operator<<(std::ostream& out, const Selection& selection) { return out << selection.to_string(); }

}  // namespace fjord
