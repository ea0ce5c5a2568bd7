#pragma once

#include <stop_token>

#include "fjord/library/client.h"
#include "http/message.h"
#include "http/visit_wish.h"

namespace fjord::gateway {

/// Answers a visit of one chunk. Waits for the cluster. A stop request ends it soon.
HttpAnswer visit_chunk(Client& client, const HttpRequest& request, const VisitWish& wish, std::stop_token stop);

}  // namespace fjord::gateway
