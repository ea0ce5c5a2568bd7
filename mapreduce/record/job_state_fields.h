#pragma once

#include <concepts>
#include <type_traits>

#include "field_codec.h"
#include "fjord/mapreduce/job_state.h"

/// The fields of a job's record with their numbers, of version 2 (FORMAT.md). A number is never used again for
/// something else.
namespace fjord::mapreduce {

template <typename M, typename T>
concept FieldsOf = std::same_as<std::remove_const_t<M>, T>;

template <typename V, FieldsOf<PassCounts> M>
void fields(V& visit, M& m) {
  visit(1, m.map_tasks);
  visit(2, m.map_tasks_done);
  visit(3, m.reduce_tasks);
  visit(4, m.reduce_tasks_done);
  visit(5, m.documents_read);
  visit(6, m.bytes_read);
  visit(7, m.tuples);
  visit(8, m.tuple_documents);
  visit(9, m.results);
  visit(10, m.tasks_repeated);
  visit(11, m.spilled_bytes);
  visit(12, m.sent_bytes);
  visit(13, m.documents_put);
  visit(14, m.documents_removed);
  visit(15, m.documents_reused);
}
template <typename V, FieldsOf<PassResult> M>
void fields(V& visit, M& m) {
  visit(1, m.counts);
  visit(2, m.dead_letters);
  visit(3, m.shuffle);
}
template <typename V, FieldsOf<JobState> M>
void fields(V& visit, M& m) {
  visit(1, m.job_id);
  visit(2, m.owner);
  visit(3, m.owner_id);
  visit(4, m.epoch);
  visit(5, m.revision);
  visit(6, m.finished_unix_us);
  visit(7, m.spec);
  visit(8, m.settings);
  visit(9, m.submitted_unix_us);
  visit(10, m.taken_over);
  visit(11, m.phase);
  visit(12, m.outcome);
  visit(13, m.error);
  visit(14, m.paused);
  visit(15, m.cancel_wanted);
  visit(16, m.results_removed);
  visit(17, m.output_buckets);
  visit(18, m.output_base);
  visit(19, m.run);
  visit(20, m.pass_run);
  visit(21, m.bits);
  visit(22, m.shuffle);
  visit(23, m.application_version);
  visit(24, m.application_versions);
  visit(25, m.counts);
  visit(26, m.passes_done);
  visit(27, m.dead_letters);
  visit(28, m.busy_us);
  visit(29, m.processor_us);
  visit(30, m.resume);
  visit(31, m.expected_documents);
}

template <typename V, FieldsOf<rpc::Parameter> M>
void fields(V& visit, M& m) {
  visit(1, m.name);
  visit(2, m.value);
}
template <typename V, FieldsOf<rpc::RowTarget> M>
void fields(V& visit, M& m) {
  visit(1, m.type);
  visit(2, m.name_space);
  visit(3, m.name);
}
template <typename V, FieldsOf<rpc::JobPass> M>
void fields(V& visit, M& m) {
  visit(1, m.application);
  visit(2, m.document_type);
  visit(3, m.selection);
  visit(4, m.parameters);
  visit(5, m.into);
}
template <typename V, FieldsOf<rpc::JobSpec> M>
void fields(V& visit, M& m) {
  visit(1, m.application);
  visit(2, m.document_type);
  visit(3, m.selection);
  visit(4, m.parameters);
  visit(5, m.output_namespace);
  visit(6, m.output_buckets);
  visit(7, m.visitors_per_node);
  visit(8, m.shuffle);
  visit(9, m.settings);
  visit(10, m.incremental);
  visit(11, m.passes);
}
template <typename V, FieldsOf<rpc::DeadLetter> M>
void fields(V& visit, M& m) {
  visit(1, m.document);
  visit(2, m.error);
}

}  // namespace fjord::mapreduce
