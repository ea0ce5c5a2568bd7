#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "fjord/common/thread_annotations.h"
#include "fjord/document/docblock.h"
#include "fjord/library/detail/client_core.h"
#include "projection.h"

namespace fjord {

/// Returns a view of the entry's document. Fetches the schemas and replaces `types` if `types` lacks the entry's type.
/// Errors: Corruption; those of ClientCore::refresh().
Result<DocumentView> know_type(ClientCore& core, std::shared_ptr<const DocumentTypeRepo>& types,
                               const EntryView& entry);

/// Returns the document of an entry with the fields of `projection`. Fetches the schemas and replaces `types` if
/// `types` lacks the entry's type. Errors: Corruption; UnknownType; those of ClientCore::refresh().
Result<Document> decode_entry(ClientCore& core, std::shared_ptr<const DocumentTypeRepo>& types,
                              const Projection& projection, const EntryView& entry);

/// Decodes the entries of blocks, which several threads may hold.
///
/// Threading: any thread.
class EntryDecoder {
 public:
  EntryDecoder(ClientCore& core, std::shared_ptr<const DocumentTypeRepo> types, Projection projection)
      : core_(core), types_(std::move(types)), projection_(std::move(projection)) {}

  /// Errors: DocumentBlock::decode().
  Result<Document> decode(const EntryView& entry);

 private:
  ClientCore& core_;
  std::mutex mutex_;
  std::shared_ptr<const DocumentTypeRepo> types_ FJORD_GUARDED_BY(mutex_);
  const Projection projection_;
};

}  // namespace fjord
