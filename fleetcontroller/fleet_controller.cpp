#include "fjord/fleetcontroller/fleet_controller.h"

#include <algorithm>

#include "fjord/cluster/distribution.h"
#include "fjord/common/log.h"
#include "fjord/document/document_type.h"
#include "fjord/document/schema_change.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "schema_name.h"
#include "state_file.h"
#include "state_generator.h"

namespace fjord::fleetcontroller {
namespace {

// Polls of one node at once: a lost answer must not hide the next one, and a slow answer is an answer.
constexpr unsigned kPollsMax = 4;

}  // namespace

class FleetController::Impl {
 public:
  Impl(const FleetControllerOptions& options, Runtime& runtime, rpc::Transport& transport, PersistedState persisted,
       ClusterState state)
      : options_(options),
        clock_(runtime.clock),
        env_(runtime.env),
        transport_(transport),
        versions_(runtime.metrics.counter("fjord_fleetcontroller_states_total", "Cluster states published")),
        nodes_up_(runtime.metrics.gauge("fjord_fleetcontroller_nodes_up", "Nodes up in the cluster state")),
        persisted_(std::move(persisted)),
        state_(std::move(state)),
        executor_(runtime.scheduler.make_executor("controller")) {
    for (std::size_t i = 0; i < options_.distributors.size(); ++i)
      add_node(NodeType::Distributor, i, options_.distributors[i]);
    for (std::size_t i = 0; i < options_.storage.size(); ++i) add_node(NodeType::Storage, i, options_.storage[i]);
  }

  void start() {
    executor_->post([this] {
      grace_until_ = clock_.now() + options_.start_grace;
      tick();
    });
  }

  Executor& executor() { return *executor_; }

  void handle(rpc::Request request, rpc::Responder respond) {
    if (auto* get = std::get_if<rpc::GetClusterInfo>(&request)) {
      rpc::GetClusterInfoReply reply;
      reply.info = info_newer_than(get->known_state_version, get->known_schema_version);
      respond(std::move(reply));
    } else if (auto* deploy = std::get_if<rpc::DeploySchemas>(&request)) {
      respond(deploy_schemas(*deploy));
    } else {
      respond(status());
    }
  }

 private:
  struct Node {
    rpc::Address address;
    NodeReport report;
    rpc::PollReply last;
    unsigned polls_under_way = 0;
    bool poll_again = false;  // Something changed while a poll was under way.
  };

  void add_node(NodeType type, std::size_t index, const rpc::Address& address) {
    Node node;
    node.address = address;
    node.report.id = {type, static_cast<std::uint16_t>(index)};
    auto known = persisted_.incarnations.find(node.report.id.to_string());
    if (known != persisted_.incarnations.end()) node.report.published_incarnation = known->second;
    nodes_.push_back(std::move(node));
  }

  void tick() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) poll(i);
    update_state();
    executor_->post_after(options_.poll_interval, [this] { tick(); });
  }

  void poll(std::size_t i) {
    Node& node = nodes_[i];
    if (node.polls_under_way >= kPollsMax) return;
    ++node.polls_under_way;
    node.poll_again = false;
    rpc::Poll request;
    if (state_.version() > 0) request.info = info_newer_than(node.last.state_version, node.last.schema_version);
    rpc::call(transport_, node.address, std::move(request), options_.poll_timeout, *executor_,
              [this, i](Result<rpc::PollReply> reply) { on_answer(i, std::move(reply)); });
  }

  void on_answer(std::size_t i, Result<rpc::PollReply> reply) {
    Node& node = nodes_[i];
    --node.polls_under_way;
    if (reply && reply->status) {
      node.report.answered = true;
      node.report.last_answer = clock_.now();
      node.report.incarnation = reply->incarnation;
      Result<NodeStateInfo> reported = NodeStateInfo::parse(reply->node_state, node.report.id.type);
      node.report.reported = reported ? reported->state : NodeState::Down;
      node.last = std::move(*reply);
    } else {
      // Whatever it knew, a process behind the same address may have started anew since.
      node.last.state_version = 0;
      node.last.schema_version = 0;
    }
    update_state();
    bool behind = state_.version() > 0 &&
                  (node.last.state_version < state_.version() || node.last.schema_version < persisted_.schema_version);
    if (reply && reply->status && (node.poll_again || behind)) poll(i);
  }

  void update_state() {
    // The first state of a new cluster waits until everybody is there or the grace is over: one version instead of
    // many.
    bool all_answered = std::all_of(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.report.answered; });
    if (state_.version() == 0 && !all_answered && clock_.now() < grace_until_) return;
    std::vector<NodeReport> reports;
    reports.reserve(nodes_.size());
    for (const Node& node : nodes_) reports.push_back(node.report);
    ClusterState next =
        generate_state(state_, reports, {options_.distribution_bits, options_.down_after, grace_until_}, clock_.now());
    if (next == state_) return;
    publish(std::move(next));
  }

  void publish(ClusterState next) {
    PersistedState persisted = persisted_;
    persisted.state = next.to_string();
    for (const Node& node : nodes_) {
      if (node.report.answered) persisted.incarnations[node.report.id.to_string()] = node.report.incarnation;
    }
    if (Status saved = save_state(env_, options_.directory, persisted); !saved) {
      // A version that could be forgotten must not be seen by anybody.
      log::error("controller", "cannot store cluster state {}: {}", next.version(), saved.to_string());
      return;
    }
    log::info("controller", "cluster state {} ({})", persisted.state, state_.diff(next));
    persisted_ = std::move(persisted);
    state_ = std::move(next);
    versions_.add();
    double up = 0;
    for (Node& node : nodes_) {
      // One that has not answered since our start keeps what the file said: it need not have restarted.
      if (node.report.answered) node.report.published_incarnation = node.report.incarnation;
      up += state_.is_up(node.report.id) ? 1 : 0;
    }
    nodes_up_.set(up);
    push();
  }

  /// Tells every node at once instead of at the next tick.
  void push() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].poll_again = true;
      if (nodes_[i].report.answered) poll(i);
    }
  }

  rpc::ClusterInfo info_newer_than(std::uint64_t state_version, std::uint64_t schema_version) const {
    rpc::ClusterInfo info;
    info.state_version = state_.version();
    info.schema_version = persisted_.schema_version;
    if (state_.version() > state_version) {
      info.state = persisted_.state;
      info.distribution = options_.distribution;
      info.distributor_addresses = options_.distributors;
      info.storage_addresses = options_.storage;
    }
    if (persisted_.schema_version > schema_version) info.schemas = persisted_.schemas;
    return info;
  }

  /// What was stored under the schemas so far must be readable under the new ones.
  Status check_readable(const DocumentTypeRepo& types, const std::vector<std::string>& may_drop) const {
    std::vector<std::string> all = rpc::builtin_schemas();
    all.insert(all.end(), persisted_.schemas.begin(), persisted_.schemas.end());
    auto old = DocumentTypeRepo::build(all);
    if (!old) return old.error().with_context("the schemas so far");
    return check_schema_change(**old, types, {.may_drop = may_drop});
  }

  rpc::DeploySchemasReply deploy_schemas(const rpc::DeploySchemas& request) {
    rpc::DeploySchemasReply reply;
    std::vector<std::string> schemas = persisted_.schemas;
    for (const std::string& text : request.schemas) {
      Result<std::string> name = schema_name(text);
      if (!name) {
        reply.status = name.error();
        return reply;
      }
      auto same = std::find_if(schemas.begin(), schemas.end(), [&](const std::string& old) {
        Result<std::string> old_name = schema_name(old);
        return old_name && *old_name == *name;
      });
      if (same == schemas.end()) {
        schemas.push_back(text);
      } else {
        *same = text;
      }
    }
    std::vector<std::string> all = rpc::builtin_schemas();
    all.insert(all.end(), schemas.begin(), schemas.end());
    auto built = DocumentTypeRepo::build(all, &reply.warnings);
    if (!built) {
      reply.status = Status(built.error().code(), with_schema_names(built.error().message(), all));
      return reply;
    }
    if (Status readable = check_readable(**built, request.may_drop); !readable) {
      reply.status = std::move(readable);
      return reply;
    }
    for (std::string& warning : reply.warnings) warning = with_schema_names(std::move(warning), all);
    PersistedState persisted = persisted_;
    if (schemas != persisted.schemas) {
      persisted.schemas = std::move(schemas);
      ++persisted.schema_version;
      if (Status saved = save_state(env_, options_.directory, persisted); !saved) {
        reply.status = saved;
        return reply;
      }
      persisted_ = std::move(persisted);
      log::info("controller", "schemas version {}", persisted_.schema_version);
      push();
    }
    reply.schema_version = persisted_.schema_version;
    return reply;
  }

  rpc::GetStatusReply status() const {
    rpc::GetStatusReply reply;
    reply.info = info_newer_than(0, 0);
    for (const Node& node : nodes_) {
      rpc::NodeStatus status;
      status.node = node.report.id.to_string();
      status.address = node.address;
      status.state = std::string(to_string(state_.node(node.report.id).state));
      status.last = node.last;
      if (node.report.answered) {
        Duration silent = clock_.now() - node.report.last_answer;
        status.answered_us_ago = silent.count();
        if (silent > options_.down_after) {
          status.reason = "no answer for " + std::to_string(silent.count() / 1'000'000) + " s";
        }
      } else {
        status.reason = "never answered";
      }
      reply.nodes.push_back(std::move(status));
    }
    return reply;
  }

  FleetControllerOptions options_;
  Clock& clock_;
  Env& env_;
  rpc::Transport& transport_;
  Counter& versions_;
  Gauge& nodes_up_;
  PersistedState persisted_;
  ClusterState state_;
  std::vector<Node> nodes_;
  MonotonicTime grace_until_;
  std::unique_ptr<Executor> executor_;  // Last: its tasks use all of the above.
};

FleetController::FleetController(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FleetController::~FleetController() = default;

namespace {

std::string parent_of(const std::string& directory) {
  const std::size_t slash = directory.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : directory.substr(0, slash);
}

}  // namespace

Result<std::unique_ptr<FleetController>> FleetController::open(const FleetControllerOptions& options, Runtime& runtime,
                                                               rpc::Transport& transport) {
  FJORD_TRY_ASSIGN(DistributionConfig distribution, DistributionConfig::parse(options.distribution));
  for (const DistributionGroup::Node& node : distribution.flat_nodes()) {
    if (node.index >= options.storage.size()) {
      return Status(StatusCode::InvalidArgument, "the distribution names storage." + std::to_string(node.index) +
                                                     ", but there are " + std::to_string(options.storage.size()) +
                                                     " storage nodes");
    }
  }
  FJORD_TRY(runtime.env.create_directories(options.directory));
  // A folder whose name is not on the disk is gone after a loss of power, whatever was synced in it.
  FJORD_TRY(runtime.env.sync_directory(parent_of(options.directory)));
  FJORD_TRY_ASSIGN(PersistedState persisted, load_state(runtime.env, options.directory));
  FJORD_TRY_ASSIGN(ClusterState state, ClusterState::parse(persisted.state));
  auto impl = std::make_unique<Impl>(options, runtime, transport, std::move(persisted), std::move(state));
  impl->start();
  return std::unique_ptr<FleetController>(new FleetController(std::move(impl)));
}

bool FleetController::handle(rpc::Request& request, rpc::Responder& respond) {
  if (!std::holds_alternative<rpc::GetClusterInfo>(request) && !std::holds_alternative<rpc::DeploySchemas>(request) &&
      !std::holds_alternative<rpc::GetStatus>(request)) {
    return false;
  }
  impl_->executor().post([impl = impl_.get(), request = std::move(request), respond = std::move(respond)]() mutable {
    impl->handle(std::move(request), std::move(respond));
  });
  return true;
}

}  // namespace fjord::fleetcontroller
