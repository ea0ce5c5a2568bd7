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
  /// How deep parentheses and negations may be nested, and how many functions a chain may have.
  static constexpr int kDepthMax = 256;
  /// How many literals, fields, parts of the id and types there may be.
  static constexpr int kLeavesMax = 10000;
  static constexpr int kRegexesMax = 32;

  /// Selects every document; the same as parse("true").
  Selection();

  /// A text of white space alone selects every document. Errors: InvalidSelection with the column, what was found and
  /// what was expected; also for types and fields that `repo` does not know.
  static Result<Selection> parse(std::string_view text, const DocumentTypeRepo& repo);
  /// The same, where names of fields of `type` may also stand without the type: "year > 1990".
  static Result<Selection> parse(std::string_view text, const DocumentTypeRepo& repo, const DocumentType& type);

  /// Reads the view in place, without allocation unless a function or a regular expression needs one.
  Match evaluate(const DocumentView& document) const;
  /// Where only the id is at hand, as for a remove: fields are Invalid. `type_id` 0: by the type that the id names; an
  /// id of an old scheme names none, and the test for a type is Invalid then.
  Match evaluate_id(std::string_view document_id, std::uint32_t type_id = 0) const;
  /// Invalid counts as no match.
  bool matches(const DocumentView& document) const { return evaluate(document) == Match::True; }
  bool matches_id(std::string_view document_id) const { return evaluate_id(document_id) == Match::True; }

  /// The same selection in which now() is this time, in seconds since 1970. There is no clock in a selection: without
  /// this, now() is Invalid.
  Selection with_now(std::int64_t seconds) const;
  /// True if the selection has now() in it.
  bool needs_now() const;

  /// True if a field is named that is stored in the body part; without it evaluate() may be given views without a body.
  bool needs_body() const;
  /// True if it matches every document, whatever it holds.
  bool is_trivial() const;
  /// The ids of the only types whose documents can match, rising; null if there is no such limit. Types of a later
  /// schema that inherit one of them are not in it.
  const std::vector<std::uint32_t>* possible_types() const;

  /// The only buckets in which documents can match, of any number of bits, in the order of the bucket tree, none inside
  /// another; null if there is no such limit. It follows from what is asked of `id`, `id.user`, `id.group` and
  /// `id.bucket`.
  const std::vector<BucketId>* possible_buckets() const;
  /// False if no document in this bucket can match, so that it need not be visited.
  bool may_match(BucketId bucket) const;
  /// False if no document of this name can match, so that it need not be read.
  bool may_match(const GlobalId& gid) const { return may_match(bucket_of(gid, BucketId::kUsedBitsMax)); }

  /// Canonical text; parses back to an equal selection.
  std::string to_string() const;

 private:
  explicit Selection(std::shared_ptr<const selection::Compiled> compiled);

  std::shared_ptr<const selection::Compiled> compiled_;
  std::optional<std::int64_t> now_;
};

inline std::ostream& operator<<(std::ostream& out, const Selection& selection) { return out << selection.to_string(); }

}  // namespace fjord
