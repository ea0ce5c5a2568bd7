#include "fjord/client/client.h"

#include <atomic>
#include <fmt/core.h>
#include <utility>

#include "admin_caller.h"
#include "cluster_watcher.h"
#include "dispatcher.h"
#include "fjord/common/check.h"
#include "fjord/common/hash.h"

namespace fjord {

namespace {

std::uint64_t draw_client_id(Random& random) {
  std::uint64_t id = random.next();
  while (id == 0) id = random.next();
  return id;
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::Applied:
      return "applied";
    case Outcome::NotApplied:
      return "not_applied";
    case Outcome::InDoubt:
      return "in_doubt";
  }
  return "unknown";
}

/// State that tasks on the executor can need after the AsyncClient is destroyed.
struct AsyncClient::Parts : std::enable_shared_from_this<Parts> {
  Parts(ClientOptions client_options, Runtime& runtime, rpc::Transport& client_transport, Executor& client_executor)
      : options(std::make_shared<const ClientOptions>(std::move(client_options))),
        executor(client_executor),
        clock(runtime.clock),
        random(runtime.random.fork()),
        client_id(draw_client_id(random)),
        transport(client_transport),
        gate(std::make_shared<rpc::GatedTransport>(transport)),
        watcher(std::make_shared<ClusterWatcher>(options, clock, random.fork(), gate, executor)),
        dispatcher(std::make_shared<Dispatcher>(options, clock, runtime.metrics, random.fork(), client_id, gate,
                                                watcher, executor)),
        admin(std::make_shared<AdminCaller>(options, clock, random.fork(), gate, watcher, executor)) {
    watcher->set_on_change([weak = std::weak_ptr<Dispatcher>(dispatcher)] {
      if (auto there = weak.lock()) there->on_snapshot_changed();
    });
  }

  /// Runs `task(parts)` on the executor; drops it if the parts are destroyed by then.
  template <typename F>
  void post(F task) {
    executor.post([weak = weak_from_this(), task = std::move(task)]() mutable {
      if (auto self = weak.lock()) task(*self);
    });
  }
  MonotonicTime deadline(Duration timeout) const {
    return clock.now() + (timeout > Duration(0) ? timeout : options->default_timeout);
  }

  std::shared_ptr<const ClientOptions> options;
  Executor& executor;
  const Clock& clock;
  Random random;
  const std::uint64_t client_id;
  std::atomic<std::uint64_t> jobs{0};
  rpc::Transport& transport;
  /// After close(), the gate keeps the client from calling the transport.
  std::shared_ptr<rpc::GatedTransport> gate;
  std::shared_ptr<ClusterWatcher> watcher;
  std::shared_ptr<Dispatcher> dispatcher;
  std::shared_ptr<AdminCaller> admin;
};

AsyncClient::AsyncClient(ClientOptions options, Runtime& runtime, rpc::Transport& transport, Executor& executor) {
  FJORD_CHECK_MSG(!options.addresses.empty(), "a client needs the address of a distributor");
  parts_ = std::make_shared<Parts>(std::move(options), runtime, transport, executor);
}

AsyncClient::~AsyncClient() {
  parts_->gate->close();
  // The task owns the parts, so every answer posted before it still finds them.
  parts_->executor.post([parts = parts_] {
    parts->dispatcher->close();
    parts->admin->close();
    parts->watcher->close();
  });
}

void AsyncClient::execute(rpc::Operation operation, Duration timeout, OperationDone done) {
  parts_->dispatcher->submit(std::move(operation), timeout, std::move(done));
}

void AsyncClient::get(std::string id, Duration timeout, OperationDone done) {
  execute(get_operation(std::move(id)), timeout, std::move(done));
}
void AsyncClient::get_json(std::string id, Duration timeout, OperationDone done) {
  execute(get_json_operation(std::move(id)), timeout, std::move(done));
}
void AsyncClient::put(std::string id, EncodedDocument document, Duration timeout, OperationDone done) {
  execute(put_operation(std::move(id), std::move(document)), timeout, std::move(done));
}
void AsyncClient::put_json(std::string id, std::string fields, Duration timeout, OperationDone done) {
  execute(put_json_operation(std::move(id), std::move(fields)), timeout, std::move(done));
}
void AsyncClient::update(const DocumentUpdate& update, Duration timeout, OperationDone done) {
  execute(update_operation(update), timeout, std::move(done));
}
void AsyncClient::update_json(std::string id, std::string changes, Duration timeout, OperationDone done) {
  execute(update_json_operation(std::move(id), std::move(changes)), timeout, std::move(done));
}
void AsyncClient::remove(std::string id, Duration timeout, OperationDone done) {
  execute(remove_operation(std::move(id)), timeout, std::move(done));
}

std::size_t AsyncClient::pending() const { return parts_->dispatcher->pending(); }

std::shared_ptr<const rpc::ClusterSnapshot> AsyncClient::snapshot() const { return parts_->watcher->snapshot(); }

const rpc::SnapshotHolder& AsyncClient::snapshots() const { return parts_->watcher->snapshots(); }

void AsyncClient::wait_ready(Duration timeout, StatusDone done) {
  parts_->post([deadline = parts_->deadline(timeout), done = std::move(done)](Parts& parts) mutable {
    parts.watcher->wait({}, deadline, std::move(done));
  });
}

void AsyncClient::refresh_schemas(Duration timeout, StatusDone done) {
  parts_->post([deadline = parts_->deadline(timeout), done = std::move(done)](Parts& parts) mutable {
    parts.watcher->wait({.fresh = true}, deadline, std::move(done));
  });
}

void AsyncClient::wait_schema_version(std::uint64_t version, Duration timeout, StatusDone done) {
  parts_->post([version, deadline = parts_->deadline(timeout), done = std::move(done)](Parts& parts) mutable {
    parts.watcher->wait({.schema_version = version}, deadline, std::move(done));
  });
}

void AsyncClient::take_cluster_info(const rpc::ClusterInfo& info) {
  if (info.state_version == 0 && info.schema_version == 0) return;
  parts_->post([info](Parts& parts) { parts.watcher->take(info); });
}

void AsyncClient::call_any_request(rpc::Request request, Duration timeout,
                                   UniqueFunction<void(Result<rpc::Reply>)> done) {
  parts_->post([request = std::move(request), deadline = parts_->deadline(timeout), done = std::move(done)](
                   Parts& parts) mutable { parts.admin->call_any(std::move(request), deadline, std::move(done)); });
}

void AsyncClient::call_all_request(rpc::Request request, Duration timeout,
                                   UniqueFunction<void(Result<std::vector<Answer>>)> done) {
  parts_->post([request = std::move(request), deadline = parts_->deadline(timeout), done = std::move(done)](
                   Parts& parts) mutable { parts.admin->call_all(std::move(request), deadline, std::move(done)); });
}

std::string AsyncClient::new_job_id() {
  return fmt::format("job-{:016x}", mix64(parts_->client_id, parts_->jobs.fetch_add(1) + 1));
}

Executor& AsyncClient::executor() const { return parts_->executor; }
rpc::Transport& AsyncClient::transport() const { return parts_->transport; }
const Clock& AsyncClient::clock() const { return parts_->clock; }
const ClientOptions& AsyncClient::options() const { return *parts_->options; }
std::uint64_t AsyncClient::client_id() const { return parts_->client_id; }

}  // namespace fjord
