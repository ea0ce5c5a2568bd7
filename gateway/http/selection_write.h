#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "fjord/library/bulk.h"
#include "fjord/library/client.h"
#include "http/document_path.h"
#include "http/message.h"
#include "http/visit_wish.h"

namespace fjord::gateway {

/// Result of the bulk change that one request runs; a continuation token starts the next.
struct SelectionRun {
  BulkSummary summary;
  Status failure;  ///< OK, or the error of a document that was not written: the last permanent one, else the first.

  void note_failure(const std::string& id, const Status& error);
};

/// The answer to a request whose change ended like this. It has a continuation if documents are left, also if some
/// could not be written at the moment. It is an error if the same request can make no progress.
HttpAnswer selection_answer(const HttpRequest& request, const SelectionRun& run);

/// The answer to a DELETE that would remove as many documents as `counted` has matched; nothing if it may. It may if
/// none matches, or no more than the request confirms.
std::optional<HttpAnswer> unconfirmed_answer(const HttpRequest& request, const SelectionWish& wish,
                                             const BulkSummary& counted);

/// Updates, removes or copies the documents that a selection matches, for a limited time; waits for the cluster. The
/// answer has a continuation while there may be more. A stop request ends it soon. If `asks` is set, a removal first
/// counts the documents and goes on only if the request confirms them.
HttpAnswer write_by_selection(Client& client, const HttpRequest& request, const DocumentPath& path,
                              const SelectionWish& wish, bool asks, std::stop_token stop);

}  // namespace fjord::gateway
