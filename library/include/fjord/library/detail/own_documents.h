#pragma once

#include "fjord/library/client.h"

namespace fjord {

/// Puts a document of one of Fjord's own types, which Client::put() refuses: for commands that deploy what brokers
/// read. Not for programs of users. Errors: those of Client::put().
Pending<WriteResult> put_own(Client& client, const Document& document, WriteOptions options);

}  // namespace fjord
