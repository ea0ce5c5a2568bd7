#pragma once

#include <memory>

#include "fjord/document/docblock.h"
#include "fjord/library/detail/client_core.h"
#include "projection.h"

namespace fjord {

/// The document of an entry, with the fields that were asked for. Fetches the schemas if the entry is of a type that
/// `types` does not know, and replaces `types` then. Errors: Corruption; UnknownType; those of ClientCore::refresh().
Result<Document> decode_entry(ClientCore& core, std::shared_ptr<const DocumentTypeRepo>& types,
                              const Projection& projection, const EntryView& entry);

}  // namespace fjord
