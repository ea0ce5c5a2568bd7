// Drills that an operator begins: whole groups in maintenance, full nodes that return, controlled stops.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "drill.h"
#include "fjord/document/docblock.h"
#include "fjord/visitors/visitor_session.h"

namespace fjord::sim {
namespace {

constexpr Duration kRecovers = seconds(60);
constexpr Duration kServedAgain = seconds(10);

/// Visits all documents of this type. Calls `give` with the id of each. Errors: those of the visit.
Status visit_all(SimCluster& cluster, const std::string& type, std::uint64_t seed,
                 const std::function<void(std::string_view id)>& give) {
  AsyncClient& client = cluster.admin();
  rpc::SnapshotHolder snapshots;
  std::unique_ptr<visitors::VisitorSession> session;
  std::optional<Status> ended;
  client.executor().post([&] {
    visitors::VisitorSessionOptions options;
    options.selection = type;
    options.ids_only = true;
    options.bootstrap = client.options().addresses;
    options.deadline = seconds(30);
    options.call_timeout = seconds(1);
    visitors::VisitorSessionCallbacks callbacks;
    callbacks.on_docblock = [&](BucketId, const std::string& docblock) {
      DocBlockReader reader(docblock);
      while (const std::optional<EntryView> entry = reader.next()) give(entry->id);
    };
    callbacks.on_finished = [&](const Status& status) {
      ended = status;
      session.reset();
    };
    session = std::make_unique<visitors::VisitorSession>(std::move(options), std::move(callbacks), client.transport(),
                                                         snapshots, cluster.scheduler().clock(), Random(seed),
                                                         client.executor());
    session->start();
  });
  if (!cluster.run_until([&] { return ended.has_value(); }, seconds(40))) {
    return Status(StatusCode::Timeout, "the visit never ended");
  }
  return *ended;
}

}  // namespace

// --- Whole groups in maintenance -------------------------------------------------------------------------------------

/// Without one group each bucket has a replica elsewhere: everything goes on, also where nothing was written before.
std::string Drills::maintain_group() {
  const std::vector<Names> groups = cluster_.storage_groups();
  if (groups.size() < 2 || cluster_.redundancy() < 2) return {};
  const Names& group = groups[random_.below(groups.size())];
  if (!change_nodes(rpc::NodeAction::Maintenance, group)) {
    change_nodes(rpc::NodeAction::Up, group);
    return {};
  }
  had_effect_ = true;
  for (const std::string& name : group) cluster_.crash(name);
  run_for(between(0, 4000));
  const std::string when = fmt::format("after {} went into maintenance, a whole group", fmt::join(group, ", "));
  std::string problem = wait_until_served(when, kServedAgain, {group.begin(), group.end()});
  if (problem.empty()) problem = check_operations(when);
  if (!problem.empty()) return problem;
  for (const std::string& name : group) cluster_.restart(name);
  change_nodes(rpc::NodeAction::Up, group);
  return wait_until_well("after a group came back from maintenance", kRecovers);
}

std::string Drills::check_operations(const std::string& when) {
  constexpr unsigned kDocuments = 40;
  unsigned left = kDocuments;
  std::string refused;
  const std::string prefix = fmt::format("id:sim:item::drill{}-", ++written_);
  for (unsigned i = 0; i < kDocuments; ++i) {
    const std::string id = prefix + std::to_string(i);
    cluster_.admin().put_json(id, R"({"value": "drill"})", seconds(20), [&, id](const OperationOutcome& outcome) {
      if (!outcome.is_ok()) refused = id + ": " + outcome.status.to_string();
      --left;
    });
  }
  if (!cluster_.run_until([&] { return left == 0; }, seconds(30))) return "I16: a put never ended " + when;
  if (!refused.empty()) return fmt::format("I16: a put failed {}: {}", when, refused);
  std::set<std::string, std::less<>> seen;
  const Status visited = visit_all(cluster_, "item", random_.next(), [&](std::string_view id) {
    if (id.starts_with(prefix)) seen.emplace(id);
  });
  if (!visited) return fmt::format("I16: a visit failed {}: {}", when, visited.to_string());
  if (seen.size() == kDocuments) return {};
  return fmt::format("I8: a visit gave {} of {} documents {}", seen.size(), kDocuments, when);
}

// --- A node returns, and its disk is nearly full ---------------------------------------------------------------------

/// A replica that lacks hardly anything becomes a member again, however full the disk of its node is.
std::string Drills::return_full() {
  const Names names = shuffled_nodes();
  if (names.size() < 2 || losable(names.size()) == 0) return {};
  const std::string& name = names.front();
  if (!change_nodes(rpc::NodeAction::Maintenance, {name})) {
    change_nodes(rpc::NodeAction::Up, {name});
    return {};
  }
  had_effect_ = true;
  cluster_.crash(name);
  run_for(between(500, 5000));
  cluster_.fill_disk(name, static_cast<unsigned>(92 + random_.below(3)));  // Past storage.space_throttle_percent.
  cluster_.restart(name);
  change_nodes(rpc::NodeAction::Up, {name});
  std::string problem = wait_until_well(fmt::format("after {} came back with a nearly full disk", name), kRecovers);
  cluster_.free_disk(name);
  return problem;
}

// --- Controlled stops ------------------------------------------------------------------------------------------------

/// Nodes that are told to stop did not crash, however often that is.
std::string Drills::stop_in_order() {
  had_effect_ = true;
  const Names names = shuffled_nodes();
  for (const std::string& name : names) {
    if (std::string problem = stop_and_start(name, 3000); !problem.empty()) return problem;
  }
  if (random_.chance(0.5)) return {};
  static constexpr int kMoreThanCrashesMax = 12;
  for (int times = 0; times < kMoreThanCrashesMax; ++times) {
    if (std::string problem = stop_and_start(names.front(), 300); !problem.empty()) return problem;
  }
  return {};
}

std::string Drills::stop_and_start(const std::string& name, std::int64_t pause_max_ms) {
  cluster_.stop(name);
  cluster_.run_until([&] { return !cluster_.alive(name); }, seconds(5));
  run_for(between(50, pause_max_ms));
  cluster_.restart(name);
  return wait_until_well(fmt::format("after {} was told to stop and started again", name), seconds(20));
}

// --- The operator ----------------------------------------------------------------------------------------------------

bool Drills::change_nodes(rpc::NodeAction action, const Names& names) {
  rpc::ChangeNodes request;
  request.action = action;
  request.nodes = names;
  bool accepted = false;
  operator_.change_nodes(std::move(request), [&](const rpc::ChangeNodesReply& reply) {
    accepted = reply.status && reply.refusals.empty();
  });
  cluster_.run_until([&] { return operator_.is_idle(); }, kRecovers);
  FJORD_CHECK(operator_.is_idle());
  return accepted;
}

}  // namespace fjord::sim
