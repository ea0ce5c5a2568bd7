#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <thread>

#include "fjord/common/scheduler.h"
#include "fjord/rpc/thrift_transport.h"
#include "transport_fixture.h"

namespace fjord::rpc::test {
namespace {

class ThriftFixture final : public TransportFixture {
 public:
  Transport& transport() override { return transport_; }
  Executor& executor() override { return *executor_; }
  Address dead_address() override {
    // A port on which no process listens: it was just released.
    const Address address = listen({});
    stop_listening(address);
    return address;
  }
  Address listen(std::vector<Service*> services) override {
    auto server = ThriftServer::listen({}, std::move(services), metrics_);
    REQUIRE(server);
    const Address address = (*server)->address();
    servers_[address] = std::move(*server);
    return address;
  }
  void stop_listening(const Address& address) override { servers_.erase(address); }
  bool run_until(const std::function<bool()>& done) override {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > limit) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  void elsewhere(Task task) override { elsewhere_->post(std::move(task)); }

 private:
  MetricRegistry metrics_;
  ThreadScheduler scheduler_;
  std::unique_ptr<Executor> executor_ = scheduler_.make_executor("caller");
  std::unique_ptr<Executor> elsewhere_ = scheduler_.make_executor("service");
  std::map<Address, std::unique_ptr<ThriftServer>> servers_;
  ThriftTransport transport_{{}, metrics_};
};

}  // namespace

std::unique_ptr<TransportFixture> make_thrift_fixture() { return std::make_unique<ThriftFixture>(); }

}  // namespace fjord::rpc::test
