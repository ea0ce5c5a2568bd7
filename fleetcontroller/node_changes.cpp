#include "node_changes.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <functional>
#include <iterator>
#include <limits>

#include "balance_steps.h"
#include "fjord/cluster/placement_plan.h"
#include "live_config.h"
#include "movement_plan.h"

namespace fjord::fleetcontroller {
namespace {

using rpc::NodeAction;

Status invalid(std::string message) { return {StatusCode::InvalidArgument, std::move(message)}; }

Status bad_address(std::string_view what) {
  return invalid(
      fmt::format("expected the address of {} as host:port, a name or an address and a number to 65535", what));
}

/// Calls `change` for the group that directly holds the node. Returns false if there is none.
bool with_group_of(DistributionGroup& group, std::uint16_t index,
                   const std::function<void(DistributionGroup&)>& change) {
  const auto holds = [&](const DistributionGroup::Node& node) { return node.index == index; };
  if (std::any_of(group.nodes.begin(), group.nodes.end(), holds)) {
    change(group);
    return true;
  }
  return std::any_of(group.groups.begin(), group.groups.end(),
                     [&](DistributionGroup& child) { return with_group_of(child, index, change); });
}

std::vector<DistributionGroup*> leaves(DistributionGroup& group) {
  if (group.groups.empty()) return {&group};
  std::vector<DistributionGroup*> all;
  for (DistributionGroup& child : group.groups) {
    for (DistributionGroup* leaf : leaves(child)) all.push_back(leaf);
  }
  return all;
}

Result<double> parse_number(const std::string& text, double min, double max, std::string_view what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= min) || value > max) {
    return invalid(fmt::format("not a {}: \"{}\" (expected a number from {:.0f} to {:.0f})", what, text, min, max));
  }
  return value;
}

Result<double> parse_capacity(const std::string& text) {
  return text.empty() ? Result<double>(1.0) : parse_number(text, 0, 1e6, "capacity");
}

std::string_view verb(NodeAction action) {
  switch (action) {
    case NodeAction::Up:
      return "up";
    case NodeAction::Maintenance:
      return "maintenance";
    case NodeAction::Retire:
      return "retired";
    case NodeAction::Down:
      return "down";
    case NodeAction::Add:
      return "added";
    case NodeAction::Remove:
      return "removed";
    case NodeAction::Replace:
      return "replaced";
    case NodeAction::Capacity:
      return "capacity";
    case NodeAction::Balance:
      return "balanced";
    case NodeAction::AcceptLoss:
      return "the loss of its data accepted";
    case NodeAction::Stop:
    case NodeAction::Unknown:
      break;
  }
  return "";
}

class NodeChange {
 public:
  NodeChange(const ClusterRecord& record, const ClusterFacts& facts, const rpc::ChangeNodes& request,
             std::int64_t unix_us)
      : changed(record), facts_(facts), request_(request), unix_us_(unix_us) {}

  Status run() {
    add_refusals(facts_.objections);
    if (request_.action == NodeAction::Balance) return balance();
    if (request_.nodes.empty()) return invalid("which node?");
    if (request_.action == NodeAction::Add) return add();
    for (const std::string& name : request_.nodes) {
      FJORD_TRY_ASSIGN(const NodeId id, NodeId::parse(name));
      if (facts_.find(id) == nullptr) return {StatusCode::NotFound, "there is no " + name};
      ids_.push_back(id);
      reply.nodes.push_back(id.to_string());
    }
    return change();
  }

  /// Returns the cluster as it will be once this change, and all states that operators have set before, are in force.
  Result<ClusterView> view_after() const {
    FJORD_TRY_ASSIGN(DistributionConfig distribution, DistributionConfig::parse(changed.nodes.distribution));
    ClusterState state = *facts_.active.state;
    if (changed.nodes.exceptions_bits == state.bits()) state.set_exceptions(changed.nodes.exceptions);
    for (const auto& [name, wanted] : changed.wanted) {
      const Result<NodeId> id = NodeId::parse(name);
      // A node whose maintenance has exceeded its limit is down already.
      const bool is_over = id && wanted.state == NodeState::Maintenance && wanted.since_unix_us != unix_us_ &&
                           state.node(*id).state == NodeState::Down;
      if (!id || is_over) continue;
      if (wanted_may_override(state.node(*id).state, wanted.state)) state.set_node_state(*id, wanted.state);
    }
    for (const NodeFacts& node : facts_.nodes) {
      const bool comes_back = node.state == NodeState::Retired && !changed.wanted.contains(node.id.to_string());
      if (comes_back) state.set_node_state(node.id, NodeState::Up);
    }
    for (NodeId id : ids_) {
      // A node that does not answer keeps its state, whatever operators have set.
      const NodeFacts* node = facts_.find(id);
      const bool is_back = request_.action == NodeAction::Up && node != nullptr && node->is_fresh;
      const auto wanted = changed.wanted.find(id.to_string());
      if (wanted != changed.wanted.end()) {
        if (is_back) state.set_node_state(id, wanted->second.state);
      } else if (is_back || request_.action == NodeAction::Add) {
        state.set_node_state(id, NodeState::Up);
      }
    }
    return ClusterView::make(std::move(state), distribution.with_redundancy(facts_.active.redundancy()));
  }

  /// Adds the reasons against the change that follow from the cluster after it.
  void check_result(const ClusterView& after) {
    if (takes_data_away_) add_refusals(why_not_drain(after));
  }

  rpc::ChangeNodesReply reply;
  ClusterRecord changed;

 private:
  Status change() {
    switch (request_.action) {
      case NodeAction::Up:
        want(NodeState::Up);
        break;
      case NodeAction::Maintenance:
        add_refusals(why_not_stop(facts_, not_ordered_yet()));
        want(NodeState::Maintenance);
        break;
      case NodeAction::Stop:
        add_refusals(why_not_stop(facts_, ids_));
        break;
      case NodeAction::Down:
        add_refusals(why_not_stop(facts_, not_ordered_yet()));
        add_refusals(why_not_remove(facts_, not_ordered_yet()));
        want(NodeState::Down);
        break;
      case NodeAction::Retire:
        for (NodeId id : ids_) {
          if (id.type != NodeType::Storage) return invalid("a distributor holds nothing: take it down instead");
          // A request that is repeated, for example because its answer was lost, takes nothing away.
          const auto wanted = changed.wanted.find(id.to_string());
          takes_data_away_ |= wanted == changed.wanted.end() || wanted->second.state != NodeState::Retired;
        }
        want(NodeState::Retired);
        break;
      case NodeAction::Remove:
        return remove();
      case NodeAction::Replace:
        return replace();
      case NodeAction::Capacity:
        return set_capacity();
      case NodeAction::AcceptLoss:
        return check_lost();
      case NodeAction::Add:
      case NodeAction::Balance:
      case NodeAction::Unknown:
        return invalid("there is no such action");
    }
    return Status::ok();
  }

  void add_refusals(std::vector<std::string> more) {
    reply.refusals.insert(reply.refusals.end(), more.begin(), more.end());
  }

  std::vector<NodeId> not_ordered_yet() const {
    std::vector<NodeId> rest;
    std::copy_if(ids_.begin(), ids_.end(), std::back_inserter(rest),
                 [&](NodeId id) { return !is_ordered(changed, *facts_.active.state, id, request_.action); });
    return rest;
  }

  /// Keeps the order to retire a node for the time after its maintenance.
  void keep_retirement(const std::string& name) {
    const auto found = changed.wanted.find(name);
    if (found == changed.wanted.end() || found->second.state != NodeState::Retired) return;
    changed.wanted_after[name] = found->second;
    reply.warnings.push_back(fmt::format("{} is being retired, which goes on after its maintenance", name));
  }

  /// Ends what operators have ordered of a node. After maintenance that is only the maintenance.
  void take_back(NodeId id) {
    const std::string name = id.to_string();
    const NodeFacts* node = facts_.find(id);
    const auto found = changed.wanted.find(name);
    if (found == changed.wanted.end()) reply.warnings.push_back(name + " was not taken out by anybody");
    if (node != nullptr && !node->is_fresh) reply.warnings.push_back(name + " does not answer");
    const auto after = changed.wanted_after.extract(name);
    if (!after.empty() && found != changed.wanted.end() && found->second.state == NodeState::Maintenance) {
      found->second = after.mapped();
      reply.warnings.push_back(
          fmt::format("its maintenance ends, and {} goes on being retired, as {} has ordered before "
                      "({}); fjord node up {} once more keeps it",
                      name, found->second.who.empty() ? "an operator" : found->second.who,
                      found->second.reason.empty() ? "no reason" : found->second.reason, name));
      return;
    }
    if (found == changed.wanted.end()) return;
    if (found->second.state == NodeState::Retired) {
      reply.warnings.push_back(name + " is no longer being retired, and gets its replicas back");
    }
    changed.wanted.erase(found);
  }

  void want(NodeState state) {
    for (NodeId id : ids_) {
      const std::string name = id.to_string();
      const auto found = changed.wanted.find(name);
      if (found != changed.wanted.end() && !found->second.who.empty() && found->second.who != request_.who) {
        reply.warnings.push_back(fmt::format("{} was {} by {}: {}", name, fjord::to_string(found->second.state),
                                             found->second.who, found->second.reason));
      }
      if (facts_.active.node(id).state == state && state != NodeState::Up) {
        reply.warnings.push_back(fmt::format("{} is {} already", name, fjord::to_string(state)));
      }
      if (state == NodeState::Up) {
        take_back(id);
      } else {
        if (state == NodeState::Maintenance) {
          keep_retirement(name);
        } else {
          changed.wanted_after.erase(name);
        }
        changed.wanted[name] = {state, request_.reason, request_.who, unix_us_};
      }
    }
  }

  Status with_distribution(const std::function<Status(DistributionGroup&)>& edit) {
    FJORD_TRY_ASSIGN(const DistributionConfig distribution, DistributionConfig::parse(changed.nodes.distribution));
    DistributionGroup root = distribution.root();
    FJORD_TRY(edit(root));
    FJORD_TRY_ASSIGN(const DistributionConfig edited, DistributionConfig::make(distribution.redundancy(), root));
    changed.nodes.distribution = edited.to_string();
    return Status::ok();
  }

  Status add() {
    if (request_.nodes.size() != 1) return invalid("one node at a time is added");
    if (!is_node_address(request_.address)) return bad_address("the node");
    for (const std::vector<std::string>* list : {&changed.nodes.storage, &changed.nodes.distributors}) {
      if (std::find(list->begin(), list->end(), request_.address) != list->end()) {
        return {StatusCode::AlreadyExists, "there is a node at " + request_.address};
      }
    }
    const bool is_storage = request_.nodes[0] == "storage";
    if (!is_storage && request_.nodes[0] != "distributor") return invalid("expected storage or distributor");
    std::vector<std::string>& list = is_storage ? changed.nodes.storage : changed.nodes.distributors;
    if (list.size() >= kMaxNodeCount) return invalid("there are as many nodes as there can be");
    const NodeId id{is_storage ? NodeType::Storage : NodeType::Distributor, static_cast<std::uint16_t>(list.size())};
    list.push_back(request_.address);
    if (!facts_.asked_as.empty() && facts_.asked_as != id.to_string()) {
      add_refusals({fmt::format("another node was added meanwhile: this one would be {}", id.to_string())});
    }
    ids_.push_back(id);
    reply.nodes.push_back(id.to_string());
    return is_storage ? add_to_group(id.index) : Status::ok();
  }

  Status add_to_group(std::uint16_t index) {
    FJORD_TRY_ASSIGN(const double capacity, parse_capacity(request_.capacity));
    return with_distribution([&](DistributionGroup& root) -> Status {
      for (DistributionGroup* leaf : leaves(root)) {
        const bool is_meant = request_.group.empty() ? root.groups.empty() : leaf->name == request_.group;
        if (!is_meant) continue;
        leaf->nodes.push_back({index, capacity});
        return Status::ok();
      }
      std::string names;
      for (DistributionGroup* leaf : leaves(root)) names += (names.empty() ? "" : ", ") + leaf->name;
      return invalid(fmt::format("not a group with nodes: \"{}\"; there are: {}", request_.group, names));
    });
  }

  Status remove() {
    add_refusals(why_not_remove(facts_, ids_));
    std::vector<NodeId> distributors;
    for (NodeId id : ids_) {
      if (id.type == NodeType::Distributor) distributors.push_back(id);
    }
    if (!distributors.empty()) add_refusals(why_not_stop(facts_, distributors));
    for (NodeId id : ids_) {
      changed.wanted[id.to_string()] = {NodeState::Down, request_.reason.empty() ? "removed" : request_.reason,
                                        request_.who, unix_us_};
      changed.wanted_after.erase(id.to_string());
      std::vector<std::string>& list =
          id.type == NodeType::Storage ? changed.nodes.storage : changed.nodes.distributors;
      if (id.index < list.size()) list[id.index].clear();
      if (id.type != NodeType::Storage) continue;
      FJORD_TRY(with_distribution([&](DistributionGroup& root) {
        with_group_of(root, id.index, [&](DistributionGroup& group) {
          std::erase_if(group.nodes, [&](const DistributionGroup::Node& node) { return node.index == id.index; });
        });
        return Status::ok();
      }));
    }
    return Status::ok();
  }

  Status replace() {
    if (ids_.size() != 1) return invalid("one node at a time is replaced");
    if (!is_node_address(request_.address)) return bad_address("the new one");
    const NodeFacts& node = *facts_.find(ids_[0]);
    if (node.is_fresh && is_available(node.state)) reply.refusals.push_back(ids_[0].to_string() + " is up and serves");
    if (!is_available(node.state) && ids_[0].type == NodeType::Storage) add_refusals(why_not_forget(facts_));
    const bool is_storage = ids_[0].type == NodeType::Storage;
    std::vector<std::string>& list = is_storage ? changed.nodes.storage : changed.nodes.distributors;
    if (ids_[0].index >= list.size()) return {StatusCode::NotFound, "there is no " + ids_[0].to_string()};
    list[ids_[0].index] = request_.address;
    changed.wanted.erase(ids_[0].to_string());
    changed.wanted_after.erase(ids_[0].to_string());
    return Status::ok();
  }

  Status check_lost() const {
    for (NodeId id : ids_) {
      if (facts_.active.node(id).lost_version != 0) continue;
      return invalid(id.to_string() + " has its data: only the loss of a node that came back without it is accepted");
    }
    return Status::ok();
  }

  Status set_capacity() {
    if (request_.capacity.empty()) return invalid("which capacity?");
    FJORD_TRY_ASSIGN(const double capacity, parse_capacity(request_.capacity));
    for (NodeId id : ids_) {
      if (id.type != NodeType::Storage) return invalid("only storage nodes have a capacity");
      bool is_there = false;
      FJORD_TRY(with_distribution([&](DistributionGroup& root) {
        is_there = with_group_of(root, id.index, [&](DistributionGroup& group) {
          for (DistributionGroup::Node& node : group.nodes) {
            if (node.index != id.index) continue;
            takes_data_away_ |= capacity == 0 && node.capacity != 0;
            node.capacity = capacity;
          }
        });
        return Status::ok();
      }));
      if (!is_there) return {StatusCode::NotFound, id.to_string() + " is in no group"};
    }
    return Status::ok();
  }

  Status balance() {
    if (!request_.nodes.empty()) return invalid("the whole cluster is balanced, not single nodes");
    reply.nodes.push_back("cluster");
    if (request_.balance_to == "off") {
      change_table_to({});
      return Status::ok();
    }
    ExceptionPlanOptions options;
    if (!request_.balance_to.empty()) {
      FJORD_TRY_ASSIGN(options.max_over_mean, parse_number(request_.balance_to, 1, 100, "max/mean"));
    }
    if (facts_.bucket_bytes.size() != std::size_t{1} << facts_.active.bits()) {
      return {StatusCode::Unavailable, "the distribution bits changed meanwhile"};
    }
    ExceptionPlan plan = plan_exceptions(facts_.bucket_bytes, *view_of_places(facts_.active).state,
                                         *facts_.active.distribution, options);
    reply.plan.notes.push_back(
        fmt::format("max/mean of bytes: {:.3f} by the algorithm alone, {:.3f} now, {:.3f} with {} "
                    "buckets kept elsewhere",
                    plan.without, plan.before, plan.after, plan.exceptions.size()));
    if (plan.after > options.max_over_mean) {
      reply.warnings.push_back(fmt::format("{} is not reached: the buckets are too large, too few or too many for it",
                                           options.max_over_mean));
    }
    OverrideTable table = table_of(*facts_.active.state);
    table.exceptions = std::move(plan.exceptions);
    change_table_to(std::move(table));
    return Status::ok();
  }

  void change_table_to(OverrideTable table) {
    BalanceStep step;
    step.kind = "bytes";
    step.unix_us = unix_us_;
    step.state_version = facts_.active.version();
    step.moves = moves_between(view_of_places(facts_.active), table, facts_.bucket_bytes);
    step.who = request_.who.empty() ? "an operator" : request_.who;
    step.why = request_.reason;
    change_table(changed, std::move(table), facts_.active.bits(), std::move(step));
  }

  const ClusterFacts& facts_;
  const rpc::ChangeNodes& request_;
  std::int64_t unix_us_;
  std::vector<NodeId> ids_;
  bool takes_data_away_ = false;
};

}  // namespace

bool is_node_address(std::string_view address) {
  constexpr std::size_t kBytesMax = 255;
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || address.size() > kBytesMax) return false;
  std::uint16_t port = 0;
  const char* const end = address.data() + address.size();
  const auto [stop, error] = std::from_chars(address.data() + colon + 1, end, port);
  if (error != std::errc() || stop != end) return false;
  const std::string_view host = address.substr(0, colon);
  if (!host.starts_with('[')) return host.find_first_not_of(kOfNames) == std::string_view::npos;
  return host.size() > 2 && host.ends_with(']') &&
         host.substr(1, host.size() - 2).find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

rpc::ChangeNodesReply change_nodes(ClusterRecord& record, const ClusterFacts& facts, const rpc::ChangeNodes& request,
                                   std::int64_t unix_us) {
  NodeChange change(record, facts, request, unix_us);
  rpc::ChangeNodesReply& reply = change.reply;
  reply.status = change.run();
  reply.state_version = facts.active.version();
  if (!reply.status) return std::move(reply);
  Result<ClusterView> after = change.view_after();
  if (!after) {
    reply.status = after.error();
    return std::move(reply);
  }
  change.check_result(*after);
  std::vector<std::string> notes = std::move(reply.plan.notes);
  const std::int64_t rate = std::min(value_or_default(record.config(), "maintenance.moves_bytes_per_s"),
                                     value_or_default(record.config(), "maintenance.bytes_per_s"));
  reply.plan = plan_movement(facts.active, *after, facts.nodes, static_cast<std::uint64_t>(rate));
  reply.plan.notes.insert(reply.plan.notes.begin(), notes.begin(), notes.end());
  if (request.force && !reply.refusals.empty()) {
    for (std::string& refusal : reply.refusals) reply.warnings.push_back("forced although " + std::move(refusal));
    reply.refusals.clear();
  }
  if (!reply.refusals.empty() || request.dry_run || request.action == NodeAction::Stop) return std::move(reply);
  std::string what;
  for (const std::string& name : reply.nodes) what += (what.empty() ? "" : ", ") + name;
  HistoryEntry entry;
  entry.version = facts.active.version();
  entry.term = record.term;
  entry.unix_us = unix_us;
  entry.what = fmt::format("{}: {}{}", what, verb(request.action),
                           request.action == NodeAction::Capacity ? " " + request.capacity : "");
  entry.why = request.reason;
  entry.who = request.who.empty() ? "an operator" : request.who;
  change.changed.add_history(std::move(entry));
  record = std::move(change.changed);
  return std::move(reply);
}

bool is_ordered(const ClusterRecord& record, const ClusterState& active, NodeId id, rpc::NodeAction action) {
  const auto wanted = record.wanted.find(id.to_string());
  if (wanted == record.wanted.end()) return false;
  if (action == NodeAction::Down) return wanted->second.state == NodeState::Down;
  if (action != NodeAction::Maintenance || wanted->second.state != NodeState::Maintenance) return false;
  // A storage node that is down has exceeded the limit of its maintenance, and others have got its replicas.
  return id.type == NodeType::Distributor || active.node(id).state != NodeState::Down;
}

std::string group_of(const DistributionConfig& distribution, std::uint16_t index) {
  DistributionGroup root = distribution.root();
  std::string name;
  with_group_of(root, index, [&](DistributionGroup& group) { name = group.name; });
  return name;
}

}  // namespace fjord::fleetcontroller
