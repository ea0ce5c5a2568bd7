#pragma once

#include <optional>
#include <string>

#include "fjord/library/bulk.h"
#include "fjord/library/detail/client_core.h"

namespace fjord {

/// A change of all documents that a selection matches.
struct BulkChange {
  std::string selection;
  std::optional<std::string> changes;  ///< Update as in a feed (document/FEED.md); absent: remove the documents.
};

/// Applies the change to all matching documents. Each write has the selection as its condition and the name of the run
/// as its idempotency key. So it changes only a document that matches at that moment, and changes it at most once in a
/// run, also if the run is interrupted and resumed. A bucket counts as done when all its writes have succeeded.
BulkSummary run_bulk(ClientCore& core, const BulkChange& change, BulkOptions options);

}  // namespace fjord
