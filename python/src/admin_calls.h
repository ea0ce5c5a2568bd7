#pragma once

#include <memory>

#include "client_handle.h"
#include "fjord/library/admin.h"
#include "gil.h"

namespace fjord::python {

/// Runs a call of Admin without the interpreter lock, and returns its result.
template <typename F>
auto call_admin(ClientHandle& handle, F f) {
  const std::shared_ptr<Client> client = handle.use_connected();
  return handle.run([client, f] { return f(client->admin()); });
}

}  // namespace fjord::python
