#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/random.h"
#include "fjord/common/tunable.h"
#include "fjord/library/client.h"
#include "inbox.h"
#include "workers.h"

namespace fjord::gateway {

/// Objects that the parts of the service share. Threading: the executor of `inbox`. Lifetime: outlives the parts.
struct Context {
  std::shared_ptr<Inbox> inbox;
  Workers& workers;
  Clock& clock;
  Random& random;
  std::string node;                 ///< Name of this process: "distributor.1".
  std::function<Client&()> client;  ///< The client of the cluster, which starts with the first call.
  const Tunable& idle_timeout;
  const Tunable& chunk_bytes_max;
};

}  // namespace fjord::gateway
