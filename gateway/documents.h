#pragma once

#include "call.h"
#include "fjord/library/client.h"

/// Single documents. No thread waits: the client library answers when the operation has ended. Threading: any thread.
namespace fjord::gateway {

void read_document(Client& client, api::ReadDocument request, Call<api::ReadDocumentReply> call);
void write_document(Client& client, api::WriteDocument request, Call<api::WriteDocumentReply> call);

}  // namespace fjord::gateway
