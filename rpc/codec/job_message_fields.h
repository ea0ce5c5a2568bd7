#pragma once

#include "fields_of.h"
#include "fjord/rpc/job_messages.h"

/// See fields_of.h.
namespace fjord::rpc {

template <typename V, Is<Parameter> M>
void fields(V& visit, M& m) {
  visit(1, m.name);
  visit(2, m.value);
}
template <typename V, Is<RowTarget> M>
void fields(V& visit, M& m) {
  visit(1, m.type);
  visit(2, m.name_space);
  visit(3, m.name);
}
template <typename V, Is<JobPass> M>
void fields(V& visit, M& m) {
  visit(1, m.application);
  visit(2, m.document_type);
  visit(3, m.selection);
  visit(4, m.parameters);
  visit(5, m.into);
}
template <typename V, Is<JobSpec> M>
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
template <typename V, Is<DeadLetter> M>
void fields(V& visit, M& m) {
  visit(1, m.document);
  visit(2, m.error);
}
template <typename V, Is<PassStatus> M>
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
  visit(13, m.dead_letters);
  visit(14, m.documents_put);
  visit(15, m.documents_removed);
  visit(16, m.documents_reused);
  visit(17, m.shuffle);
}
template <typename V, Is<JobStatus> M>
void fields(V& visit, M& m) {
  visit(1, m.job_id);
  visit(2, m.spec);
  visit(3, m.phase);
  visit(4, m.error);
  visit(5, m.map_tasks);
  visit(6, m.map_tasks_done);
  visit(7, m.reduce_tasks);
  visit(8, m.reduce_tasks_done);
  visit(9, m.documents_read);
  visit(10, m.bytes_read);
  visit(11, m.tuples);
  visit(12, m.tuple_documents);
  visit(13, m.results);
  visit(14, m.tasks_repeated);
  visit(15, m.submitted_unix_us);
  visit(16, m.finished_unix_us);
  visit(17, m.output_buckets);
  visit(18, m.output_base);
  visit(19, m.shuffle);
  visit(20, m.spilled_bytes);
  visit(21, m.paused);
  visit(22, m.owner);
  visit(23, m.epoch);
  visit(24, m.live);
  visit(25, m.dead_letters);
  visit(26, m.dead_letter_list);
  visit(27, m.settings);
  visit(28, m.bound_by);
  visit(29, m.left_us);
  visit(30, m.left_error_us);
  visit(31, m.sent_bytes);
  visit(32, m.busy_us);
  visit(34, m.taken_over);
  visit(35, m.revision);
  visit(36, m.owner_id);
  visit(37, m.run);
  visit(38, m.bits);
  visit(39, m.outcome);
  visit(40, m.cancel_wanted);
  visit(41, m.resume);
  visit(42, m.expected);
  visit(43, m.documents_reused);
  visit(44, m.passes_done);
  visit(45, m.documents_put);
  visit(46, m.documents_removed);
  visit(47, m.pass_run);
  visit(48, m.application_version);
  visit(49, m.processor_us);
  visit(50, m.application_versions);
  visit(51, m.results_until_unix_us);
  visit(52, m.results_removed);
}
template <typename V, Is<SubmitJob> M>
void fields(V& visit, M& m) {
  visit(1, m.job_id);
  visit(2, m.spec);
}
template <typename V, Is<SubmitJobReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.job_id);
}
template <typename V, Is<ListJobs> M>
void fields(V& visit, M& m) {
  visit(1, m.job_id);
  visit(2, m.wait_us);
  visit(3, m.results_from);
  visit(4, m.results_bytes_max);
  visit(5, m.records);
  visit(6, m.dead_letters);
}
template <typename V, Is<ListJobsReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
  visit(2, m.jobs);
  visit(3, m.results);
  visit(4, m.more_results);
}
template <typename V, Is<CancelJob> M>
void fields(V& visit, M& m) {
  visit(1, m.job_id);
}
template <typename V, Is<CancelJobReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
}
template <typename V, Is<ControlJob> M>
void fields(V& visit, M& m) {
  visit(1, m.job_id);
  visit(2, m.action);
  visit(3, m.settings);
  visit(4, m.records);
}
template <typename V, Is<ControlJobReply> M>
void fields(V& visit, M& m) {
  visit(1, m.status);
}

}  // namespace fjord::rpc
