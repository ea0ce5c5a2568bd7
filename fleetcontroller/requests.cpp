// The part of Controller that answers requests of operators.

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bucket_census.h"
#include "controller.h"
#include "fjord/common/log.h"
#include "fjord/document/document_type.h"
#include "fjord/document/garbage_rules.h"
#include "fjord/document/schema_change.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "live_config.h"
#include "node_changes.h"
#include "schema_name.h"

namespace fjord::fleetcontroller {
namespace {

/// Returns `schemas` with those of `request` added; one of the same name is replaced.
Result<std::vector<std::string>> merge_schemas(std::vector<std::string> schemas, const rpc::DeploySchemas& request) {
  for (const std::string& text : request.schemas) {
    FJORD_TRY_ASSIGN(const std::string name, schema_name(text));
    auto same = std::find_if(schemas.begin(), schemas.end(), [&](const std::string& old) {
      Result<std::string> old_name = schema_name(old);
      return old_name && *old_name == name;
    });
    if (same == schemas.end()) {
      schemas.push_back(text);
    } else {
      *same = text;
    }
  }
  return schemas;
}

std::vector<std::string> with_builtin(const std::vector<std::string>& schemas) {
  std::vector<std::string> all = rpc::builtin_schemas();
  all.insert(all.end(), schemas.begin(), schemas.end());
  return all;
}

/// Checks that documents stored under the schemas `before` are readable under `types`. Errors: those of
/// check_schema_change().
Status check_readable(const std::vector<std::string>& before, const DocumentTypeRepo& types,
                      const std::vector<std::string>& may_drop) {
  auto old = DocumentTypeRepo::build(with_builtin(before));
  if (!old) return old.error().with_context("the schemas so far");
  return check_schema_change(**old, types, {.may_drop = may_drop});
}

std::string wanted_text(const WantedState& wanted) {
  if (wanted.state == NodeState::Up) return {};
  std::string text(to_string(wanted.state));
  if (!wanted.reason.empty()) text += ": " + wanted.reason;
  if (!wanted.who.empty()) text += " (" + wanted.who + ")";
  return text;
}

// Timeout of a bucket census; nodes list their buckets from memory.
constexpr Duration kCensusTimeout = seconds(10);

}  // namespace

Status Controller::not_leader() const {
  if (phase_ == Phase::Loading) return {StatusCode::NotReady, options_.name + " leads, but not yet: " + trouble_};
  // Not NotReady, after which clients ask again until their time is over: only an operator can end this.
  if (phase_ == Phase::Stranded) return {StatusCode::Unavailable, options_.name + " has no records: " + trouble_};
  return {StatusCode::NotReady,
          options_.name + " is not the leader, " +
              (leadership_.leader.empty() || leadership_.mine ? "and nobody is now" : "it is " + leadership_.leader)};
}

void Controller::handle(rpc::Request request, rpc::Responder respond) {
  if (auto* lost = std::get_if<rpc::RecoverState>(&request); lost != nullptr && still_leads()) {
    return recover(*lost, std::move(respond));
  }
  if (!still_leads() || phase_ != Phase::Leading) return respond(rpc::error_reply(request, not_leader()));
  if (auto* get = std::get_if<rpc::GetClusterInfo>(&request)) {
    rpc::PollReply known;
    known.state_version = get->known_state_version;
    known.schema_version = get->known_schema_version;
    rpc::GetClusterInfoReply reply;
    reply.info = news_for(known);
    respond(std::move(reply));
  } else if (std::holds_alternative<rpc::GetStatus>(request)) {
    respond(status());
  } else if (std::holds_alternative<rpc::GetConfig>(request)) {
    respond(config());
  } else if (auto* asked = std::get_if<rpc::GetHistory>(&request)) {
    respond(history(*asked));
  } else if (std::holds_alternative<rpc::DeploySchemas>(request)) {
    enqueue(std::move(request), std::move(respond), [this](rpc::Request change, rpc::Responder answer) {
      deploy_schemas(std::get<rpc::DeploySchemas>(change), std::move(answer));
    });
  } else if (std::holds_alternative<rpc::ChangeNodes>(request)) {
    if (std::get<rpc::ChangeNodes>(request).action == rpc::NodeAction::Balance) {
      count_buckets(std::get<rpc::ChangeNodes>(std::move(request)), std::move(respond));
    } else {
      ask_and_enqueue(std::get<rpc::ChangeNodes>(std::move(request)), std::move(respond));
    }
  } else if (std::holds_alternative<rpc::ChangeConfig>(request)) {
    enqueue(std::move(request), std::move(respond), [this](rpc::Request change, rpc::Responder answer) {
      change_config(std::get<rpc::ChangeConfig>(std::move(change)), std::move(answer));
    });
  }
}

void Controller::enqueue(rpc::Request request, rpc::Responder respond,
                         std::function<void(rpc::Request, rpc::Responder)> change) {
  changes_.push_back({std::move(request), std::move(respond), std::move(change)});
  after_save();
}

ClusterFacts Controller::facts() const {
  ClusterFacts facts;
  Result<DistributionConfig> distribution = DistributionConfig::parse(record_.active.distribution);
  if (!distribution) distribution = this->distribution();
  if (distribution) facts.active = ClusterView::make(active_, std::move(*distribution));
  facts.is_changing = pending_.has_value();
  const GeneratorOptions limits = generator_options();
  facts.storage_up_ratio_min = limits.storage_up_ratio_min;
  facts.distributors_up_ratio_min = limits.distributors_up_ratio_min;
  facts.groups_out_max = static_cast<std::size_t>(value_or_default(record_.config(), "controller.groups_out_max"));
  for (const Node& node : nodes_) {
    if (node.address.empty()) continue;
    const NodeReport& report = node.monitor.report();
    NodeFacts one;
    one.id = node.id();
    one.state = active_.node(node.id()).state;
    one.wanted = report.wanted;
    one.is_fresh = report.answered && !node.last_failed && clock_.now() - report.last_answer <= down_after();
    one.state_version = node.last.state_version;
    one.buckets = node.last.buckets;
    one.bytes = node.last.bytes;
    one.buckets_out_of_sync = node.last.buckets_out_of_sync;
    one.buckets_unavailable = node.last.buckets_unavailable;
    one.buckets_damaged = node.last.buckets_damaged;
    facts.nodes.push_back(std::move(one));
  }
  return facts;
}

Inquiry Controller::inquiry_for(const rpc::ChangeNodes& request) const {
  Inquiry inquiry;
  if (request.force || request.nodes.empty()) return inquiry;
  inquiry.state_version = active_.version();
  inquiry.poll_timeout = options_.poll_timeout;
  inquiry.check_timeout = kCensusTimeout;
  const bool adds = request.action == rpc::NodeAction::Add;
  if (adds || request.action == rpc::NodeAction::Replace) {
    const bool is_storage = request.nodes[0].starts_with("storage");
    const auto& list = is_storage ? record_.nodes.storage : record_.nodes.distributors;
    const NodeId next{is_storage ? NodeType::Storage : NodeType::Distributor, static_cast<std::uint16_t>(list.size())};
    inquiry.address = request.address;
    inquiry.name = adds ? next.to_string() : request.nodes[0];
    const auto is_there = [&](const auto& all) {
      return std::find(all.begin(), all.end(), request.address) != all.end();
    };
    const bool is_wrong = request.address.find(':') == std::string::npos || request.nodes.size() != 1;
    // change_nodes() reports what is wrong with the request itself.
    if (is_wrong || is_there(record_.nodes.storage) || is_there(record_.nodes.distributors)) inquiry.address.clear();
    return inquiry;
  }
  const bool stops = request.action == rpc::NodeAction::Stop || request.action == rpc::NodeAction::Maintenance ||
                     request.action == rpc::NodeAction::Down;
  if (!stops) return inquiry;
  for (const std::string& name : request.nodes) {
    const Result<NodeId> id = NodeId::parse(name);
    if (id && id->type == NodeType::Storage) inquiry.stopped.push_back(id->index);
  }
  for (const Node& node : nodes_) {
    const bool is_asked = node.id().type == NodeType::Distributor && active_.node(node.id()).state == NodeState::Up;
    if (is_asked) inquiry.distributors.emplace_back(node.id().to_string(), node.address);
  }
  return inquiry;
}

void Controller::ask_and_enqueue(rpc::ChangeNodes request, rpc::Responder respond) {
  const Inquiry inquiry = inquiry_for(request);
  auto waiting = std::make_shared<std::pair<rpc::ChangeNodes, rpc::Responder>>(std::move(request), std::move(respond));
  ask_nodes(inquiry, transport_, *executor_,
            [this, reign = reign_, waiting, as = inquiry.name](std::vector<std::string> found) {
              if (reign != reign_ || phase_ != Phase::Leading) {
                rpc::ChangeNodesReply late;
                late.status = not_leader();
                return waiting->second(std::move(late));
              }
              enqueue_change(std::move(waiting->first), std::move(waiting->second),
                             {.found = std::move(found), .as = as});
            });
}

void Controller::enqueue_change(rpc::ChangeNodes request, rpc::Responder respond, Asked asked) {
  enqueue(std::move(request), std::move(respond),
          [this, asked = std::move(asked)](rpc::Request change, rpc::Responder answer) mutable {
            ClusterFacts known = facts();
            known.bucket_bytes = std::move(asked.bucket_bytes);
            known.objections = std::move(asked.found);
            known.asked_as = std::move(asked.as);
            change_nodes(std::get<rpc::ChangeNodes>(std::move(change)), known, std::move(answer));
          });
}

void Controller::count_buckets(rpc::ChangeNodes request, rpc::Responder respond) {
  struct Count {
    BucketCensus census;
    rpc::ChangeNodes request;
    rpc::Responder respond;
    std::size_t left = 1;
    Status failure = Status::ok();
  };
  if (active_.bits() > BucketCensus::kBitsMax) {
    rpc::ChangeNodesReply refused;
    refused.status = {StatusCode::InvalidArgument, fmt::format("with more than {} distribution bits single buckets are "
                                                               "too small to matter",
                                                               BucketCensus::kBitsMax)};
    return respond(std::move(refused));
  }
  auto count = std::make_shared<Count>(Count{BucketCensus(active_.bits()), std::move(request), std::move(respond)});
  const auto done = [this, reign = reign_, version = active_.version(), count] {
    if (--count->left > 0) return;
    rpc::ChangeNodesReply failed;
    if (reign != reign_ || phase_ != Phase::Leading) {
      failed.status = not_leader();
    } else if (!count->failure) {
      failed.status = count->failure;
    } else if (version != active_.version()) {
      failed.status = {StatusCode::Unavailable, "the cluster state changed meanwhile"};
    } else {
      return enqueue_change(std::move(count->request), std::move(count->respond),
                            {.bucket_bytes = count->census.bytes()});
    }
    count->respond(std::move(failed));
  };
  for (const Node& node : nodes_) {
    const NodeId id = node.id();
    if (id.type != NodeType::Storage || node.address.empty() || !is_available(active_.node(id).state)) continue;
    ++count->left;
    rpc::GetBucketInfo question;
    question.state_version = active_.version();
    question.census = true;
    rpc::call(transport_, node.address, std::move(question), kCensusTimeout, *executor_,
              [done, count, id](Result<rpc::GetBucketInfoReply> reply) {
                const Status status = reply ? reply->status : reply.error();
                if (status) {
                  count->census.add(reply->reports);
                } else {
                  count->failure = Status(StatusCode::Unavailable,
                                          id.to_string() +
                                              " does not tell how large its "
                                              "buckets are: " +
                                              status.to_string(),
                                          {.node = id.to_string()});
                }
                done();
              });
  }
  done();
}

void Controller::change_nodes(rpc::ChangeNodes request, const ClusterFacts& known, rpc::Responder respond) {
  if (request.if_unchanged && request.unchanged_since_us != record_.changed_unix_us()) {
    rpc::ChangeNodesReply late;
    late.status = {StatusCode::TestAndSetFailed, "the cluster has changed since you looked: fjord state log says how"};
    return respond(std::move(late));
  }
  ClusterRecord record = record_;
  rpc::ChangeNodesReply reply = fleetcontroller::change_nodes(record, known, request, clock_.wall_now().us);
  if (!reply.status || record == record_) return respond(std::move(reply));
  log::info("controller", "{} ({}): {}", record.history.back().what, record.history.back().who,
            record.history.back().why);
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  save(std::move(record), [this, answer, reply = std::move(reply)](const Status& saved) {
    rpc::ChangeNodesReply said = reply;
    said.status = saved;
    if (saved) update_nodes();
    (*answer)(std::move(said));
  });
}

void Controller::change_config(rpc::ChangeConfig request, rpc::Responder respond) {
  rpc::ChangeConfigReply reply;
  reply.config_version = record_.config_version();
  if (request.if_version && request.version != reply.config_version) {
    reply.status = {StatusCode::TestAndSetFailed,
                    fmt::format("the configuration has been changed meanwhile: it is of version {}, not {}",
                                reply.config_version, request.version)};
    return respond(std::move(reply));
  }
  SettingValues base = record_.config();
  if (request.revert || request.revert_to != 0) {
    const auto& versions = record_.configs;
    const auto found = std::find_if(versions.begin(), versions.end(),
                                    [&](const ConfigVersion& version) { return version.version == request.revert_to; });
    if (request.revert_to != 0 && found == versions.end()) {
      reply.status = {StatusCode::NotFound, fmt::format("configuration version {} is not kept", request.revert_to)};
      return respond(std::move(reply));
    }
    base = request.revert_to != 0 ? found->values : SettingValues{};
    if (request.revert && versions.size() >= 2) base = versions[versions.size() - 2].values;
  }
  Result<SettingValues> values = change_settings(base, request);
  if (!values) {
    reply.status = values.error();
    return respond(std::move(reply));
  }
  if (Status allowed = check_rules(record_.config(), *values, setting_users()); !allowed) {
    reply.status = std::move(allowed);
    return respond(std::move(reply));
  }
  reply.changes = differences(record_.config(), *values);
  if (reply.changes.empty() || request.dry_run) return respond(std::move(reply));
  ClusterRecord record = record_;
  const std::int64_t now = clock_.wall_now().us;
  reply.config_version = record.config_version() + 1;
  record.add_config({reply.config_version, now, request.who, std::move(*values)});
  HistoryEntry entry;
  entry.version = active_.version();
  entry.term = published_term();
  entry.unix_us = now;
  entry.what = fmt::format("configuration {}: {}", reply.config_version, fmt::join(reply.changes, ", "));
  entry.who = request.who.empty() ? "an operator" : request.who;
  log::info("controller", "{} ({})", entry.what, entry.who);
  record.add_history(std::move(entry));
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  save(std::move(record), [this, answer, reply = std::move(reply)](const Status& saved) {
    rpc::ChangeConfigReply said = reply;
    said.status = saved;
    if (saved) push();
    (*answer)(std::move(said));
  });
}

void Controller::deploy_schemas(const rpc::DeploySchemas& request, rpc::Responder respond) {
  rpc::DeploySchemasReply reply;
  const auto refuse = [&](Status why) {
    reply.status = std::move(why);
    respond(std::move(reply));
  };
  Result<std::vector<std::string>> merged = merge_schemas(schemas_.schemas, request);
  if (!merged) return refuse(merged.error());
  const std::vector<std::string> all = with_builtin(*merged);
  auto built = DocumentTypeRepo::build(all, &reply.warnings);
  if (!built) return refuse(Status(built.error().code(), with_schema_names(built.error().message(), all)));
  if (Status rules = GarbageRules::check(**built); !rules) return refuse(rules);
  if (Status readable = check_readable(schemas_.schemas, **built, request.may_drop); !readable) return refuse(readable);
  for (std::string& warning : reply.warnings) warning = with_schema_names(std::move(warning), all);
  reply.schema_version = schemas_.version;
  if (*merged == schemas_.schemas) return respond(std::move(reply));
  SchemaRecord next{schemas_.version + 1, std::move(*merged)};
  reply.schema_version = next.version;
  std::string bytes = encode(next);
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  saving_ = true;
  store_.write(term_, kSchemaRecord, schema_revision_, std::move(bytes),
               [this, reign = reign_, answer, next = std::move(next),
                reply = std::move(reply)](Result<std::uint64_t> written) mutable {
                 const bool leads = reign == reign_;
                 if (leads) saving_ = false;
                 if (!leads || !written) {
                   reply.status = written ? Status(StatusCode::Timeout, "the leadership was lost") : written.error();
                   (*answer)(std::move(reply));
                   if (leads) load_again(reply.status);
                   return;
                 }
                 schema_revision_ = *written;
                 schemas_ = std::move(next);
                 log::info("controller", "schemas version {}", schemas_.version);
                 (*answer)(std::move(reply));
                 push();
                 after_save();
               });
}

rpc::GetConfigReply Controller::config() const {
  rpc::GetConfigReply reply;
  reply.config_version = record_.config_version();
  const std::vector<SettingUser> users = setting_users();
  for (const SettingDeclaration& setting : settings()) {
    if (!setting.is_live) continue;
    rpc::Setting said;
    said.name = setting.name;
    static constexpr const char* kTypes[] = {"integer", "bytes", "duration", "ratio", "bool"};
    said.type = kTypes[static_cast<std::size_t>(setting.type)];
    if (setting.has_default()) said.default_value = setting_text(setting, setting.default_value);
    said.min = setting_text(setting, setting.min);
    said.max = setting_text(setting, setting.max);
    if (record_.config().contains(said.name))
      said.value = setting_text(setting, value_or(record_.config(), setting.name, 0));
    said.used_by = setting.used_by;
    said.meaning = setting.meaning;
    add_value_in_force(said, setting, record_.config(), users);
    if (setting.name == "controller.lease") {
      said.in_force = setting_text(setting, std::chrono::duration_cast<milliseconds>(lease()).count());
    }
    const bool bits_wait = setting.name == "cluster.distribution_bits" && active_.version() != 0 &&
                           said.in_force != std::to_string(active_.bits());
    if (bits_wait) {
      said.elsewhere.push_back(
          fmt::format("cluster state {}: {} (a bucket has fewer bits, or the change is on its way)", active_.version(),
                      active_.bits()));
    }
    reply.settings.push_back(std::move(said));
  }
  for (const ConfigVersion& version : record_.configs) {
    reply.versions.push_back({version.version, version.unix_us, version.who, {}});
    for (const auto& [name, value] : version.values) {
      const SettingDeclaration* setting = find_live_setting(name);
      reply.versions.back().values.push_back(
          name + "=" + (setting == nullptr ? value : setting_text(*setting, value_or(version.values, name, 0))));
    }
  }
  for (const Node& node : nodes_) {
    if (node.address.empty()) continue;
    if (node.last.config_version < reply.config_version) reply.waiting.push_back(node.id().to_string());
    for (const std::string& error : node.last.config_errors)
      reply.errors.push_back(node.id().to_string() + ": " + error);
  }
  for (std::string& broken : broken_rules(record_.config(), users)) reply.errors.push_back(std::move(broken));
  return reply;
}

std::vector<SettingUser> Controller::setting_users() const {
  std::vector<SettingUser> users = {{.name = options_.name, .base = own_settings()}};
  for (const Node& node : nodes_) {
    if (node.address.empty()) continue;
    users.push_back({.name = node.id().to_string(),
                     .base = node.settings,
                     .has_live = node.last.config_version >= record_.config_version(),
                     .refused = node.last.config_errors});
  }
  return users;
}

/// Returns the settings of this controller: the values of the options, and the declared defaults of its other settings.
BaseSettings Controller::own_settings() const {
  BaseSettings base;
  for (const SettingDeclaration& setting : settings()) {
    const bool is_own = setting.is_live && setting.used_by == settings_table::kController && setting.has_default();
    if (is_own) base[std::string(setting.name)] = {setting.default_value, kFromProgram};
  }
  const auto source = [&](const char* name) {
    return options_.settings_from_file.contains(name) ? kFromFile : kFromProgram;
  };
  const auto add_duration = [&](const char* name, Duration value) {
    base[name] = {std::chrono::duration_cast<milliseconds>(value).count(), source(name)};
  };
  add_duration(kPollInterval, options_.poll_interval);
  add_duration("controller.down_after", options_.down_after);
  add_duration("controller.refused_after", options_.refused_after);
  add_duration("controller.pending_max", options_.pending_max);
  add_duration("controller.transition_time", options_.transition_time);
  add_duration("controller.crash_period", options_.crash_period);
  add_duration("controller.stable_period", options_.stable_period);
  base["controller.crashes_max"] = {options_.crashes_max, kFromProgram};
  add_duration("controller.lease", std::min<Duration>(options_.lease, down_after() * 5 / 6));
  base["controller.lease"].yields = true;
  base["cluster.distribution_bits"] = {static_cast<std::int64_t>(record_.nodes.distribution_bits), kFromRecord};
  if (const auto distribution = DistributionConfig::parse(record_.nodes.distribution)) {
    base["cluster.redundancy"] = {distribution->redundancy(), kFromRecord};
  }
  return base;
}

rpc::GetHistoryReply Controller::history(const rpc::GetHistory& request) const {
  rpc::GetHistoryReply reply;
  reply.term = published_term();
  reply.leader = options_.name;
  reply.info = news_for({});
  reply.info.schemas.clear();
  reply.waits_for = waits_for();
  const std::size_t all = record_.history.size();
  const std::size_t wanted = request.max == 0 ? all : std::min<std::size_t>(request.max, all);
  for (std::size_t i = all - wanted; i < all; ++i) {
    const HistoryEntry& entry = record_.history[i];
    reply.changes.push_back(
        {entry.version, entry.term, entry.unix_us, entry.active_unix_us, entry.what, entry.why, entry.who});
  }
  return reply;
}

/// Sets the time that a node has been in maintenance and the time until a limit ends it.
void Controller::add_maintenance(rpc::NodeStatus& status, const NodeReport& report) const {
  const NodeState state = active_.node(report.id).state;
  const std::int64_t limit = maintenance_max().count();
  if (report.wanted.state == NodeState::Maintenance) {
    const std::int64_t since = std::max<std::int64_t>(clock_.wall_now().us - report.wanted.since_unix_us, 0);
    if (state == NodeState::Maintenance) {
      status.maintenance_us = since;
      if (limit > 0) status.maintenance_left_us = std::max<std::int64_t>(limit - since, 0);
    } else if (state == NodeState::Down && limit > 0 && since > limit) {
      status.reason = fmt::format("in maintenance for {}, longer than controller.maintenance_max={}",
                                  duration_text(Duration(since)), duration_text(Duration(limit)));
    }
  } else if (state == NodeState::Maintenance && report.answered) {
    const bool is_silent = report.reported.state != NodeState::Stopping;
    const Duration away = clock_.now() - (is_silent ? report.last_answer : report.stopping_since);
    const Duration limit_now = setting("controller.transition_time", options_.transition_time);
    const Duration until = limit_now + (is_silent && !report.is_gone ? down_after() : Duration(0));
    status.maintenance_us = away.count();
    status.maintenance_left_us = std::max<std::int64_t>((until - away).count(), 0);
  }
}

rpc::GetStatusReply Controller::status() const {
  rpc::GetStatusReply reply;
  reply.info = news_for({});
  reply.changed_unix_us = record_.changed_unix_us();
  const Result<DistributionConfig> groups = distribution();
  for (const Node& node : nodes_) {
    if (node.address.empty()) continue;
    const NodeReport& report = node.monitor.report();
    rpc::NodeStatus status;
    status.node = report.id.to_string();
    status.address = node.address;
    status.state = std::string(to_string(active_.node(report.id).state));
    status.last = node.last;
    status.wanted = wanted_text(report.wanted);
    if (groups && report.id.type == NodeType::Storage) {
      status.group = group_of(*groups, report.id.index);
      for (const DistributionGroup::Node& weighed : groups->flat_nodes()) {
        if (weighed.index == report.id.index) status.capacity = fmt::format("{:g}", weighed.capacity);
      }
    }
    if (!report.mistaken.empty()) {
      status.reason = report.mistaken;
    } else if (report.answered) {
      Duration silent = clock_.now() - report.last_answer;
      status.answered_us_ago = silent.count();
      if (report.is_gone) {
        status.reason = "refuses connections: its process has ended";
      } else if (silent > down_after()) {
        status.reason = "no answer for " + std::to_string(silent.count() / 1'000'000) + " s";
      }
      if (report.crashes > monitor_options().crashes_max) {
        status.reason = "crashed " + std::to_string(report.crashes) + " times; it is down until it is stable";
      }
    } else {
      status.reason = "never answered";
    }
    if (report.id.type == NodeType::Storage) {
      status.slow = slow_.reason(report.id.index);
      add_maintenance(status, report);
    }
    reply.nodes.push_back(std::move(status));
  }
  return reply;
}

}  // namespace fjord::fleetcontroller
