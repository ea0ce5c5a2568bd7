#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/format.h>
#include <future>
#include <memory>
#include <signal.h>
#include <sys/wait.h>
#include <thread>

#include "commands/commands.h"
#include "fjord/client/connect.h"
#include "fjord/library/detail/admin_calls.h"
#include "fjord/monitoring/metric_scraper.h"
#include "local/local_cluster.h"
#include "local/process_facts.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

using config::ProcessName;
using SteadyClock = std::chrono::steady_clock;

LocalShape shape_of(const LocalArgs& args) {
  LocalShape shape;
  if (args.gateways >= 0) shape.gateways = args.gateways;
  if (args.storage != 0) shape.storage = args.storage;
  if (args.distributors != 0) shape.distributors = args.distributors;
  shape.usual_ports = args.ports == "usual";
  shape.redundancy = args.redundancy != 0 ? args.redundancy : std::min(2, shape.storage);
  return shape;
}

/// Opens the cluster in the folder. Errors: AlreadyExists if it differs from the options.
Result<LocalCluster> open_existing(const LocalArgs& args) {
  FJORD_TRY_ASSIGN(LocalCluster cluster, LocalCluster::open(args.directory));
  const auto check = [&](const std::string& what, int given, std::size_t is, int not_given = 0) {
    if (given == not_given || static_cast<std::size_t>(given) == is) return Status::ok();
    return Status(StatusCode::AlreadyExists,
                  fmt::format("{} holds a cluster with --{} {}, which cannot be changed to {} here", args.directory,
                              what, is, given));
  };
  FJORD_TRY(check("storage", args.storage, cluster.config().storage.size()));
  FJORD_TRY(check("distributors", args.distributors, cluster.config().distributors.size()));
  FJORD_TRY(check("redundancy", args.redundancy, static_cast<std::size_t>(cluster.config().redundancy)));
  FJORD_TRY(check("gateways", args.gateways, cluster.config().gateways.size(), -1));
  return cluster;
}

/// Recently started processes and their own answers. The fleet controller's answer is not enough: it may still report a
/// node as up because of its previous process.
/// Threading: one thread, which waits for the answers.
class StartedProcesses {
 public:
  StartedProcesses(const LocalCluster& cluster, Connection& connection, const std::vector<ProcessName>& names)
      : cluster_(cluster), connection_(connection) {
    for (const ProcessName& name : names) processes_.push_back({.name = name});
  }

  /// Checks that all processes run. Errors: IoError with the end of the log of a process that has ended.
  Status check_running() const {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    for (const Process& process : processes_) {
      if (cluster_.running(process.name) != 0) continue;
      return Status(StatusCode::IoError, fmt::format("{} has ended; {}", process.name.to_string(), log_of(process)));
    }
    return Status::ok();
  }

  /// Asks the processes that have not answered yet. Returns empty if all have answered, else the error of the first one
  /// that has not.
  std::string ask() {
    for (Process& process : processes_) {
      if (process.answered) continue;
      const Status status = ask(process);
      if (!status) return fmt::format("{} does not answer: {}", process.name.to_string(), status.message());
      process.answered = true;
    }
    return {};
  }

  /// Returns true if the fleet controller's information is from the node's current incarnation.
  bool is_current(const rpc::NodeStatus& node) const {
    const auto process = find(node.node);
    return process == processes_.end() || process->incarnation == node.last.incarnation;
  }

  /// Returns the end of the log of the first process that has not answered; empty if all have answered.
  std::string silent_log() const {
    for (const Process& process : processes_) {
      if (!process.answered) return "; " + log_of(process);
    }
    return {};
  }

 private:
  struct Process {
    ProcessName name;
    bool answered = false;
    std::uint64_t incarnation = 0;
  };

  std::vector<Process>::const_iterator find(const std::string& node) const {
    return std::find_if(processes_.begin(), processes_.end(),
                        [&](const Process& process) { return process.name.to_string() == node; });
  }

  std::string log_of(const Process& process) const {
    return fmt::format("the end of {}:\n{}", cluster_.log_file(process.name), cluster_.log_tail(process.name));
  }

  template <typename R>
  Result<typename R::Reply> call(const ProcessName& name, R request) {
    auto answer = std::make_shared<std::promise<Result<typename R::Reply>>>();
    auto future = answer->get_future();
    rpc::call(connection_.transport(), cluster_.config().find(name)->address, std::move(request), seconds(1),
              connection_.executor(),
              [answer](Result<typename R::Reply> reply) { answer->set_value(std::move(reply)); });
    return future.get();
  }

  Status ask(Process& process) {
    const std::string& address = cluster_.config().find(process.name)->address;
    // Another cluster that starts at the same time may have the same ports, and answer in its place.
    if (!listens(cluster_.running(process.name), std::atoi(address.c_str() + address.rfind(':') + 1))) {
      return {StatusCode::NotReady, "it does not listen on " + address + " yet"};
    }
    if (process.name.role == config::Role::Gateway) {
      // A gateway serves HTTP only.
      const auto page = std::move(scrape({address}, {.timeout = seconds(1)}).front());
      return page ? Status::ok() : page.error();
    }
    if (process.name.role == config::Role::FleetController) {
      FJORD_TRY_ASSIGN(const rpc::GetStatusReply reply, call(process.name, rpc::GetStatus{}));
      // One of several controllers leads; the others answer that they do not. The cluster tells whether one does.
      return reply.status.code() == StatusCode::NotReady ? Status::ok() : reply.status;
    }
    FJORD_TRY_ASSIGN(const rpc::PollReply reply, call(process.name, rpc::Poll{}));
    process.incarnation = reply.incarnation;
    return reply.status;
  }

  const LocalCluster& cluster_;
  Connection& connection_;
  std::vector<Process> processes_;
};

/// Returns true if the node is in the state that an operator has set: retired, or out of service for a while. A
/// distributor in maintenance is down, and so is a storage node whose maintenance takes longer than permitted.
bool is_as_wanted(const rpc::NodeStatus& node) {
  const auto wants = [&](std::string_view state) { return node.wanted.starts_with(state); };
  return !node.wanted.empty() && (wants(node.state) || (node.state == "down" && wants("maintenance")));
}

/// Returns empty if the cluster is ready, else the first reason why it is not. Ignores nodes that do not run. A node
/// that an operator has taken out of service is ready as soon as the fleet controller knows its current incarnation.
std::string not_ready(const rpc::GetStatusReply& status, const LocalCluster& cluster, const StartedProcesses& started) {
  std::string missing;
  bool all_serve = true;
  for (const rpc::NodeStatus& node : status.nodes) {
    const auto name = ProcessName::parse(node.node);
    if (name && cluster.running(*name) == 0) {
      all_serve = false;
    } else if (!started.is_current(node)) {
      return node.node + " was started and the fleet controller has not heard of it";
    } else if (is_as_wanted(node) && node.state != "retired") {
      all_serve = false;
    } else if (node.state != "up" && !is_as_wanted(node)) {
      return fmt::format("{} is {}", node.node, node.state);
    } else if (!node.reason.empty()) {
      return fmt::format("{}: {}", node.node, node.reason);
    } else if (node.last.state_version != status.info.state_version) {
      return node.node + " has not taken in the cluster state";
    } else if (node.last.buckets_unavailable + node.last.buckets_collecting != 0 && missing.empty()) {
      missing = node.node + " has buckets that cannot be served yet";
    }
  }
  return all_serve ? missing : std::string();  // The unavailable documents can be on a node that does not serve.
}

/// Waits until every running node is up, or in the state that an operator has set, and knows the cluster state. The
/// nodes in `names` were just started: each must answer itself. Errors: IoError if one of them ends.
Status wait_until_served(const LocalCluster& cluster, const std::vector<ProcessName>& names, double timeout_s) {
  const auto deadline = SteadyClock::now() + std::chrono::duration<double>(timeout_s);
  ConnectOptions options;
  options.ready_timeout = Duration(0);
  options.client.default_timeout = seconds(1);
  FJORD_TRY_ASSIGN(const auto connection, open_connection(cluster.addresses(), options));
  StartedProcesses started(cluster, *connection, names);
  std::string missing = "no distributor answers";
  while (SteadyClock::now() < deadline) {
    FJORD_TRY(started.check_running());
    missing = started.ask();
    if (missing.empty()) {
      const auto status = connection->sync().status();
      missing = status ? not_ready(*status, cluster, started) : status.error().message();
    }
    if (missing.empty()) return started.check_running();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return Status(StatusCode::Timeout,
                fmt::format("the cluster does not serve after {} s: {}{}", timeout_s, missing, started.silent_log()));
}

Result<ProcessName> node_of(const LocalArgs& args, const LocalCluster& cluster) {
  FJORD_TRY_ASSIGN(const ProcessName name, ProcessName::parse(args.node));
  if (cluster.config().find(name) != nullptr) return name;
  return Status(StatusCode::NotFound, fmt::format("the cluster in {} has no node {}", args.directory, args.node));
}

/// Opens the cluster, finds the node and calls `use(cluster, name)`.
template <typename F>
int with_node(const LocalArgs& args, F use) {
  const auto cluster = LocalCluster::open(args.directory);
  if (!cluster) return report(cluster.error());
  const auto name = node_of(args, *cluster);
  if (!name) return report(name.error());
  return use(*cluster, *name);
}

/// Starts all nodes that do not run and waits until the cluster serves. Returns the started nodes.
Result<std::vector<ProcessName>> start_all(const LocalCluster& cluster, double timeout_s) {
  std::vector<ProcessName> started;
  for (const ProcessName& name : cluster.config().names()) {
    if (cluster.running(name) == 0) started.push_back(name);
  }
  FJORD_TRY(cluster.start(started));
  FJORD_TRY(wait_until_served(cluster, started, timeout_s));
  return started;
}

/// Creates and starts a new cluster. Tries other ports if another program takes one of them before the start. What the
/// fleet controller has stored by then goes away, as it has the old addresses of the nodes.
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
    FJORD_TRY(cluster.remove_data());
    shape.usual_ports = false;
  }
}

/// Waits for an answer of a process that is not part of the cluster yet.
Status wait_until_answered(const LocalCluster& cluster, Connection& connection, ProcessName name, double timeout_s) {
  const auto deadline = SteadyClock::now() + std::chrono::duration<double>(timeout_s);
  StartedProcesses started(cluster, connection, {name});
  for (;;) {
    FJORD_TRY(started.check_running());
    const std::string missing = started.ask();
    if (missing.empty()) return Status::ok();
    if (SteadyClock::now() >= deadline) {
      return {StatusCode::Timeout, fmt::format("after {} s: {}{}", timeout_s, missing, started.silent_log())};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// Adds a storage node and returns its name. A dry run asks the cluster for the name first, because the process must
/// start under it; the cluster never reuses an index.
Result<ProcessName> add_node(const LocalArgs& args) {
  FJORD_TRY_ASSIGN(const LocalCluster before, LocalCluster::open(args.directory));
  FJORD_TRY_ASSIGN(const auto connection, open_connection(before.addresses()));
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Add;
  request.nodes = {"storage"};
  request.address = "127.0.0.1:0";
  request.reason = "fjord local add-node";
  request.who = who_am_i();
  request.dry_run = true;
  request.force = true;  // The dry run has no valid address yet.
  FJORD_TRY_ASSIGN(const rpc::ChangeNodesReply would, change_nodes(*connection, request, seconds(10)));
  if (would.nodes.size() != 1)
    return Status(StatusCode::Unknown, "the cluster does not say what it would call the node");
  FJORD_TRY_ASSIGN(const ProcessName name, ProcessName::parse(would.nodes.front()));
  FJORD_TRY(LocalCluster::add_storage(args.directory, name));
  FJORD_TRY_ASSIGN(const LocalCluster cluster, LocalCluster::open(args.directory));
  if (cluster.running(name) == 0) FJORD_TRY(cluster.start({name}));
  FJORD_TRY(wait_until_answered(cluster, *connection, name, args.timeout_s));
  request.address = cluster.config().find(name)->address;
  request.dry_run = false;
  request.force = false;
  FJORD_TRY_ASSIGN(const rpc::ChangeNodesReply reply, change_nodes(*connection, std::move(request), seconds(10)));
  if (!reply.refusals.empty()) {
    return Status(StatusCode::TestAndSetFailed,
                  fmt::format("the cluster refuses {}: {}", name.to_string(), fmt::join(reply.refusals, "; ")));
  }
  FJORD_TRY(wait_until_served(cluster, {name}, args.timeout_s));
  return name;
}

}  // namespace

int run_local_create(const LocalArgs& args) {
  if (LocalCluster::exists(args.directory)) {
    return report(Status(StatusCode::AlreadyExists, args.directory + " holds a cluster"));
  }
  if (Status status = LocalCluster::create(args.directory, shape_of(args)); !status) return report(status);
  print_line(args.directory + "/cluster.yaml");
  return kOk;
}

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
  for (const config::ProcessConfig& gateway : cluster->config().gateways) {
    complain(fmt::format("HTTP clients: http://{}/", gateway.address));
  }
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
    const std::string& http = name.role == config::Role::Gateway ? process.address : process.http;
    all_run = all_run && pid != 0;
    const char* state = pid != 0 ? "running" : "stopped";
    json.begin_object().key("node").text(name.to_string()).key("state").text(state).key("pid").integer(pid);
    json.key("address")
        .text(process.address)
        .key("http")
        .text(http)
        .key("log")
        .text(cluster->log_file(name))
        .end_object();
    text += fmt::format("{:<18} {:<8} {:>8}  {:<22} {}\n", name.to_string(), state, pid, process.address,
                        http.empty() ? "" : "http://" + http + "/metrics");
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
    if (Status status = cluster.start({name}); !status) return report(status);
    if (Status status = wait_until_served(cluster, {name}, args.timeout_s); !status) return report(status);
    return kOk;
  });
}

int run_local_add_node(const LocalArgs& args) {
  const auto name = add_node(args);
  if (!name) return report(name.error());
  print_line(name->to_string());
  return kOk;
}

}  // namespace fjord::cli
