#pragma once

#include <string>

#include "fjord/common/runtime.h"
#include "fjord/mapreduce/application.h"
#include "fjord/mapreduce/document_sink.h"
#include "fjord/visitors/visitor.h"

namespace fjord::mapreduce {

/// Wrong on purpose, so that tests can be seen to notice it.
struct TaskSabotage {
  bool lose_spills = false;     ///< What a task wrote to disk is forgotten.
  bool stale_partials = false;  ///< Incremental: a bucket is taken for unchanged.
  bool keep_retracted = false;  ///< Incremental: what documents were before they changed goes on counting.
};

/// A task that puts documents which stay ends when nobody has asked for it for so long; its puts may be under way for
/// kTaskPutTimeout longer. A job that gave such a task up waits as long before it is done
/// (JobServiceOptions::strays_max).
inline constexpr Duration kPutTaskIdleMax = seconds(10);
/// Of the client behind the sink.
inline constexpr Duration kTaskPutTimeout = seconds(20);

struct TaskOptions {
  std::size_t tuple_document_bytes = std::size_t{4} << 20;  ///< Tuples are cut into documents of about this size.
  std::size_t writes_outstanding = 32;                      ///< Puts and removes of one task under way at once.
  /// A folder of their own for groups that do not fit into memory; emptied at the start. Empty: such tasks fail.
  std::string spill_directory = {};
  std::size_t chunk_bytes = std::size_t{512} << 10;  ///< Tuples that go to the runner are cut into pieces of this size.
  /// Tasks say how long processors have worked for them, where the job asks for it. Not where time is simulated.
  bool counts_processors = false;
  TaskSabotage sabotage = {};
};

/// Adds the visitors "mapreduce.map", "mapreduce.reduce" and "mapreduce.remove", which do the tasks of jobs on a
/// storage node, and declares the tunables mapreduce.task_memory_bytes, mapreduce.task_spill_bytes and
/// mapreduce.incremental_bytes.
///
/// Lifetime: `applications`, `sink` and `runtime` outlive the registry's users.
void add_task_visitors(visitors::VisitorRegistry& registry, const ApplicationRegistry& applications, DocumentSink& sink,
                       Runtime& runtime, const TaskOptions& options);

/// mapreduce.task_memory_bytes: the most that the groups of one task take in memory.
Tunable& task_memory_tunable(TunableRegistry& tunables);

}  // namespace fjord::mapreduce
