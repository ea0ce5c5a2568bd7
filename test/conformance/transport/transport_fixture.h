#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fjord/common/executor.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc::test {

/// The environment of a Transport that the suite uses.
class TransportFixture {
 public:
  virtual ~TransportFixture() = default;
  virtual Transport& transport() = 0;
  virtual Executor& executor() = 0;
  /// Returns an address without a listener.
  virtual Address dead_address() = 0;
  virtual Address listen(std::vector<Service*> services) = 0;
  virtual void stop_listening(const Address& address) = 0;
  /// Lets time pass until `done()` returns true; it is called on the test's thread. Returns false after 20 s.
  virtual bool run_until(const std::function<bool()>& done) = 0;
  /// Runs `task` on an executor of a service, never on the transport's own.
  virtual void elsewhere(Task task) = 0;
};

std::unique_ptr<TransportFixture> make_thrift_fixture();
std::unique_ptr<TransportFixture> make_sim_fixture();

}  // namespace fjord::rpc::test
