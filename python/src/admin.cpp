// Administration: nodes, buckets, settings, schemas.
#include "fjord/library/admin.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "admin_calls.h"
#include "bindings.h"
#include "fjord/library/node_action.h"
#include "options.h"
#include "record.h"
#include "summary.h"

namespace fjord::python {

namespace {

nb::dict to_dict(const NodeInfo& node) {
  return Record()
      .add("name", node.name)
      .add("address", node.address)
      .add("state", node.state)
      .add("reason", node.reason)
      .add("wanted", node.wanted)
      .add("group", node.group)
      .add("capacity", node.capacity)
      .add("slow", node.slow)
      .add("space", node.space)
      .add("buckets", node.buckets)
      .add("documents", node.documents)
      .add("bytes", node.bytes)
      .add("state_version", node.state_version)
      .add("config_version", node.config_version)
      .add("answered_ago", node.answered_ago)
      .take();
}

nb::dict to_dict(const ClusterStatus& status) {
  return Record()
      .add("health", to_string(status.health))
      .add("reasons", status.reasons)
      .add("notes", status.notes)
      .add("state_version", status.state_version)
      .add("schema_version", status.schema_version)
      .add("config_version", status.config_version)
      .add("state", status.state)
      .add("distribution", status.distribution)
      .add("buckets", status.buckets)
      .add("buckets_in_sync", status.buckets_in_sync)
      .add("buckets_out_of_sync", status.buckets_out_of_sync)
      .add("buckets_unavailable", status.buckets_unavailable)
      .add("buckets_damaged", status.buckets_damaged)
      .add("buckets_under_replicated", status.buckets_under_replicated)
      .add("nodes_without_space", status.nodes_without_space)
      .add("document_replicas", status.document_replicas)
      .add("bytes", status.bytes)
      .add("nodes", records_of(status.nodes, [](const NodeInfo& node) { return to_dict(node); }))
      .take();
}

nb::dict to_dict(const ClusterStateInfo& state) {
  return Record()
      .add("state", state.state)
      .add("distribution", state.distribution)
      .add("pending_state", state.pending_state)
      .add("waits_for", state.waits_for)
      .add("leader", state.leader)
      .add("term", state.term)
      .add("schema_version", state.schema_version)
      .add("config_version", state.config_version)
      .take();
}

nb::dict to_dict(const HistoryEntry& entry) {
  return Record()
      .add("version", entry.version)
      .add("unix_us", entry.unix_us)
      .add("active_unix_us", entry.active_unix_us)
      .add("what", entry.what)
      .add("why", entry.why)
      .add("who", entry.who)
      .take();
}

nb::dict to_dict(const NodePlan& plan) {
  return Record()
      .add("done", plan.done)
      .add("refusals", plan.refusals)
      .add("warnings", plan.warnings)
      .add("nodes", plan.nodes)
      .add("buckets_total", plan.buckets_total)
      .add("buckets_moved", plan.buckets_moved)
      .add("bytes_moved", plan.bytes_moved)
      .add("duration_seconds", plan.duration_seconds)
      .add("notes", plan.notes)
      .take();
}

nb::dict to_dict(const ReplicaInfo& replica) {
  return Record()
      .add("node", replica.node)
      .add("state", replica.state)
      .add("is_member", replica.is_member)
      .add("is_damaged", replica.is_damaged)
      .add("error", replica.status)
      .add("documents", replica.documents)
      .add("entries", replica.entries)
      .add("bytes", replica.bytes)
      .add("checksum", replica.checksum)
      .add("newest_us", replica.newest_us)
      .add("document_version", replica.document_version_us)
      .take();
}

nb::dict to_dict(const BucketReplicas& bucket) {
  return Record()
      .add("bucket", bucket.bucket)
      .add("bits", bucket.bits)
      .add("distributor", bucket.distributor)
      .add("state", to_string(bucket.state))
      .add("reason", bucket.reason)
      .add("replica_set", bucket.replica_set)
      .add("replicas", records_of(bucket.replicas, [](const ReplicaInfo& replica) { return to_dict(replica); }))
      .take();
}

nb::dict to_dict(const UnhealthyBucket& bucket) {
  return Record()
      .add("bucket", bucket.bucket)
      .add("state", to_string(bucket.state))
      .add("reason", bucket.reason)
      .add("members", bucket.members)
      .add("damaged", bucket.damaged)
      .add("catching_up", bucket.catching_up)
      .take();
}

nb::dict to_dict(const SettingInfo& setting) {
  return Record()
      .add("name", setting.name)
      .add("type", setting.type)
      .add("default", setting.default_value)
      .add("min", setting.min)
      .add("max", setting.max)
      .add("value", setting.value)
      .add("source", setting.source)
      .add("live_value", setting.live_value)
      .add("elsewhere", setting.elsewhere)
      .add("meaning", setting.meaning)
      .take();
}

nb::dict to_dict(const ConfigurationVersion& version) {
  return Record()
      .add("version", version.version)
      .add("unix_us", version.unix_us)
      .add("who", version.who)
      .add("values", version.values)
      .take();
}

nb::dict to_dict(const Configuration& configuration) {
  return Record()
      .add("version", configuration.version)
      .add("settings", records_of(configuration.settings, [](const SettingInfo& setting) { return to_dict(setting); }))
      .add("history", records_of(configuration.history, [](const ConfigurationVersion& one) { return to_dict(one); }))
      .add("waiting", configuration.waiting)
      .add("errors", configuration.errors)
      .take();
}

nb::dict to_dict(const ConfigurationChange& change) {
  return Record().add("version", change.version).add("changes", change.changes).take();
}

nb::dict to_dict(const RecoveredState& state) {
  return Record()
      .add("done", state.done)
      .add("refusals", state.refusals)
      .add("warnings", state.warnings)
      .add("found", state.found)
      .add("state", state.state)
      .add("distribution", state.distribution)
      .add("state_version", state.state_version)
      .add("next_version", state.next_version)
      .add("term", state.term)
      .add("schema_version", state.schema_version)
      .add("schemas", state.schemas)
      .add("config_version", state.config_version)
      .add("settings", state.settings)
      .take();
}

nb::dict to_dict(const PluginFunction& function) {
  return Record()
      .add("name", function.name)
      .add("kind", function.is_application ? "application" : "visitor")
      .add("version", function.version)
      .add("help", function.help)
      .add("nodes", function.nodes)
      .take();
}

nb::dict to_dict(const PluginProblem& problem) {
  return Record().add("node", problem.node).add("library", problem.library).add("problem", problem.problem).take();
}

nb::dict to_dict(const Plugins& plugins) {
  return Record()
      .add("functions", records_of(plugins.functions, [](const PluginFunction& one) { return to_dict(one); }))
      .add("problems", records_of(plugins.problems, [](const PluginProblem& one) { return to_dict(one); }))
      .add("storage_nodes", plugins.storage_nodes)
      .add("distributors", plugins.distributors)
      .take();
}

nb::list to_list(const UnhealthyBuckets& found) {
  return records_of(found.buckets, [](const UnhealthyBucket& bucket) { return to_dict(bucket); });
}

/// Returns the record of the result of a call of Admin; raises its error.
template <typename F>
nb::dict record_of(ClientHandle& handle, F f) {
  return to_dict(value_of(call_admin(handle, f)));
}
template <typename F>
nb::list list_of(ClientHandle& handle, F f) {
  return records_of(value_of(call_admin(handle, f)), [](const auto& one) { return to_dict(one); });
}

/// Makes the change, and waits for up to `wait` seconds until nothing is left to move.
nb::dict change_nodes(ClientHandle& handle, const NodeChange& change, std::optional<double> wait,
                      nb::handle on_progress) {
  const NodePlan plan = value_of(call_admin(handle, [change](Admin admin) { return admin.change_nodes(change); }));
  if (!plan.done || !wait) return to_dict(plan);
  const std::shared_ptr<Client> client = handle.use_connected();
  const auto mailbox = std::make_shared<Mailbox>();
  std::function<void(const NodeChangeProgress&)> report;
  if (!on_progress.is_none()) {
    report = [mailbox, on_progress](const NodeChangeProgress& progress) {
      mailbox->post([on_progress, progress] {
        on_progress(fraction_or_none(progress.fraction_done), progress.buckets_left, Record::convert(progress.left));
      });
    };
  }
  std::stop_source stop;
  check(
      handle.run([client, change, plan, report, timeout = to_duration(wait, "wait"),
                  token = stop.get_token()] { return client->admin().wait_for(change, plan, timeout, report, token); },
                 {&stop, mailbox}));
  return to_dict(plan);
}

void bind_options(nb::module_& module) {
  nb::class_<RecoverOptions>(module, "RecoverOptions")
      .def(nb::init<>())
      .def_rw("dry_run", &RecoverOptions::dry_run)
      .def_rw("force", &RecoverOptions::force)
      .def_rw("controller", &RecoverOptions::controller);
  nb::class_<NodeChange>(module, "NodeChange")
      .def(nb::init<>())
      .def_rw("nodes", &NodeChange::nodes)
      .def_rw("address", &NodeChange::address)
      .def_rw("group", &NodeChange::group)
      .def_rw("capacity", &NodeChange::capacity)
      .def_rw("balance_to", &NodeChange::balance_to)
      .def_rw("reason", &NodeChange::reason)
      .def_rw("dry_run", &NodeChange::dry_run)
      .def_rw("force", &NodeChange::force)
      .def_prop_rw("action", &get_nothing<NodeChange>, [](NodeChange& self, std::string_view name) {
        const Result<NodeAction> action = node_action_of(name);
        if (!action) raise(action.error().with_context("action"));
        self.action = *action;
      });
  nb::class_<SetOptions>(module, "SetOptions")
      .def(nb::init<>())
      .def_rw("dry_run", &SetOptions::dry_run)
      .def_rw("if_version", &SetOptions::if_version)
      .def_rw("reason", &SetOptions::reason);
}

void bind_cluster(nb::module_& module) {
  module.def("admin_status",
             [](ClientHandle& handle) { return record_of(handle, [](Admin admin) { return admin.status(); }); });
  module.def("admin_state",
             [](ClientHandle& handle) { return record_of(handle, [](Admin admin) { return admin.state(); }); });
  module.def("admin_history", [](ClientHandle& handle, std::uint32_t max) {
    return list_of(handle, [max](Admin admin) { return admin.history(max); });
  });
  module.def("admin_change_nodes", &change_nodes, nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none());
  module.def("admin_recover_state", [](ClientHandle& handle, const RecoverOptions& options) {
    return record_of(handle, [options](Admin admin) { return admin.recover_state(options); });
  });
  module.def("admin_plugins",
             [](ClientHandle& handle) { return record_of(handle, [](Admin admin) { return admin.plugins(); }); });
}

void bind_buckets(nb::module_& module) {
  module.def("admin_bucket_of", [](ClientHandle& handle, const std::string& id) {
    return list_of(handle, [id](Admin admin) { return admin.bucket_of(id); });
  });
  module.def("admin_bucket", [](ClientHandle& handle, const std::string& name) {
    return list_of(handle, [name](Admin admin) { return admin.bucket(name); });
  });
  module.def("admin_unhealthy_buckets", [](ClientHandle& handle, std::size_t max) {
    return to_list(value_of(call_admin(handle, [max](Admin admin) { return admin.unhealthy_buckets(max); })));
  });
  module.def("admin_lost_buckets", [](ClientHandle& handle) {
    return to_list(value_of(call_admin(handle, [](Admin admin) { return admin.lost_buckets(); })));
  });
  module.def("admin_accept_loss", [](ClientHandle& handle, const std::vector<std::string>& buckets, double timeout) {
    check(call_admin(
        handle, [buckets, limit = to_duration(timeout)](Admin admin) { return admin.accept_loss(buckets, limit); }));
  });
}

void bind_settings(nb::module_& module) {
  module.def("admin_configuration",
             [](ClientHandle& handle) { return record_of(handle, [](Admin admin) { return admin.configuration(); }); });
  module.def("admin_set",
             [](ClientHandle& handle, const std::map<std::string, std::string>& values, const SetOptions& options) {
               return record_of(handle, [values, options](Admin admin) { return admin.set(values, options); });
             });
  module.def("admin_revert", [](ClientHandle& handle, std::uint64_t to_version, const SetOptions& options) {
    return record_of(handle, [to_version, options](Admin admin) { return admin.revert(to_version, options); });
  });
  module.def("admin_deploy_schemas", [](ClientHandle& handle, const std::vector<std::string>& schemas,
                                        const std::vector<std::string>& may_drop) {
    const DeployedSchemas deployed = value_of(
        call_admin(handle, [schemas, may_drop](Admin admin) { return admin.deploy_schemas(schemas, may_drop); }));
    return Record().add("version", deployed.version).add("warnings", deployed.warnings).take();
  });
  module.def("admin_schemas", [](ClientHandle& handle) {
    return Record::convert(value_of(call_admin(handle, [](Admin admin) { return admin.schemas(); })));
  });
}

}  // namespace

void bind_admin(nb::module_& module) {
  bind_options(module);
  bind_cluster(module);
  bind_buckets(module);
  bind_settings(module);
}

}  // namespace fjord::python
