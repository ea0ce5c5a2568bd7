#pragma once

#include "fjord/common/runtime.h"
#include "fjord/mapreduce/application.h"
#include "fjord/mapreduce/document_sink.h"
#include "fjord/visitors/visitor.h"

namespace fjord::mapreduce {

struct TaskOptions {
  std::size_t tuple_document_bytes = std::size_t{4} << 20;  ///< Tuples are cut into documents of about this size.
  std::size_t writes_outstanding = 32;                      ///< Puts and removes of one task under way at once.
};

/// Adds the visitors "mapreduce.map", "mapreduce.reduce" and "mapreduce.remove", which do the tasks of jobs on a
/// storage node, and declares the tunable mapreduce.task_memory_bytes.
///
/// Lifetime: `applications`, `sink` and `runtime` outlive the registry's users.
void add_task_visitors(visitors::VisitorRegistry& registry, const ApplicationRegistry& applications, DocumentSink& sink,
                       Runtime& runtime, const TaskOptions& options);

/// mapreduce.task_memory_bytes: the most that the tuples of one task may take.
Tunable& task_memory_tunable(TunableRegistry& tunables);

}  // namespace fjord::mapreduce
