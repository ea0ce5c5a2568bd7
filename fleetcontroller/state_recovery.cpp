#include "state_recovery.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
#include "time_grants.h"

namespace fjord::fleetcontroller {
namespace {

/// Returns the info with the highest state version that a node has in use; null if no node knows a state.
const rpc::ClusterInfo* newest_state(const KnownByNodes& known) {
  const rpc::ClusterInfo* newest = nullptr;
  for (const auto& [name, node] : known) {
    if (!node.reply || !node.reply->status || node.reply->info.state_version == 0) continue;
    const rpc::ClusterInfo& info = node.reply->info;
    if (newest == nullptr || info.state_version > newest->state_version) newest = &info;
  }
  return newest;
}

class Asker : public std::enable_shared_from_this<Asker> {
 public:
  Asker(rpc::Transport& transport, Executor& executor, Duration timeout, std::function<void(KnownByNodes)> done)
      : transport_(transport), executor_(executor), timeout_(timeout), done_(std::move(done)) {}

  void ask(const std::map<std::string, rpc::Address>& nodes) {
    missing_ = 1;
    for (const auto& [name, address] : nodes) {
      if (address.empty() || known_.contains(name)) continue;
      ++missing_;
      known_.emplace(name, KnownByNode{address, Status(StatusCode::Timeout, "no answer")});
      rpc::GetClusterInfo question;
      question.everything = true;
      rpc::call(transport_, address, std::move(question), timeout_, executor_,
                [self = shared_from_this(), name = name](Result<rpc::GetClusterInfoReply> reply) {
                  self->known_.at(name).reply = std::move(reply);
                  self->answered();
                });
    }
    answered();
  }

 private:
  void answered() {
    if (--missing_ != 0) return;
    const rpc::ClusterInfo* newest = newest_state(known_);
    std::map<std::string, rpc::Address> more;
    if (newest != nullptr) {
      add(NodeType::Distributor, newest->distributor_addresses, more);
      add(NodeType::Storage, newest->storage_addresses, more);
    }
    if (!more.empty()) return ask(more);
    done_(std::move(known_));
  }

  void add(NodeType type, const std::vector<rpc::Address>& addresses, std::map<std::string, rpc::Address>& more) const {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      const std::string name = NodeId{type, static_cast<std::uint16_t>(i)}.to_string();
      if (!addresses[i].empty() && !known_.contains(name)) more[name] = addresses[i];
    }
  }

  rpc::Transport& transport_;
  Executor& executor_;
  const Duration timeout_;
  std::function<void(KnownByNodes)> done_;
  KnownByNodes known_;
  std::size_t missing_ = 0;
};

class Recovery {
 public:
  Recovery(const KnownByNodes& known, const rpc::RecoverState& request, std::uint64_t store_term, std::int64_t unix_us)
      : known_(known), request_(request), store_term_(store_term), unix_us_(unix_us) {}

  RecoveredRecords run() {
    out_.reply.status = collect();
    if (out_.reply.status) out_.reply.status = build();
    if (!out_.reply.status || !out_.reply.refusals.empty()) {
      out_.cluster = {};
      out_.schemas = {};
      out_.identity = {};
    }
    return std::move(out_);
  }

 private:
  static std::string describe(const KnownByNode& node) {
    if (!node.reply) return "no answer: " + node.reply.error().to_string();
    if (!node.reply->status) return node.reply->status.to_string();
    const rpc::ClusterInfo& info = node.reply->info;
    return fmt::format("cluster state {} of term {}{}, schemas {}, configuration {}", info.state_version, info.term,
                       info.pending_state.empty() ? "" : ", and a pending one", info.schema_version,
                       info.config_version);
  }

  Status collect() {
    for (const auto& [name, node] : known_) {
      out_.reply.found.push_back(name + " at " + node.address + ": " + describe(node));
      if (!node.reply || !node.reply->status) continue;
      FJORD_TRY(take(name, *node.reply));
    }
    if (state_ == nullptr || state_->state_version == 0) {
      return {StatusCode::NotFound,
              "no node knows a cluster state: those that were started since the records were lost "
              "have heard of none"};
    }
    return Status::ok();
  }

  Status take(const std::string& name, const rpc::GetClusterInfoReply& reply) {
    const rpc::ClusterInfo& info = reply.info;
    term_ = std::max(term_, info.term);
    time_limit_us_ = std::max(time_limit_us_, reply.time_ceiling_us);
    FJORD_TRY(take_cluster_id(name, info.cluster_id));
    FJORD_TRY(take_version(info.state));
    FJORD_TRY(take_version(info.pending_state));
    FJORD_TRY(take_newest(
        name, info, state_, info.state_version, "cluster state",
        [](const rpc::ClusterInfo& i) { return i.state_version; },
        [](const rpc::ClusterInfo& a, const rpc::ClusterInfo& b) {
          return a.state == b.state && a.distribution == b.distribution && a.storage_addresses == b.storage_addresses;
        }));
    FJORD_TRY(take_newest(
        name, info, schemas_, info.schema_version, "schemas",
        [](const rpc::ClusterInfo& i) { return i.schema_version; },
        [](const rpc::ClusterInfo& a, const rpc::ClusterInfo& b) { return a.schemas == b.schemas; }));
    return take_newest(
        name, info, config_, info.config_version, "configuration",
        [](const rpc::ClusterInfo& i) { return i.config_version; },
        [](const rpc::ClusterInfo& a, const rpc::ClusterInfo& b) { return a.config == b.config; });
  }

  /// Sets `newest` to `info` if its version is higher. Errors: Corruption if `info` has another content for the same
  /// version: the nodes belong to two clusters, or to one that was split.
  template <typename VersionOf, typename Same>
  static Status take_newest(const std::string& name, const rpc::ClusterInfo& info, const rpc::ClusterInfo*& newest,
                            std::uint64_t version, const char* what, VersionOf version_of, Same same) {
    if (newest == nullptr || version > version_of(*newest)) {
      newest = &info;
    } else if (version == version_of(*newest) && !same(info, *newest)) {
      return {StatusCode::Corruption, fmt::format("{} knows {} {} otherwise than another node: they are not of one "
                                                  "cluster; stop the one that does not belong to it",
                                                  name, what, version)};
    }
    return Status::ok();
  }

  Status take_cluster_id(const std::string& name, std::uint64_t id) {
    std::uint64_t& known = out_.identity.cluster_id;
    if (known == 0) known = id;
    if (id == 0 || id == known) return Status::ok();
    return {StatusCode::Corruption, fmt::format("{} is of cluster {:016x}, and another node of cluster {:016x}: stop "
                                                "the one that does not belong to this cluster",
                                                name, id, known)};
  }

  Status take_version(const std::string& text) {
    if (text.empty()) return Status::ok();
    FJORD_TRY_ASSIGN(const ClusterState state, ClusterState::parse(text));
    version_ = std::max(version_, state.version());
    time_limit_us_ = std::max(time_limit_us_, state.time_floor_us());
    return Status::ok();
  }

  Status build() {
    FJORD_TRY_ASSIGN(ClusterState state, ClusterState::parse(state_->state));
    FJORD_TRY(DistributionConfig::parse(state_->distribution).status());
    check_silent(state);
    ClusterRecord& record = out_.cluster;
    record.active = {state_->state_version, state_->state, state_->distribution, state_->distributor_addresses,
                     state_->storage_addresses};
    record.nodes = {state_->distribution,
                    state_->distributor_addresses,
                    state_->storage_addresses,
                    state.bits(),
                    {state.exceptions().begin(), state.exceptions().end()},
                    state.exceptions().empty() && state.read_shares().empty() ? 0U : state.bits(),
                    {state.read_shares().begin(), state.read_shares().end()}};
    take_wanted(state);
    take_lost(state);
    take_config();
    out_.schemas = {schemas_->schema_version, schemas_->schemas};
    // A leader grants times at most this far ahead of its clock. So the limit is also above the grants of silent nodes.
    out_.time_limit_us = std::max(time_limit_us_, static_cast<std::uint64_t>(std::max<std::int64_t>(0, unix_us_))) +
                         TimeGrants::kStoredAheadUs;
    record.term_base = term_ + 1 > store_term_ ? term_ + 1 - store_term_ : 0;
    add_pending(std::move(state));
    describe_record();
    return Status::ok();
  }

  /// Adds a pending state with the same nodes and a version above all that any node may know. A node that acknowledges
  /// it has left all earlier states.
  void add_pending(ClusterState state) {
    ClusterRecord& record = out_.cluster;
    const std::uint64_t before = state.version();
    state.set_version(version_ + kVersionGap);
    state.set_follows(before);
    state.set_time_floor_us(out_.time_limit_us);
    record.pending = record.active;
    record.pending->version = state.version();
    record.pending->state = state.to_string();
    HistoryEntry entry;
    entry.version = state.version();
    entry.term = store_term_ + record.term_base;
    entry.unix_us = unix_us_;
    entry.what = fmt::format("records recovered from nodes: cluster state {}, schemas {}, configuration {}", before,
                             schemas_->schema_version, config_->config_version);
    entry.who = request_.who.empty() ? "an operator" : request_.who;
    record.add_history(std::move(entry));
  }

  void check_silent(const ClusterState& state) {
    for (const auto& [name, node] : known_) {
      if (node.reply && node.reply->status) continue;
      const Result<NodeId> id = NodeId::parse(name);
      const bool is_restarted = node.reply && node.reply->status.code() == StatusCode::NotReady;
      if (!id || is_restarted || state.node(*id).state == NodeState::Down) continue;
      std::string line = fmt::format(
          "{} at {} does not answer, and may know a newer cluster state, newer schemas or "
          "settings",
          name, node.address);
      if (request_.force) {
        out_.reply.warnings.push_back("forced although " + std::move(line));
      } else {
        out_.reply.refusals.push_back(std::move(line));
      }
    }
  }

  /// Reconstructs the states that operators have set, as far as the cluster state shows them. A node that answers and
  /// is in maintenance was set to it by an operator, because silence cannot be the reason.
  void take_wanted(const ClusterState& state) {
    for (const auto& [name, node] : known_) {
      const Result<NodeId> id = NodeId::parse(name);
      if (!id || !node.reply || !node.reply->status) continue;
      const NodeState now = state.node(*id).state;
      if (now != NodeState::Retired && now != NodeState::Maintenance) continue;
      out_.cluster.wanted[name] = {now, "as before the records were lost", request_.who, unix_us_};
      out_.reply.warnings.push_back(
          fmt::format("{} stays {}: `fjord node up {}` takes it back", name, fjord::to_string(now), name));
    }
  }

  /// Keeps the marks of nodes that have lost their data. The numbers of their folders are not known any more.
  void take_lost(const ClusterState& state) {
    for (std::uint16_t i = 0; i < state.node_count(NodeType::Storage); ++i) {
      if (state.has_lost_data(i)) {
        out_.identity.folders[NodeId::storage(i).to_string()] = {0, kUnknownFolder, unix_us_};
      }
    }
  }

  void take_config() {
    if (config_->config_version == 0) return;
    ConfigVersion config{config_->config_version, unix_us_, request_.who, {}};
    for (const std::string& assignment : config_->config) {
      const std::size_t at = assignment.find('=');
      if (at != std::string::npos) config.values[assignment.substr(0, at)] = assignment.substr(at + 1);
    }
    out_.cluster.add_config(std::move(config));
  }

  void describe_record() {
    const ClusterRecord& record = out_.cluster;
    out_.reply.state = record.active.state;
    out_.reply.distribution = record.active.distribution;
    out_.reply.state_version = record.active.version;
    out_.reply.next_version = record.pending->version;
    out_.reply.term = term_;
    out_.reply.schema_version = schemas_->schema_version;
    out_.reply.schemas = out_.schemas.schemas.size();
    out_.reply.config_version = config_->config_version;
    out_.reply.settings = record.config().size();
  }

  const KnownByNodes& known_;
  const rpc::RecoverState& request_;
  const std::uint64_t store_term_;
  const std::int64_t unix_us_;
  RecoveredRecords out_;
  const rpc::ClusterInfo* state_ = nullptr;
  const rpc::ClusterInfo* schemas_ = nullptr;
  const rpc::ClusterInfo* config_ = nullptr;
  std::uint64_t term_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t time_limit_us_ = 0;
};

}  // namespace

void ask_what_nodes_know(const std::map<std::string, rpc::Address>& nodes, rpc::Transport& transport,
                         Executor& executor, Duration timeout, std::function<void(KnownByNodes)> done) {
  std::make_shared<Asker>(transport, executor, timeout, std::move(done))->ask(nodes);
}

RecoveredRecords recover_records(const KnownByNodes& known, const rpc::RecoverState& request, std::uint64_t store_term,
                                 std::int64_t unix_us) {
  return Recovery(known, request, store_term, unix_us).run();
}

}  // namespace fjord::fleetcontroller
