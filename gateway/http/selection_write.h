#pragma once

#include <stop_token>

#include "fjord/library/client.h"
#include "http/document_path.h"
#include "http/message.h"
#include "http/visit_wish.h"

namespace fjord::gateway {

/// Updates, removes or copies the documents that a selection matches, for a limited time; waits for the cluster. The
/// answer has a continuation while there may be more. A stop request ends it soon.
HttpAnswer write_by_selection(Client& client, const HttpRequest& request, const DocumentPath& path,
                              const SelectionWish& wish, std::stop_token stop);

}  // namespace fjord::gateway
