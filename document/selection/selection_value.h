#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fjord/document/bucket_id.h"
#include "fjord/document/document.h"
#include "fjord/document/selection.h"
#include "selection_pattern.h"

namespace fjord::selection {

enum class CompareOp : std::uint8_t { Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, Glob, Regex };

/// "==", "=", "=~", ...
std::string_view to_string(CompareOp op);

/// One step of a field path after the field itself.
struct PathStep {
  enum class Kind : std::uint8_t { Member, Index, Key };
  Kind kind = Kind::Member;
  std::string name;             ///< Member: name as written. Key: as written, without quotes.
  std::uint32_t member_id = 0;  ///< Id of the struct's member.
  std::int64_t number = 0;      ///< Index, or Key if `is_number`.
  bool is_number = false;       ///< Key: the map's keys are of an integer or bool type.
};

/// The result of an expression for one document. It refers to the bytes of the document, of the expression and of the
/// evaluation's scratch, and never allocates.
struct Value {
  enum class Kind : std::uint8_t {
    Invalid,
    Null,
    Absent,  ///< A part that the id lacks. Compared with null it acts as null; other comparisons are Invalid.
    Integer,
    Double,
    String,
    Bucket,  ///< `integer` is the raw form of a bucket; equal to each bucket that contains it.
    Struct,
    Collection,  ///< Elements of an array, or keys of a map or weighted set. Not empty.
    Each,        ///< `steps` applied to each element of the collection `slice`.
  };

  Kind kind = Kind::Invalid;
  std::int64_t integer = 0;
  double number = 0.0;
  std::string_view string;
  const Pattern* pattern = nullptr;  ///< Compiled form of a String on the right side of a glob or regular expression.
  FieldSlice slice;
  std::span<const PathStep> steps;

  static Value invalid() { return {}; }
  static Value null();
  static Value absent();
  static Value of(std::int64_t integer);
  static Value of_double(double number);
  static Value of_string(std::string_view string);
  static Value of_bucket(BucketId bucket);
};

/// Follows a path from the value of its field. A step that does not fit the value gives Invalid; a missing element, key
/// or member gives Null.
Value resolve(const FieldSlice& slice, std::span<const PathStep> steps, Budget& budget);

/// Compares two values. If one side has several values, one match suffices. Several values on both sides, and two
/// structs, are compared element by element, and all must match.
Match compare(const Value& left, CompareOp op, const Value& right, Budget& budget);
Match compare(std::int64_t left, CompareOp op, std::int64_t right);

Match negate(Match match);
Match to_match(bool value);

}  // namespace fjord::selection
