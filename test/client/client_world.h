#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/client/client.h"
#include "fjord/sim/sim_env.h"
#include "fjord/sim/sim_scheduler.h"
#include "support/scripted_transport.h"

namespace fjord::test {

inline rpc::ClusterInfo info_of_version(std::uint64_t version, const std::string& nodes = "distributor:2 storage:2") {
  rpc::ClusterInfo info;
  info.state_version = version;
  info.state = "version:" + std::to_string(version) + " bits:8 " + nodes;
  info.distribution = DistributionConfig::flat(2, 1).to_string();
  info.distributor_addresses = {"d0:1", "d1:1"};
  info.storage_addresses = {"s0:1", "s1:1"};
  info.schema_version = 1;
  info.schemas = {"document thing { field f type int { header } }"};
  return info;
}

inline rpc::OperationResult result_of(StatusCode code) {
  rpc::OperationResult result;
  if (code != StatusCode::Ok) result.status = Status(code, "said the test");
  return result;
}

/// A client on virtual time with scripted distributors d0:1 and d1:1. By default these return `info` and answer every
/// operation OK after 1 ms.
class ClientWorld {
 public:
  /// Answers one batch; an empty result means no answer.
  using OnExecute =
      std::function<std::optional<Result<rpc::ExecuteReply>>(const rpc::Address& to, const rpc::Execute& batch)>;

  explicit ClientWorld(ClientOptions options = {}) : process_(scheduler.make_node_scheduler("client")) {
    executor = process_->make_executor("client");
    if (options.addresses.empty()) options.addresses = {"d0:1"};
    transport.set_script([this](const rpc::Address& to, rpc::Request& request) { return script(to, request); });
    client = std::make_unique<AsyncClient>(std::move(options), runtime_, transport, *executor);
  }

  /// Answers every operation of a batch with `on_operation`.
  void answer_operations(std::function<rpc::OperationResult(const rpc::Operation&)> on_operation) {
    on_execute = [on_operation](const rpc::Address&, const rpc::Execute& batch) {
      rpc::ExecuteReply reply;
      for (const rpc::Operation& operation : batch.operations) reply.results.push_back(on_operation(operation));
      return Result<rpc::ExecuteReply>(std::move(reply));
    };
  }
  /// Answers all operations of the n-th batch with the n-th code, later batches with the last code. Timeout: no answer.
  void answer_batches(std::vector<StatusCode> codes) {
    on_execute = [codes, n = std::size_t{0}](
                     const rpc::Address&,
                     const rpc::Execute& batch) mutable -> std::optional<Result<rpc::ExecuteReply>> {
      const StatusCode code = codes[std::min(n++, codes.size() - 1)];
      if (code == StatusCode::Timeout) return std::nullopt;
      rpc::ExecuteReply reply;
      reply.results.assign(batch.operations.size(), result_of(code));
      return Result<rpc::ExecuteReply>(std::move(reply));
    };
  }

  void put(const std::string& id, Duration timeout = seconds(30)) {
    client->put(id, {"header of " + id, "body"}, timeout, keep(id));
  }
  void get(const std::string& id, Duration timeout = seconds(30)) { client->get(id, timeout, keep(id)); }
  AsyncClient::OperationDone keep(const std::string& id) {
    return [this, id](OperationOutcome outcome) { outcomes.emplace_back(id, std::move(outcome)); };
  }
  void run(Duration duration = seconds(60)) { scheduler.run_for(duration); }
  OperationOutcome put_and_run(const std::string& id, Duration timeout = seconds(30)) {
    outcomes.clear();
    put(id, timeout);
    run();
    FJORD_CHECK(outcomes.size() == 1);
    return outcomes.front().second;
  }
  std::vector<rpc::Execute> batches() const { return transport.sent_of<rpc::Execute>(); }
  std::size_t questions() const { return transport.sent_of<rpc::GetClusterInfo>().size(); }
  MonotonicTime now() const { return scheduler.clock().now(); }
  MetricRegistry& metrics() { return metrics_; }

  sim::SimScheduler scheduler{7};
  ScriptedTransport transport;
  rpc::ClusterInfo info = info_of_version(1);
  OnExecute on_execute = [](const rpc::Address&, const rpc::Execute& batch) {
    rpc::ExecuteReply reply;
    reply.results.assign(batch.operations.size(), result_of(StatusCode::Ok));
    return Result<rpc::ExecuteReply>(std::move(reply));
  };
  /// Answers all calls except GetClusterInfo and Execute. Null: no answer.
  ScriptedTransport::Script on_other = [](const rpc::Address&, rpc::Request&) { return std::nullopt; };
  /// By address: the status with which its calls end.
  std::map<rpc::Address, Status> dead;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<AsyncClient> client;
  std::vector<std::pair<std::string, OperationOutcome>> outcomes;  // By id, in the order of the callbacks.

 private:
  std::optional<Result<rpc::Reply>> script(const rpc::Address& to, rpc::Request& request) {
    if (const auto at = dead.find(to); at != dead.end()) return Result<rpc::Reply>(at->second);
    if (std::holds_alternative<rpc::GetClusterInfo>(request)) {
      return Result<rpc::Reply>(rpc::Reply(rpc::GetClusterInfoReply{Status::ok(), info}));
    }
    if (const auto* batch = std::get_if<rpc::Execute>(&request)) {
      auto reply = on_execute(to, *batch);
      if (!reply) return std::nullopt;
      if (!*reply) return Result<rpc::Reply>(reply->error());
      return Result<rpc::Reply>(rpc::Reply(std::move(**reply)));
    }
    return on_other(to, request);
  }

  std::unique_ptr<sim::SimNodeScheduler> process_;
  std::unique_ptr<BulkExecutor> bulk_ = make_inline_bulk_executor();
  sim::SimEnv env_;
  Random random_{11};
  MetricRegistry metrics_;
  TunableRegistry tunables_;
  Runtime runtime_{scheduler.clock(), *process_, *bulk_, env_, random_, metrics_, tunables_};
};

}  // namespace fjord::test
