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

/// The result of a value expression for one document. Lifetime: the text is a view of the document, the expression or
/// the scratch passed to evaluate().
struct ScalarView {
  enum class Kind : std::uint8_t { Absent, Integer, Double, String };

  /// Absent: the field is not set, or the value has no meaning (also NaN), or it takes too much time or memory.
  Kind kind = Kind::Absent;
  std::int64_t integer = 0;
  double number = 0.0;
  std::string_view string;
};

/// A compiled expression of the selection language that yields a single value: a field, a part of the id, a literal,
/// arithmetic, functions (document/SELECTION.md, `sum` of the grammar). Fields of the given type may be named without
/// it: `price * 2` equals `music.price * 2`.
///
/// A value: immutable, cheap to copy, readable from any thread. It does not need the repo after compiling.
class ValueExpression {
 public:
  /// Static type of the result. Integer: an integer or Absent. Number: an integer, a floating-point number or Absent.
  /// Bool: the integers 0 and 1.
  enum class Kind : std::uint8_t { Any, Integer, Number, String, Bool };

  /// Memory for computed texts, reused for one document after another.
  class Scratch {
   public:
    Scratch();
    ~Scratch();

   private:
    friend class ValueExpression;
    std::unique_ptr<selection::Scratch> scratch_;
  };

  /// Errors: InvalidSelection with the column, what was found and what was expected; also for now() and for expressions
  /// without a single value (a whole collection or struct, id.bucket).
  static Result<ValueExpression> compile(std::string_view text, const DocumentTypeRepo& types,
                                         const DocumentType& type);

  /// Allocates only for computed texts of more than 512 bytes. clear(scratch) invalidates the views that earlier calls
  /// returned.
  ScalarView evaluate(const DocumentView& document, Scratch& scratch) const;
  /// Frees the scratch for the next document and invalidates the views into it.
  static void clear(Scratch& scratch);

  Kind kind() const { return kind_; }
  /// True if the expression names a field of the body part. If false, evaluate() accepts views without a body.
  bool needs_body() const { return needs_body_; }
  /// Canonical text, which compiles to an equal expression.
  std::string to_string() const;

 private:
  ValueExpression(std::shared_ptr<const selection::Expression> root, Kind kind, bool needs_body)
      : root_(std::move(root)), kind_(kind), needs_body_(needs_body) {}

  std::shared_ptr<const selection::Expression> root_;
  Kind kind_;
  bool needs_body_;
};

}  // namespace fjord
