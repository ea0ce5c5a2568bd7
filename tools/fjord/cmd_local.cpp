#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <thread>

#include "commands.h"
#include "fjord/client/connect.h"
#include "json_text.h"
#include "local_cluster.h"

namespace fjord::cli {
namespace {

using config::ProcessName;
using SteadyClock = std::chrono::steady_clock;

LocalShape shape_of(const LocalArgs& args) {
  LocalShape shape;
  if (args.storage != 0) shape.storage = args.storage;
  if (args.distributors != 0) shape.distributors = args.distributors;
  shape.redundancy = args.redundancy != 0 ? args.redundancy : std::min(2, shape.storage);
  return shape;
}

/// The cluster that is in the folder, if it is what the options ask for.
Result<LocalCluster> open_existing(const LocalArgs& args) {
  FJORD_TRY_ASSIGN(LocalCluster cluster, LocalCluster::open(args.directory));
  const auto check = [&](const std::string& what, int given, std::size_t is) {
    if (given == 0 || static_cast<std::size_t>(given) == is) return Status::ok();
    return Status(StatusCode::AlreadyExists,
                  fmt::format("{} holds a cluster with --{} {}, which cannot be changed to {} here", args.directory,
                              what, is, given));
  };
  FJORD_TRY(check("storage", args.storage, cluster.config().storage.size()));
  FJORD_TRY(check("distributors", args.distributors, cluster.config().distributors.size()));
  FJORD_TRY(check("redundancy", args.redundancy, static_cast<std::size_t>(cluster.config().redundancy)));
  return cluster;
}

/// Empty if all that should be up is, else the first thing that is not.
std::string not_ready(const rpc::GetStatusReply& status) {
  for (const rpc::NodeStatus& node : status.nodes) {
    if (node.state != "up") return fmt::format("{} is {}", node.node, node.state);
    if (!node.reason.empty()) return fmt::format("{}: {}", node.node, node.reason);
    if (node.last.state_version != status.info.state_version) return node.node + " has not taken in the cluster state";
    if (node.last.buckets_unavailable != 0) return node.node + " has buckets that cannot be served yet";
  }
  return {};
}

/// Waits until every node is up and knows the cluster state. `started` are watched: if one ends, that is the error.
Status wait_until_served(const LocalCluster& cluster, const std::vector<ProcessName>& started, double timeout_s) {
  const auto deadline = SteadyClock::now() + std::chrono::duration<double>(timeout_s);
  ConnectOptions options;
  options.ready_timeout = Duration(0);
  options.client.default_timeout = seconds(1);
  FJORD_TRY_ASSIGN(const auto connection, connect(cluster.addresses(), options));
  std::string missing = "no distributor answers";
  while (SteadyClock::now() < deadline) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    for (const ProcessName& name : started) {
      if (cluster.running(name) == 0) {
        return Status(StatusCode::IoError, fmt::format("{} has ended; the end of {}:\n{}", name.to_string(),
                                                       cluster.log_file(name), cluster.log_tail(name)));
      }
    }
    const auto status = connection->sync().status();
    missing = status ? not_ready(*status) : status.error().message();
    if (missing.empty()) return Status::ok();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return Status(StatusCode::Timeout, fmt::format("the cluster does not serve after {} s: {}", timeout_s, missing));
}

Result<ProcessName> node_of(const LocalArgs& args, const LocalCluster& cluster) {
  FJORD_TRY_ASSIGN(const ProcessName name, ProcessName::parse(args.node));
  if (cluster.config().find(name) != nullptr) return name;
  return Status(StatusCode::NotFound, fmt::format("the cluster in {} has no node {}", args.directory, args.node));
}

/// Opens the cluster and the node and runs `use(cluster, name)`.
template <typename F>
int with_node(const LocalArgs& args, F use) {
  const auto cluster = LocalCluster::open(args.directory);
  if (!cluster) return report(cluster.error());
  const auto name = node_of(args, *cluster);
  if (!name) {
    const int code = report(name.error());
    return code == kNotFound ? code : static_cast<int>(kUsage);
  }
  return use(*cluster, *name);
}

/// Starts what does not run and waits until the cluster serves. Returns the processes that were started.
Result<std::vector<ProcessName>> start_all(const LocalCluster& cluster, double timeout_s) {
  std::vector<ProcessName> started;
  for (const ProcessName& name : cluster.config().names()) {
    if (cluster.running(name) != 0) continue;
    FJORD_TRY(cluster.start(name));
    started.push_back(name);
  }
  FJORD_TRY(wait_until_served(cluster, started, timeout_s));
  return started;
}

/// Makes and starts a new cluster. Another program may take one of its ports between the choice and the start; as
/// nothing is stored yet, other ports are tried then.
Result<std::vector<ProcessName>> start_new(const LocalArgs& args) {
  constexpr int kAttempts = 4;
  LocalShape shape = shape_of(args);
  for (int attempt = 1;; ++attempt) {
    FJORD_TRY(LocalCluster::create(args.directory, shape));
    FJORD_TRY_ASSIGN(const LocalCluster cluster, LocalCluster::open(args.directory));
    auto started = start_all(cluster, args.timeout_s);
    if (started) return started;
    cluster.stop(cluster.config().names());
    const bool port_taken = started.error().message().find("cannot listen on") != std::string::npos;
    if (!port_taken || attempt == kAttempts) return started.error();
    shape.usual_ports = false;
  }
}

}  // namespace

int run_local_start(const LocalArgs& args) {
  Result<std::vector<ProcessName>> started = Status(StatusCode::Unknown, "not started");
  if (LocalCluster::exists(args.directory)) {
    const auto existing = open_existing(args);
    if (!existing) return report(existing.error());
    started = start_all(*existing, args.timeout_s);
  } else {
    started = start_new(args);
  }
  if (!started) return report(started.error());
  const auto cluster = LocalCluster::open(args.directory);
  if (!cluster) return report(cluster.error());
  complain(fmt::format("{} of {} processes started, logs in {}/logs", started->size(), cluster->config().names().size(),
                       args.directory));
  print_line("export FJORD_CLUSTER=" + cluster->addresses());
  return kOk;
}

int run_local_stop(const LocalArgs& args) {
  const auto cluster = LocalCluster::open(args.directory);
  if (!cluster) return report(cluster.error());
  for (const ProcessName& name : cluster->stop(cluster->config().names())) {
    complain(name.to_string() + " did not end by itself and was killed");
  }
  return kOk;
}

int run_local_status(const LocalArgs& args) {
  const auto cluster = LocalCluster::open(args.directory);
  if (!cluster) return report(cluster.error());
  bool all_run = true;
  JsonText json;
  json.begin_array();
  std::string text = fmt::format("{:<18} {:<8} {:>8}  {:<22} {}\n", "NODE", "STATE", "PID", "ADDRESS", "METRICS");
  for (const ProcessName& name : cluster->config().names()) {
    const pid_t pid = cluster->running(name);
    const config::ProcessConfig& process = *cluster->config().find(name);
    all_run = all_run && pid != 0;
    const char* state = pid != 0 ? "running" : "stopped";
    json.begin_object().key("node").text(name.to_string()).key("state").text(state).key("pid").integer(pid);
    json.key("address")
        .text(process.address)
        .key("http")
        .text(process.http)
        .key("log")
        .text(cluster->log_file(name))
        .end_object();
    text += fmt::format("{:<18} {:<8} {:>8}  {:<22} {}\n", name.to_string(), state, pid, process.address,
                        process.http.empty() ? "" : "http://" + process.http + "/metrics");
  }
  json.end_array();
  print(args.json() ? json.str() + "\n" : text + "export FJORD_CLUSTER=" + cluster->addresses() + "\n");
  return all_run ? kOk : kFailed;
}

int run_local_kill(const LocalArgs& args) {
  return with_node(args, [&](const LocalCluster& cluster, ProcessName name) -> int {
    if (!cluster.send_signal(name, SIGKILL))
      return report(Status(StatusCode::NotFound, name.to_string() + " does not run"));
    while (cluster.running(name) != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return kOk;
  });
}

int run_local_restart(const LocalArgs& args) {
  return with_node(args, [&](const LocalCluster& cluster, ProcessName name) -> int {
    cluster.stop({name});
    if (Status status = cluster.start(name); !status) return report(status);
    if (Status status = wait_until_served(cluster, {name}, args.timeout_s); !status) return report(status);
    return kOk;
  });
}

}  // namespace fjord::cli
