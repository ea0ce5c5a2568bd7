#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fjord/common/status.h"
#include "fjord/document/docblock.h"

namespace fjord::gateway {

/// The documents of an answer that cannot be written as JSON: damaged ones, or of a type that the cluster does not
/// know. Each costs itself and not the rest of a visit. Threading: none of its own.
class UnreadableDocuments {
 public:
  /// Takes the document if `error` is one of the document itself. Returns other errors, which are those of the visit.
  Status take(const EntryView& entry, const Status& error);
  std::size_t count() const { return messages_.size(); }
  /// Forgets all but the first `count`.
  void cut_to(std::size_t count) { messages_.resize(count); }
  /// Returns `,"unreadable":[{"id":...,"message":...},...]`; empty without any.
  std::string member() const;

 private:
  std::vector<std::string> messages_;  ///< As JSON.
};

/// Returns {"id":...,"message":...} of a document that cannot be written.
std::string unreadable_json(const EntryView& entry, const Status& error);

}  // namespace fjord::gateway
