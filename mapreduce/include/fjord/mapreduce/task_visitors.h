#pragma once

#include <string>

#include "fjord/common/runtime.h"
#include "fjord/mapreduce/application.h"
#include "fjord/mapreduce/document_sink.h"
#include "fjord/visitors/visitor.h"

namespace fjord::mapreduce {

/// A task that puts lasting documents (RowTarget) is destroyed when its client has not polled it for this time. Its
/// puts may be in flight for kTaskPutTimeout longer. A job that abandoned such a task waits for both times before it
/// ends (JobServiceOptions::late_writes_max).
inline constexpr Duration kPutTaskIdleMax = seconds(10);
/// Timeout of one operation of the client behind the sink.
inline constexpr Duration kTaskPutTimeout = seconds(20);

struct TaskOptions {
  std::size_t tuple_document_bytes = std::size_t{4} << 20;  ///< Approximate size of one tuple document.
  SinkLimits writes = {};                                   ///< What one task has in flight.
  /// Directory for groups that do not fit into memory; used by nothing else and emptied at the start. Empty: tasks that
  /// need it fail.
  std::string spill_directory = {};
  std::size_t chunk_bytes = std::size_t{512} << 10;  ///< Direct shuffle: approximate size of one chunk of tuples.
  /// Tasks report the processor time they used if their job asks for it. False where time is simulated.
  bool counts_processors = false;
};

/// Registers the visitors "mapreduce.map", "mapreduce.reduce", "mapreduce.put" and "mapreduce.remove", which run the
/// tasks of jobs on a storage node. Declares the tunables mapreduce.task_memory_bytes, mapreduce.task_spill_bytes and
/// mapreduce.incremental_bytes.
///
/// Lifetime: `applications`, `sink` and `runtime` outlive the registry's users.
void add_task_visitors(visitors::VisitorRegistry& registry, const ApplicationRegistry& applications, DocumentSink& sink,
                       Runtime& runtime, const TaskOptions& options);

}  // namespace fjord::mapreduce
