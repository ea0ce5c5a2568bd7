#include "fjord/sim/sim_transport.h"
#include "transport_fixture.h"

namespace fjord::rpc::test {
namespace {

class SimFixture final : public TransportFixture {
 public:
  Transport& transport() override { return *transport_; }
  Executor& executor() override { return *executor_; }
  Address dead_address() override { return "nowhere:1"; }
  Address listen(std::vector<Service*> services) override {
    const Address address = "server:" + std::to_string(++last_port_);
    network_.listen(address, std::move(services), "server");
    return address;
  }
  void stop_listening(const Address& address) override { network_.stop_listening(address); }
  bool run_until(const std::function<bool()>& done) override { return scheduler_.run_until(done, seconds(20)); }
  void elsewhere(Task task) override { elsewhere_->post(std::move(task)); }

 private:
  sim::SimScheduler scheduler_{7};
  sim::SimNetwork network_{scheduler_, Random(7)};
  std::unique_ptr<sim::SimNodeScheduler> process_ = scheduler_.make_node_scheduler("client");
  std::unique_ptr<Executor> executor_ = process_->make_executor("caller");
  std::unique_ptr<Executor> elsewhere_ = process_->make_executor("service");
  std::unique_ptr<Transport> transport_ = network_.transport_for("client");
  int last_port_ = 0;
};

}  // namespace

std::unique_ptr<TransportFixture> make_sim_fixture() { return std::make_unique<SimFixture>(); }

}  // namespace fjord::rpc::test
