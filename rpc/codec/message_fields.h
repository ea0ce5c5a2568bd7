#pragma once

#include <type_traits>

#include "fields_of.h"
#include "fjord/rpc/messages.h"
#include "job_message_fields.h"
#include "operator_message_fields.h"

/// See fields_of.h. The messages about jobs and those of operators have files of their own.
namespace fjord::rpc {

template <typename V, Is<ClusterInfo> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.state);
  visit(3, m.distribution);
  visit(4, m.distributor_addresses);
  visit(5, m.storage_addresses);
  visit(6, m.schema_version);
  visit(7, m.schemas);
  visit(8, m.term);
  visit(9, m.lease_us);
  visit(10, m.pending_state);
  visit(11, m.pending_distribution);
  visit(12, m.pending_distributor_addresses);
  visit(13, m.pending_storage_addresses);
  visit(14, m.config_version);
  visit(15, m.config);
}
template <typename V, Is<GetClusterInfo> M>
void fields(V& visit, M& m) {
  visit(1, m.known_state_version);
  visit(2, m.known_schema_version);
  visit(3, m.everything);
}
template <typename V, Is<GetClusterInfoReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.info);
  visit(3, m.time_ceiling_us);
}

template <typename V, Is<Operation> M>
void fields(V& visit, M& m) {
  visit(1, m.kind);
  visit(2, m.id);
  visit(3, m.header);
  visit(4, m.body);
  visit(5, m.json);
  visit(6, m.sequence);
  visit(7, m.want_json);
  visit(8, m.attempt);
  visit(9, m.update);
  visit(10, m.condition);
  visit(11, m.create);
  visit(12, m.token);
  visit(13, m.field_set);
  visit(14, m.durability);
  visit(15, m.priority);
  visit(16, m.timeout_us);
  visit(17, m.consistency);
  visit(18, m.required_version);
  visit(19, m.node);
}
template <typename V, Is<OperationResult> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.timestamp_us);
  visit(3, m.existed);
  visit(4, m.header);
  visit(5, m.body);
  visit(6, m.json);
  visit(7, m.version_us);
  visit(8, m.token_entry);
  visit(9, m.token_timestamp_us);
  visit(10, m.retry_after_ms);
}
template <typename V, Is<Execute> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.client_id);
  visit(3, m.first_unsettled);
  visit(4, m.timeout_us);
  visit(5, m.operations);
  visit(6, m.part_after_us);
  visit(7, m.rest);
}
template <typename V, Is<ExecuteReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.results);
  visit(3, m.newer_info);
  visit(4, m.retry_after_ms);
  visit(5, m.rest);
}

template <typename V, Is<ExecuteStrict> M>
void fields(V& visit, M& m) {
  visit(1, m.batch);
  visit(2, m.features);
}
template <typename V, Is<ExecuteStrictReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.batch);
}

template <typename V, Is<GetBucketNodes> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.all);
  visit(3, m.buckets);
  visit(4, m.for_changes);
  visit(5, m.avoid);
}
template <typename V, Is<BucketNode> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.status);
  visit(3, m.node);
  visit(4, m.epoch);
  visit(5, m.stable_us);
  visit(6, m.even_damaged);
}
template <typename V, Is<GetBucketNodesReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.buckets);
  visit(3, m.newer_info);
}

template <typename V, Is<StorageOperation> M>
void fields(V& visit, M& m) {
  visit(1, m.kind);
  visit(2, m.bucket);
  visit(3, m.timestamp_us);
  visit(4, m.id);
  visit(5, m.header);
  visit(6, m.body);
  visit(7, m.epoch);
  visit(8, m.gid);
  visit(9, m.header_only);
  visit(10, m.token_gid);
  visit(11, m.token_entry);
  visit(12, m.durability);
  visit(13, m.compare);
  visit(14, m.read_us);
  visit(15, m.even_damaged);
  visit(16, m.is_elsewhere);
}
template <typename V, Is<Apply> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.distributor);
  visit(3, m.operations);
  visit(4, m.timeout_us);
  visit(5, m.in_background);
  visit(6, m.number);
}
template <typename V, Is<ApplyReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.results);
  visit(3, m.state_version);
}

template <typename V, Is<GetBucketInfo> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.distributor);
  visit(3, m.all);
  visit(4, m.buckets);
  visit(5, m.only_damaged);
  visit(6, m.entries_limit);
  visit(7, m.bytes_limit);
  visit(8, m.census);
  visit(9, m.removes_before_us);
  visit(10, m.tokens_before_us);
  visit(11, m.tokens_max);
}
template <typename V, Is<BucketReport> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.info);
  visit(3, m.replica_set);
  visit(4, m.damaged);
  visit(5, m.forgotten_removes_us);
  visit(6, m.forgotten_tokens_us);
  visit(7, m.may_forget);
  visit(8, m.surplus_tokens_us);
}
template <typename V, Is<GetBucketInfoReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.reports);
  visit(3, m.state_version);
  visit(4, m.space_stage);
  visit(5, m.space_reason);
  visit(6, m.can_forget);
}
template <typename V, Is<BucketReplicaSet> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.replica_set);
  visit(3, m.repaired);
  visit(4, m.intact);
  visit(5, m.forget_removes_before_us);
  visit(6, m.forget_tokens_before_us);
}
template <typename V, Is<SetReplicaSets> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.distributor);
  visit(3, m.buckets);
}
template <typename V, Is<SetReplicaSetsReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.statuses);
  visit(3, m.state_version);
  visit(4, m.contents);
}
template <typename V, Is<MergeBucket> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.distributor);
  visit(3, m.bucket);
  visit(4, m.sources);
  visit(5, m.outsiders);
  visit(6, m.decides);
  visit(7, m.time_limit_ms);
  visit(8, m.only_moves);
  visit(9, m.epoch);
}
template <typename V, Is<MergeBucketReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.entries_copied);
  visit(3, m.bytes_copied);
  visit(4, m.info);
  visit(5, m.state_version);
  visit(6, m.damaged_sources);
}
template <typename V, Is<DeleteBuckets> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.distributor);
  visit(3, m.buckets);
}
template <typename V, Is<DeleteBucketsReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.statuses);
  visit(3, m.state_version);
}
template <typename V, Is<SplitBucket> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.distributor);
  visit(3, m.bucket);
  visit(4, m.epoch);
}
template <typename V, Is<SplitBucketReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.reports);
  visit(3, m.state_version);
}
template <typename V, Is<JoinBuckets> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.distributor);
  visit(3, m.parent);
  visit(4, m.epoch);
}
template <typename V, Is<JoinBucketsReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.report);
  visit(3, m.state_version);
}

template <typename V, Is<EntryKey> M>
void fields(V& visit, M& m) {
  visit(1, m.gid);
  visit(2, m.timestamp_us);
  visit(3, m.removed);
}
template <typename V, Is<ListEntries> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.after);
  visit.always(3, m.from_start);
  visit(4, m.max_entries);
  visit(5, m.after_group);
  visit.always(6, m.last_group);
  visit(7, m.by_group);
}
template <typename V, Is<ListEntriesReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.entries);
  visit(3, m.more);
  visit(4, m.damaged);
  visit(5, m.by_group);
  visit(6, m.forgotten_removes_us);
  visit(7, m.forgotten_tokens_us);
  visit(8, m.forgotten_checksum);
  visit(9, m.epoch);
}
template <typename V, Is<FetchEntries> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.gids);
  visit(3, m.max_bytes);
  visit(4, m.only_moves);
}
template <typename V, Is<FetchEntriesReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.done);
  visit(3, m.docblock);
  visit(4, m.damaged);
  visit(5, m.wait_us);
}
template <typename V, Is<FindGarbage> M>
void fields(V& visit, M& m) {
  visit(1, m.state_version);
  visit(2, m.distributor);
  visit(3, m.bucket);
  visit(4, m.max_ids);
}
template <typename V, Is<FindGarbageReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.ids);
  visit(3, m.types);
  visit(4, m.more);
  visit(5, m.scanned);
  visit(6, m.state_version);
}

template <typename V, Is<Poll> M>
void fields(V& visit, M& m) {
  visit(1, m.info);
  visit(2, m.renews_lease);
  visit(3, m.heard_us);
  visit(4, m.heard_incarnation);
  visit(5, m.slow_storage);
  visit(6, m.time_ceiling_us);
  visit(7, m.node);
  visit(8, m.wants_settings);
}
template <typename V, Is<NodeLatency> M>
void fields(V& visit, M& m) {
  visit(1, m.node);
  visit(2, m.read_us);
  visit(3, m.write_us);
  visit(4, m.peers_read_us);
  visit(5, m.peers_write_us);
  visit(6, m.suspect);
}
template <typename V, Is<PollReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.node_state);
  visit(3, m.incarnation);
  visit(4, m.state_version);
  visit(5, m.schema_version);
  visit(6, m.buckets);
  visit(7, m.documents);
  visit(8, m.bytes);
  visit(9, m.buckets_out_of_sync);
  visit(10, m.buckets_unavailable);
  visit(11, m.buckets_damaged);
  visit(12, m.pending_version);
  visit(13, m.term);
  visit(14, m.min_bucket_bits);
  visit(15, m.config_version);
  visit(16, m.config_errors);
  visit(17, m.clock_us);
  visit(18, m.latencies);
  visit(19, m.node);
  visit(20, m.settings);
  visit(21, m.space_stage);
  visit(22, m.space);
  visit(23, m.buckets_failing);
  visit(24, m.failing);
  visit(25, m.buckets_unplaced);
  visit(26, m.buckets_under_replicated);
}
template <typename V, Is<DeploySchemas> M>
void fields(V& visit, M& m) {
  visit(1, m.schemas);
  visit(2, m.may_drop);
}
template <typename V, Is<DeploySchemasReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.schema_version);
  visit(3, m.warnings);
}
template <typename V, Is<GetStatus> M>
void fields(V&, M&) {}
template <typename V, Is<NodeStatus> M>
void fields(V& visit, M& m) {
  visit(1, m.node);
  visit(2, m.address);
  visit(3, m.state);
  visit(4, m.reason);
  visit(5, m.last);
  visit.always(6, m.answered_us_ago);
  visit(7, m.wanted);
  visit(8, m.group);
  visit(9, m.capacity);
  visit(10, m.slow);
  visit.always(11, m.maintenance_us);
  visit.always(12, m.maintenance_left_us);
}
template <typename V, Is<GetStatusReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.info);
  visit(3, m.nodes);
  visit(4, m.changed_unix_us);
}

template <typename V, Is<CreateVisitor> M>
void fields(V& visit, M& m) {
  visit(1, m.visitor_id);
  visit(2, m.library);
  visit(3, m.parameters);
  visit(4, m.buckets);
  visit(5, m.selection);
  visit(6, m.ids_only);
  visit(7, m.docblock_bytes);
  visit(8, m.buckets_at_once);
  visit(9, m.schema_version);
  visit(10, m.field_set);
  visit(11, m.from_us);
  visit(12, m.to_us);
  visit(13, m.include_removed);
  visit(14, m.priority);
  visit(15, m.first_position);
  visit(16, m.last_position);
  visit(20, m.header_only);
  visit(21, m.snapshot);
  visit(22, m.refuses_damaged);
  visit(23, m.even_damaged);
  visit(24, m.group);
  visit(25, m.weight);
}
template <typename V, Is<CreateVisitorReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
}
template <typename V, Is<VisitorEvent> M>
void fields(V& visit, M& m) {
  visit(1, m.sequence);
  visit(2, m.bucket);
  visit(3, m.docblock);
  visit(4, m.bucket_done);
  visit(5, m.status);
  visit(6, m.result);
  visit(7, m.documents_read);
  visit(8, m.documents_matched);
}
template <typename V, Is<VisitorNext> M>
void fields(V& visit, M& m) {
  visit(1, m.visitor_id);
  visit(2, m.acknowledged);
  visit(3, m.max_bytes);
  visit(4, m.wait_us);
}
template <typename V, Is<VisitorNextReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.events);
  visit(3, m.finished);
  visit(4, m.processor_us);
}
template <typename V, Is<DestroyVisitor> M>
void fields(V& visit, M& m) {
  visit(1, m.visitor_id);
}
template <typename V, Is<DestroyVisitorReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
}

template <typename V, Is<ChangesWanted> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.epoch);
  visit(3, m.until_us);
  visit(4, m.after_us);
  visit(5, m.seen_epoch);
  visit(6, m.seen_checksum);
  visit(7, m.seen_horizon_us);
}
template <typename V, Is<BucketChanges> M>
void fields(V& visit, M& m) {
  visit(1, m.bucket);
  visit(2, m.status);
  visit(3, m.docblock);
  visit(4, m.after_us);
  visit(5, m.checksum);
  visit(6, m.more);
  visit(7, m.again);
  visit(8, m.resync);
  visit(9, m.horizon_us);
}
template <typename V, Is<ReadChanges> M>
void fields(V& visit, M& m) {
  visit(1, m.buckets);
  visit(2, m.selection);
  visit(3, m.field_set);
  visit(4, m.max_bytes);
  visit(5, m.schema_version);
}
template <typename V, Is<ReadChangesReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.buckets);
}

template <typename V, Is<StateChange> M>
void fields(V& visit, M& m) {
  visit(1, m.version);
  visit(2, m.term);
  visit(3, m.unix_us);
  visit(4, m.active_unix_us);
  visit(5, m.what);
  visit(6, m.why);
  visit(7, m.who);
}
template <typename V, Is<GetHistory> M>
void fields(V& visit, M& m) {
  visit(1, m.max);
}
template <typename V, Is<GetHistoryReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.changes);
  visit(3, m.term);
  visit(4, m.leader);
  visit(5, m.info);
  visit(6, m.waits_for);
}

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <typename T>
inline constexpr bool kIsOptional = false;
template <typename T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// True for a struct with fields() of its own: not a number, string, list, optional or Status.
template <typename T>
inline constexpr bool kIsMessage =
    !std::is_arithmetic_v<T> && !std::is_enum_v<T> && !std::is_same_v<T, std::string> && !std::is_same_v<T, BucketId> &&
    !std::is_same_v<T, GlobalId> && !std::is_same_v<T, Status> && !kIsVector<T> && !kIsOptional<T>;

}  // namespace fjord::rpc
