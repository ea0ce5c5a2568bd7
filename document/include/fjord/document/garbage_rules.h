#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "fjord/document/document.h"
#include "fjord/document/selection.h"

namespace fjord {

/// Decides by DocumentType::keep_while which documents are garbage.
///
/// A value: immutable, readable from any thread. It does not need the repo after construction.
class GarbageRules {
 public:
  /// OK if the selections of all types parse. A deployment of schemas checks this. Errors: InvalidArgument.
  static Status check(const DocumentTypeRepo& types);

  /// `now_seconds`: seconds since 1970, the value of now() in the selections. A type whose selection does not parse
  /// keeps all of its documents. So deployed schemas stay usable if a later version parses selections more strictly.
  GarbageRules(const DocumentTypeRepo& types, std::int64_t now_seconds);

  /// True if no document can be garbage.
  bool empty() const { return keep_by_type_.empty(); }
  /// True if is_garbage() needs the body.
  bool needs_body() const;
  /// True if the selection of the document's own type is false for it. A document is kept if the selection has no
  /// meaning for it, for instance because a compared field is not set.
  bool is_garbage(const DocumentView& document, std::uint64_t* steps = nullptr) const;

  /// The selection that matches the garbage of this type: a condition for removing it. Empty: the type has no garbage.
  static std::string condition(const DocumentType& type);

 private:
  std::map<std::uint32_t, Selection> keep_by_type_;
};

}  // namespace fjord
