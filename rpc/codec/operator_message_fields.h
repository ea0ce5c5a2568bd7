#pragma once

#include "fields_of.h"
#include "fjord/rpc/operator_messages.h"

/// See fields_of.h.
namespace fjord::rpc {

template <typename V, Is<BucketTrouble> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.kind);
  visit(3, m.reason);
  visit(4, m.members);
  visit(5, m.damaged);
  visit(6, m.filling);
}
template <typename V, Is<ListTroubles> M>
void fields(V& visit, M& m) {
  visit(1, m.at_least);
  visit(2, m.from_key);
  visit(3, m.max);
}
template <typename V, Is<ListTroublesReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.troubles);
  visit(3, m.next_key);
}
template <typename V, Is<AcceptLoss> M>
void fields(V& visit, M& m) {
  visit(1, m.buckets);
}
template <typename V, Is<AcceptLossReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.statuses);
}

template <typename V, Is<CheckWithout> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.nodes);
}
template <typename V, Is<CheckWithoutReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.buckets);
  visit(3, m.unavailable);
  visit(4, m.reasons);
  visit(5, m.state_version);
}
template <typename V, Is<RecoverState> M>
void fields(V& visit, M& m) {
  visit(1, m.dry_run);
  visit(2, m.force);
  visit(3, m.who);
}
template <typename V, Is<RecoverStateReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.refusals);
  visit(3, m.warnings);
  visit(4, m.found);
  visit(5, m.state);
  visit(6, m.distribution);
  visit(7, m.state_version);
  visit(8, m.next_version);
  visit(9, m.term);
  visit(10, m.schema_version);
  visit(11, m.schemas);
  visit(12, m.config_version);
  visit(13, m.settings);
}
template <typename V, Is<BucketInfo> M>
void fields(V& visit, M& m) {
  visit(1, m.entries);
  visit(2, m.documents);
  visit(3, m.bytes);
  visit(4, m.checksum);
  visit(5, m.max_timestamp_us);
}
template <typename V, Is<ReplicaSet> M>
void fields(V& visit, M& m) {
  visit(1, m.epoch);
  visit(2, m.nodes);
}
template <typename V, Is<BucketReplica> M>
void fields(V& visit, M& m) {
  visit(1, m.node);
  visit(2, m.role);
  visit(3, m.damaged);
  visit(4, m.status);
  visit(5, m.info);
  visit(6, m.replica_set);
  visit(7, m.document);
  visit(8, m.timestamp_us);
  visit(9, m.checksum);
  visit(10, m.bucket);
}
template <typename V, Is<BucketView> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.trouble);
  visit(3, m.reason);
  visit(4, m.replica_set);
  visit(5, m.replicas);
}
template <typename V, Is<ShowBucket> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.id);
}
template <typename V, Is<ShowBucketReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.distributor);
  visit(3, m.state_version);
  visit(4, m.buckets);
}

template <typename V, Is<PluginFunction> M>
void fields(V& visit, M& m) {
  visit(1, m.name);
  visit(2, m.help);
  visit(3, m.is_application);
  visit(4, m.version);
}
template <typename V, Is<PluginLibrary> M>
void fields(V& visit, M& m) {
  visit(1, m.file);
  visit(2, m.problem);
  visit(3, m.functions);
}
template <typename V, Is<ListPlugins> M>
void fields(V&, M&) {}
template <typename V, Is<ListPluginsReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.libraries);
}

template <typename V, Is<MovementPlan> M>
void fields(V& visit, M& m) {
  visit(1, m.buckets_total);
  visit(2, m.buckets_moved);
  visit(3, m.replicas_moved);
  visit(4, m.bytes);
  visit(5, m.duration_s);
  visit(6, m.notes);
}
template <typename V, Is<ChangeNodes> M>
void fields(V& visit, M& m) {
  visit(1, m.action);
  visit(2, m.nodes);
  visit(3, m.address);
  visit(4, m.group);
  visit(5, m.capacity);
  visit(6, m.reason);
  visit(7, m.who);
  visit(8, m.dry_run);
  visit(9, m.force);
  visit(10, m.balance_to);
  visit(11, m.if_unchanged);
  visit(12, m.unchanged_since_us);
}
template <typename V, Is<ChangeNodesReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.refusals);
  visit(3, m.warnings);
  visit(4, m.nodes);
  visit(5, m.state_version);
  visit(6, m.plan);
}
template <typename V, Is<Setting> M>
void fields(V& visit, M& m) {
  visit(1, m.name);
  visit(2, m.type);
  visit(3, m.default_value);
  visit(4, m.min);
  visit(5, m.max);
  visit(6, m.value);
  visit(7, m.used_by);
  visit(8, m.meaning);
  visit(9, m.in_force);
  visit(10, m.source);
  visit(11, m.elsewhere);
}
template <typename V, Is<ConfigChange> M>
void fields(V& visit, M& m) {
  visit(1, m.version);
  visit(2, m.unix_us);
  visit(3, m.who);
  visit(4, m.values);
}
template <typename V, Is<GetConfig> M>
void fields(V&, M&) {}
template <typename V, Is<GetConfigReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.config_version);
  visit(3, m.settings);
  visit(4, m.versions);
  visit(5, m.waiting);
  visit(6, m.errors);
}
template <typename V, Is<ChangeConfig> M>
void fields(V& visit, M& m) {
  visit(1, m.set);
  visit(2, m.unset);
  visit(3, m.revert_to);
  visit(4, m.revert);
  visit(5, m.who);
  visit(6, m.dry_run);
  visit(7, m.if_version);
  visit(8, m.version);
}
template <typename V, Is<ChangeConfigReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.config_version);
  visit(3, m.changes);
}

}  // namespace fjord::rpc
