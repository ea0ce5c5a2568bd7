#include "administration.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "fjord/common/log.h"
#include "live_config.h"
#include "node_changes.h"
#include "schema_deployment.h"
#include "status_reports.h"

namespace fjord::fleetcontroller {
namespace {

// Timeout of a question about buckets; nodes answer from memory.
constexpr Duration kBucketsTimeout = seconds(10);

/// Returns the values that the configuration has after the request, without a check of the rules between settings.
Result<SettingValues> values_after(const ClusterRecord& record, const rpc::ChangeConfig& request) {
  SettingValues base = record.config();
  if (request.revert || request.revert_to != 0) {
    const auto& versions = record.configs;
    const auto found = std::find_if(versions.begin(), versions.end(),
                                    [&](const ConfigVersion& version) { return version.version == request.revert_to; });
    if (request.revert_to != 0 && found == versions.end()) {
      return Status(StatusCode::NotFound, fmt::format("configuration version {} is not kept", request.revert_to));
    }
    base = request.revert_to != 0 ? found->values : SettingValues{};
    if (request.revert && versions.size() >= 2) base = versions[versions.size() - 2].values;
  }
  return change_settings(base, request);
}

/// Changes the records of folders as the request says. Returns false if it says nothing about folders.
bool change_folders(IdentityRecord& identity, const rpc::ChangeNodes& request) {
  for (const std::string& name : request.nodes) {
    if (!name.starts_with("storage.")) continue;
    if (request.action == rpc::NodeAction::Replace) {
      identity.folders[name] = {};  // The operator says that another folder takes the place.
    } else if (request.action == rpc::NodeAction::AcceptLoss) {
      identity.folders[name].lost = identity.folders[name].lost_unix_us = 0;
    } else {
      return false;
    }
  }
  return !request.nodes.empty();
}

}  // namespace

Administration::Administration(const FleetControllerOptions& options, const Clock& clock, rpc::Transport& transport,
                               Executor& executor, Candidate& candidate, LeaderRecords& records,
                               const ControllerSettings& settings, NodePoller& poller, Publisher& publisher)
    : options_(options),
      clock_(clock),
      transport_(transport),
      executor_(executor),
      candidate_(candidate),
      records_(records),
      settings_(settings),
      poller_(poller),
      publisher_(publisher) {}

// ---------------------------------------------------------------------------------------------------------------------
// The queue

void Administration::enqueue(rpc::Request request, rpc::Responder respond, Run run) {
  changes_.push_back({std::move(request), std::move(respond), std::move(run)});
  run_next();
}

void Administration::run_next() {
  if (candidate_.phase() != Candidate::Phase::Leading || records_.is_writing()) return;
  if (changes_.empty()) return publisher_.update_state();
  Change change = std::move(changes_.front());
  changes_.pop_front();
  change.run(std::move(change.request), std::move(change.respond));
  if (!records_.is_writing()) executor_.post(candidate_.in_this_term([this] { run_next(); }));
}

void Administration::refuse_all() {
  std::deque<Change> waiting = std::exchange(changes_, {});
  for (Change& change : waiting) change.respond(rpc::error_reply(change.request, candidate_.why_not_leading()));
}

// ---------------------------------------------------------------------------------------------------------------------
// Schemas and configuration

void Administration::deploy_schemas(rpc::DeploySchemas request, rpc::Responder respond) {
  enqueue(std::move(request), std::move(respond), [this](const rpc::Request& change, rpc::Responder answer) {
    run_schemas(std::get<rpc::DeploySchemas>(change), std::move(answer));
  });
}

void Administration::run_schemas(const rpc::DeploySchemas& request, rpc::Responder respond) {
  rpc::DeploySchemasReply reply;
  Result<SchemaRecord> next = fleetcontroller::deploy_schemas(records_.schemas(), request, reply.warnings);
  if (!next) {
    reply.status = next.error();
    return respond(std::move(reply));
  }
  reply.schema_version = next->version;
  if (next->version == records_.schemas().version) return respond(std::move(reply));
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  records_.save_schemas(std::move(*next), [this, answer, reply = std::move(reply)](const Status& saved) {
    rpc::DeploySchemasReply said = reply;
    said.status = saved;
    (*answer)(std::move(said));
    if (saved) poller_.push();
  });
}

void Administration::change_config(rpc::ChangeConfig request, rpc::Responder respond) {
  enqueue(std::move(request), std::move(respond), [this](const rpc::Request& change, rpc::Responder answer) {
    run_config(std::get<rpc::ChangeConfig>(change), std::move(answer));
  });
}

void Administration::run_config(const rpc::ChangeConfig& request, rpc::Responder respond) {
  rpc::ChangeConfigReply reply;
  const auto refuse = [&](Status why) {
    reply.status = std::move(why);
    respond(std::move(reply));
  };
  reply.config_version = records_.cluster().config_version();
  if (request.if_version && request.version != reply.config_version) {
    return refuse({StatusCode::TestAndSetFailed,
                   fmt::format("the configuration has been changed meanwhile: it is of version {}, not {}",
                               reply.config_version, request.version)});
  }
  const SettingValues& before = records_.cluster().config();
  Result<SettingValues> values = values_after(records_.cluster(), request);
  if (!values) return refuse(values.error());
  if (Status allowed = check_rules(before, *values, setting_users(options_.name, records_, settings_, poller_));
      !allowed) {
    return refuse(std::move(allowed));
  }
  reply.changes = differences(before, *values);
  if (reply.changes.empty() || request.dry_run) return respond(std::move(reply));
  ClusterRecord record = records_.cluster();
  const std::int64_t now = clock_.wall_now().us;
  reply.config_version = record.config_version() + 1;
  record.add_config({reply.config_version, now, request.who, std::move(*values)});
  HistoryEntry entry;
  entry.version = records_.active().version();
  entry.term = records_.published_term();
  entry.unix_us = now;
  entry.what = fmt::format("configuration {}: {}", reply.config_version, fmt::join(reply.changes, ", "));
  entry.who = request.who.empty() ? "an operator" : request.who;
  log::info("controller", "{} ({})", entry.what, entry.who);
  record.add_history(std::move(entry));
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  records_.save(std::move(record), [this, answer, reply = std::move(reply)](const Status& saved) {
    rpc::ChangeConfigReply said = reply;
    said.status = saved;
    if (saved) poller_.push();
    (*answer)(std::move(said));
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Nodes

void Administration::change_nodes(rpc::ChangeNodes request, rpc::Responder respond) {
  if (request.action == rpc::NodeAction::Balance) {
    ask_sizes_first(std::move(request), std::move(respond));
  } else {
    ask_nodes_first(std::move(request), std::move(respond));
  }
}

Inquiry Administration::inquiry_for(const rpc::ChangeNodes& request) const {
  Inquiry inquiry;
  if (request.force || request.nodes.empty()) return inquiry;
  const NodeTable& table = records_.cluster().nodes;
  inquiry.state_version = records_.active().version();
  inquiry.poll_timeout = options_.poll_timeout;
  inquiry.check_timeout = kBucketsTimeout;
  const bool adds = request.action == rpc::NodeAction::Add;
  if (adds || request.action == rpc::NodeAction::Replace) {
    const bool is_storage = request.nodes[0].starts_with("storage");
    const auto& list = is_storage ? table.storage : table.distributors;
    const NodeId next{is_storage ? NodeType::Storage : NodeType::Distributor, static_cast<std::uint16_t>(list.size())};
    inquiry.address = request.address;
    inquiry.name = adds ? next.to_string() : request.nodes[0];
    const auto is_there = [&](const auto& all) {
      return std::find(all.begin(), all.end(), request.address) != all.end();
    };
    const bool is_wrong = !is_node_address(request.address) || request.nodes.size() != 1;
    // run_nodes() reports what is wrong with the request itself.
    if (is_wrong || is_there(table.storage) || is_there(table.distributors)) inquiry.address.clear();
    return inquiry;
  }
  const bool stops = request.action == rpc::NodeAction::Stop || request.action == rpc::NodeAction::Maintenance ||
                     request.action == rpc::NodeAction::Down;
  if (!stops) return inquiry;
  for (const std::string& name : request.nodes) {
    const Result<NodeId> id = NodeId::parse(name);
    if (!id || id->type != NodeType::Storage) continue;
    if (is_ordered(records_.cluster(), records_.active(), *id, request.action)) continue;
    inquiry.stopped.push_back(id->index);
  }
  for (const PolledNode& node : poller_.nodes()) {
    const bool is_asked =
        node.id().type == NodeType::Distributor && records_.active().node(node.id()).state == NodeState::Up;
    if (is_asked) inquiry.distributors.emplace_back(node.id().to_string(), node.address);
  }
  return inquiry;
}

void Administration::ask_nodes_first(rpc::ChangeNodes request, rpc::Responder respond) {
  const Inquiry inquiry = inquiry_for(request);
  auto waiting = std::make_shared<std::pair<rpc::ChangeNodes, rpc::Responder>>(std::move(request), std::move(respond));
  ask_nodes(inquiry, transport_, executor_,
            [this, term = candidate_.term_changes(), waiting, as = inquiry.name](std::vector<std::string> found) {
              if (term != candidate_.term_changes() || candidate_.phase() != Candidate::Phase::Leading) {
                return waiting->second(rpc::error_reply(waiting->first, candidate_.why_not_leading()));
              }
              enqueue_with({.objections = std::move(found), .asked_as = as}, std::move(waiting->first),
                           std::move(waiting->second));
            });
}

void Administration::ask_sizes_first(rpc::ChangeNodes request, rpc::Responder respond) {
  SizeInquiry inquiry;
  inquiry.bits = records_.active().bits();
  inquiry.state_version = records_.active().version();
  inquiry.timeout = kBucketsTimeout;
  for (const PolledNode& node : poller_.nodes()) {
    const NodeId id = node.id();
    if (id.type != NodeType::Storage || node.address.empty()) continue;
    if (is_available(records_.active().node(id).state)) inquiry.storage.emplace_back(id.to_string(), node.address);
  }
  auto waiting = std::make_shared<std::pair<rpc::ChangeNodes, rpc::Responder>>(std::move(request), std::move(respond));
  ask_bucket_sizes(inquiry, transport_, executor_,
                   [this, term = candidate_.term_changes(), version = inquiry.state_version,
                    waiting](Result<std::vector<std::uint64_t>> sizes) {
                     Status failed = Status::ok();
                     if (term != candidate_.term_changes() || candidate_.phase() != Candidate::Phase::Leading) {
                       failed = candidate_.why_not_leading();
                     } else if (!sizes) {
                       failed = sizes.error();
                     } else if (version != records_.active().version()) {
                       failed = {StatusCode::Unavailable, "the cluster state changed meanwhile"};
                     }
                     if (!failed) return waiting->second(rpc::error_reply(waiting->first, failed));
                     enqueue_with({.bucket_bytes = std::move(*sizes)}, std::move(waiting->first),
                                  std::move(waiting->second));
                   });
}

void Administration::enqueue_with(Answers answers, rpc::ChangeNodes request, rpc::Responder respond) {
  enqueue(std::move(request), std::move(respond),
          [this, answers = std::move(answers)](const rpc::Request& change, rpc::Responder answer) mutable {
            ClusterFacts known = publisher_.facts();
            known.bucket_bytes = std::move(answers.bucket_bytes);
            known.objections = std::move(answers.objections);
            known.asked_as = std::move(answers.asked_as);
            run_nodes(std::get<rpc::ChangeNodes>(change), known, std::move(answer));
          });
}

void Administration::run_nodes(const rpc::ChangeNodes& request, const ClusterFacts& known, rpc::Responder respond) {
  if (request.if_unchanged && request.unchanged_since_us != records_.cluster().changed_unix_us()) {
    rpc::ChangeNodesReply late;
    late.status = {StatusCode::TestAndSetFailed, "the cluster has changed since you looked: fjord state log says how"};
    return respond(std::move(late));
  }
  ClusterRecord record = records_.cluster();
  rpc::ChangeNodesReply reply = fleetcontroller::change_nodes(record, known, request, clock_.wall_now().us);
  if (!reply.status || record == records_.cluster()) return respond(std::move(reply));
  log::info("controller", "{} ({}): {}", record.history.back().what, record.history.back().who,
            record.history.back().why);
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  records_.save(std::move(record), [this, answer, request, reply = std::move(reply)](const Status& saved) {
    rpc::ChangeNodesReply said = reply;
    said.status = saved;
    if (saved) poller_.update_nodes();
    IdentityRecord identity = records_.identity();
    if (!saved || !change_folders(identity, request)) return (*answer)(std::move(said));
    records_.save_identity(std::move(identity), [answer, said = std::move(said)](const Status& written) mutable {
      said.status = written;
      (*answer)(std::move(said));
    });
  });
}

}  // namespace fjord::fleetcontroller
