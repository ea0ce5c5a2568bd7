#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fjord/document/document.h"
#include "fjord/document/selection.h"

namespace fjord {

/// Which documents nobody wants to keep any more, by DocumentType::keep_while.
///
/// A value: immutable, readable from any thread; does not keep the repo that it was made from.
class GarbageRules {
 public:
  /// OK if the selections of all types can be read, as a deployment of schemas has to check. Errors: InvalidArgument.
  static Status check(const DocumentTypeRepo& types);

  /// `now_seconds`: since 1970, what now() means in the selections. A type whose selection cannot be read keeps all of
  /// its documents: schemas that were deployed stay usable when a later version reads selections more strictly.
  GarbageRules(const DocumentTypeRepo& types, std::int64_t now_seconds);

  /// True if no document is garbage, whatever it holds.
  bool empty() const { return keep_by_type_.empty(); }
  /// True if is_garbage() has to be given the body.
  bool needs_body() const;
  /// True if the selection of the document's own type is false for it. One that has no meaning for the document, for
  /// instance because a field that it compares is not set, keeps it.
  bool is_garbage(const DocumentView& document) const;

  /// The selection that holds for documents of the type that are garbage: a condition for their removal. Empty: none
  /// is.
  static std::string condition(const DocumentType& type);

 private:
  std::map<std::uint32_t, Selection> keep_by_type_;
};

}  // namespace fjord
