#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

namespace fjord {

namespace selection {
class Expression;
class Scratch;
}  // namespace selection

/// What a value expression yields for one document. The text is a view of the document, of the expression or of the
/// scratch that was evaluated with.
struct ScalarView {
  enum class Kind : std::uint8_t { Absent, Integer, Double, String };

  Kind kind = Kind::Absent;  ///< Absent: the field is not set, or the value has no meaning (also NaN).
  std::int64_t integer = 0;
  double number = 0.0;
  std::string_view string;
};

/// A compiled expression of the selection language that yields a single value: a field, a part of the id, a literal,
/// arithmetic, functions (document/SELECTION.md, `sum` of the grammar). Fields of the given type need not be named with
/// their type: `price * 2` beside `music.price * 2`.
///
/// A value: immutable, cheap to copy, readable from any thread; does not keep or need the repo it was compiled with.
class ValueExpression {
 public:
  /// What is known before there is a document. Integer: an integer or Absent; Number: also floating-point ones. Bool:
  /// the integers 0 and 1.
  enum class Kind : std::uint8_t { Any, Integer, Number, String, Bool };

  /// Memory for texts that are computed, reused from document to document.
  class Scratch {
   public:
    Scratch();
    ~Scratch();

   private:
    friend class ValueExpression;
    std::unique_ptr<selection::Scratch> scratch_;
  };

  /// Errors: InvalidSelection with the column, what was found and what was expected; also for what yields no single
  /// value (a whole collection or struct, id.bucket) and for now().
  static Result<ValueExpression> compile(std::string_view text, const DocumentTypeRepo& types,
                                         const DocumentType& type);

  /// Without allocation but for texts beyond 512 bytes that are computed. `scratch`: what an earlier call returned a
  /// view of is gone after clear().
  ScalarView evaluate(const DocumentView& document, Scratch& scratch) const;
  /// Makes room for another document.
  static void clear(Scratch& scratch);

  Kind kind() const { return kind_; }
  /// True if a field of the body part is named; else evaluate() may be given views without a body.
  bool needs_body() const { return needs_body_; }
  /// Canonical text; compiles to an equal expression.
  std::string to_string() const;

 private:
  ValueExpression(std::shared_ptr<const selection::Expression> root, Kind kind, bool needs_body)
      : root_(std::move(root)), kind_(kind), needs_body_(needs_body) {}

  std::shared_ptr<const selection::Expression> root_;
  Kind kind_;
  bool needs_body_;
};

}  // namespace fjord
