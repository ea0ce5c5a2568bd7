#pragma once

#include <optional>
#include <string>

#include "fjord/library/bulk.h"
#include "fjord/library/detail/client_core.h"

namespace fjord {

/// What is to be done with the documents that the selection matches.
struct BulkChange {
  std::string selection;
  std::optional<std::string> changes;  ///< As in a feed; absent: they are removed.
};

/// Each write has the selection as its condition and the name of the run as its idempotency key. So it is done only to
/// a document that matches at that moment, and at most once in a run, however often the run is interrupted and resumed.
/// A bucket counts as done when all its writes have ended well.
BulkSummary run_bulk(ClientCore& core, const BulkChange& change, BulkOptions options);

}  // namespace fjord
