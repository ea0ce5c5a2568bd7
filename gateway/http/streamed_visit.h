#pragma once

#include "fjord/library/client.h"
#include "http/message.h"
#include "http/reply.h"
#include "http/visit_wish.h"

namespace fjord::gateway {

enum class StreamForm {
  Json,   ///< One JSON object with all documents.
  Lines,  ///< One JSON object in each line.
};

/// Returns the form that the value of a header Accept asks for: lines if their quality is at least that of JSON.
StreamForm stream_form_of(std::string_view accept);

/// Answers a visit while it runs, to its end. Waits for the cluster and for the client: a slow reader slows the visit
/// down, and the visit ends when the client goes away.
void stream_visit(Client& client, const HttpRequest& request, const VisitWish& wish, StreamForm form, HttpReply reply);

}  // namespace fjord::gateway
