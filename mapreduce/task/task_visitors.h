#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "columns/column_cache.h"
#include "fjord/common/clock.h"
#include "fjord/common/hash.h"
#include "fjord/common/processor_time.h"
#include "fjord/common/turn_pool.h"
#include "fjord/mapreduce/task_visitors.h"
#include "group_store.h"
#include "incremental/partial_cache.h"
#include "rows.h"
#include "sink_pump.h"
#include "task.h"

namespace fjord::mapreduce {

struct TaskMetrics {
  explicit TaskMetrics(MetricRegistry& registry);

  Counter& documents;
  Counter& tuples;
  Counter& tuple_documents;
  Counter& results;
  Counter& spilled_bytes;
  Counter& reused;
  Counter& in_columns;
};

/// State that all tasks of a process share.
struct TaskContext {
  TaskContext(const ApplicationRegistry& known, DocumentSink& documents, TaskOptions chosen, Runtime& runtime);

  const ApplicationRegistry& applications;
  DocumentSink& sink;
  TaskOptions options;
  const Clock& clock;
  Tunable& memory;
  Tunable& spill_limit;
  TaskMetrics metrics;
  SpillArea spills;
  PartialCache partials;
  ColumnCache columns;
  std::uint64_t unit_seed = 0;
  std::atomic<std::uint64_t> units{0};

  GroupStoreOptions store_options(std::uint32_t destinations) const {
    return {.memory_bytes = static_cast<std::size_t>(memory.value()),
            .spill_bytes = static_cast<std::uint64_t>(spill_limit.value()),
            .destinations = destinations};
  }
  bool counts_processors(const TaskSpec& spec) const { return spec.counts_processors && options.counts_processors; }
  /// Returns a number that identifies a unit across all nodes and processes (a hash of a random seed and a counter).
  std::uint64_t new_unit() { return mix64(unit_seed, units.fetch_add(1) + 1) | 1; }
};

class MapInput;

Result<std::unique_ptr<visitors::Visitor>> make_map_visitor(std::shared_ptr<TaskContext> shared,
                                                            visitors::VisitContext& context,
                                                            const visitors::Parameters& parameters);
/// Makes the visitor of map tasks that send their tuples to the runner (direct_map_visitor.cpp).
std::unique_ptr<visitors::Visitor> make_direct_map_visitor(std::shared_ptr<TaskContext> shared,
                                                           visitors::VisitContext& context, TaskSpec spec,
                                                           std::unique_ptr<MapInput> input,
                                                           std::unique_ptr<Application> application);
/// Makes the visitor of direct map tasks that reuse what an earlier job kept (incremental_map_visitor.cpp).
std::unique_ptr<visitors::Visitor> make_incremental_map_visitor(std::shared_ptr<TaskContext> shared,
                                                                visitors::VisitContext& context, TaskSpec spec,
                                                                std::unique_ptr<Application> application);
Result<std::unique_ptr<visitors::Visitor>> make_reduce_visitor(std::shared_ptr<TaskContext> shared,
                                                               visitors::VisitContext& context,
                                                               const visitors::Parameters& parameters);
Result<std::unique_ptr<visitors::Visitor>> make_remove_visitor(std::shared_ptr<TaskContext> shared,
                                                               visitors::VisitContext& context,
                                                               const visitors::Parameters& parameters);
/// Makes the visitor that puts rows as documents (put_visitor.cpp).
Result<std::unique_ptr<visitors::Visitor>> make_put_visitor(std::shared_ptr<TaskContext> shared,
                                                            visitors::VisitContext& context,
                                                            const visitors::Parameters& parameters);

/// Returns the types of the documents or rows that the application of a task reads. Errors: InvalidArgument.
Result<std::shared_ptr<const DocumentTypeRepo>> input_types(const TaskSpec& spec,
                                                            const visitors::VisitContext& context);
/// Returns a configured application for a task. Errors: UnknownType; those of ApplicationRegistry::check_version and
/// ApplicationRegistry::create.
Result<std::unique_ptr<Application>> make_application(const TaskContext& shared, const TaskSpec& spec,
                                                      const DocumentTypeRepo& types);

/// Measures a turn of a task: its destructor adds the object's lifetime to `report.busy_us` and, if the task counts
/// processors, the processor time of the thread to `report.processor_us`.
class BusyTime {
 public:
  BusyTime(const TaskContext& shared, const TaskSpec& spec, visitors::VisitContext& context, TaskReport& report)
      : clock_(shared.clock),
        context_(context),
        report_(report),
        counts_processors_(shared.counts_processors(spec)),
        start_(clock_.now()),
        worked_(counts_processors_ ? processor_time() : Duration(0)) {}
  ~BusyTime() {
    report_.busy_us += static_cast<std::uint64_t>((clock_.now() - start_).count());
    if (!counts_processors_) return;
    const Duration worked = processor_time() - worked_;
    report_.processor_us += static_cast<std::uint64_t>(worked.count());
    context_.note_processor_time(worked);
  }
  BusyTime(const BusyTime&) = delete;
  BusyTime& operator=(const BusyTime&) = delete;

  /// True when the task should pause, so that other tasks get a turn or its processor time is reported.
  bool is_over() const {
    return context_.turn_is_over() || (counts_processors_ && clock_.now() - start_ >= TurnPool::kTurn);
  }

 private:
  const Clock& clock_;
  visitors::VisitContext& context_;
  TaskReport& report_;
  bool counts_processors_;
  MonotonicTime start_;
  Duration worked_;
};

/// Chooses how many documents an application with batches gets per call, so that a call takes about one turn.
class BatchSize {
 public:
  explicit BatchSize(const Clock& clock) : clock_(clock) {}

  std::size_t documents() const { return documents_; }
  void begin() { began_ = clock_.now(); }
  /// `documents` documents have been mapped since begin().
  void end(std::size_t documents) {
    const Duration took = clock_.now() - began_;
    if (took > TurnPool::kTurn) {
      const auto count = static_cast<std::int64_t>(documents);
      documents_ = static_cast<std::size_t>(std::max<std::int64_t>(1, count * TurnPool::kTurn.count() / took.count()));
    } else if (took <= TurnPool::kTurn / 2 && documents >= documents_) {
      documents_ = std::min(2 * documents_, kMax);
    }
  }

 private:
  static constexpr std::size_t kFirst = 4;
  static constexpr std::size_t kMax = std::size_t{1} << 20;

  const Clock& clock_;
  std::size_t documents_ = kFirst;
  MonotonicTime began_;
};

/// Calls `f(EntryView, DocumentView)` for the documents of a block from byte `from` on, until a call fails or `stop()`
/// returns true after a document. Returns the position behind the last document visited. Errors: Corruption; those of
/// `f`; Cancelled once the visit is cancelled.
template <typename F, typename Stop>
Result<std::size_t> for_some_documents(std::string_view docblock, std::size_t from,
                                       const visitors::VisitContext& context, F f, Stop stop) {
  DocBlockReader reader(docblock.substr(from));
  while (const auto entry = reader.next()) {
    if (context.cancelled()) return Status(StatusCode::Cancelled, "the task was cancelled");
    if (!entry->removed) {
      FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*context.types(), entry->header, entry->body));
      if (const Status status = f(*entry, view); !status)
        return status.with_context("document " + std::string(view.id()));
    }
    if (stop()) return docblock.size() - reader.remaining();
  }
  if (!reader.ok()) return Status(StatusCode::Corruption, "malformed block of documents");
  return docblock.size();
}

/// As for_some_documents(), for all documents of a block.
template <typename F>
Status for_each_document(std::string_view docblock, const visitors::VisitContext& context, F f) {
  return for_some_documents(docblock, 0, context, std::move(f), [] { return false; }).status();
}

/// The input of map: the visited documents, or the rows in them.
///
/// Threading: confined to the executor of its task.
class MapInput {
 public:
  /// Errors: InvalidArgument, InvalidSelection.
  static Result<std::unique_ptr<MapInput>> open(const TaskSpec& spec, const visitors::VisitContext& context);

  const DocumentTypeRepo& types() const { return *types_; }
  /// True if the input is rows. The view of a row is valid only during the call.
  bool has_rows() const { return rows_ != nullptr; }
  /// Counts all documents or rows in `report` and calls `f(DocumentView)` for the selected ones, until a call fails or
  /// `stop()` returns true. Returns and errors: as for_some_documents().
  template <typename F, typename Stop>
  Result<std::size_t> for_some(BucketId bucket, std::string_view docblock, std::size_t from,
                               const visitors::VisitContext& context, TaskReport& report, F f, Stop stop) {
    const auto one = [&](const EntryView& entry, const DocumentView& view) -> Status {
      if (once_ && !seen_[bucket].insert(entry.gid).second) return Status::ok();
      if (rows_ == nullptr) {
        ++report.documents;
        report.bytes += entry.header.size() + entry.body.size();
        return f(view);
      }
      return rows_->for_each(view, [&](std::size_t bytes, bool is_selected, const DocumentView& row) {
        ++report.documents;
        report.bytes += bytes;
        return is_selected ? f(row) : Status::ok();
      });
    };
    return for_some_documents(docblock, from, context, one, stop);
  }
  /// Drops what is known about a bucket that has ended or was abandoned.
  void forget(BucketId bucket) { seen_.erase(bucket); }

 private:
  std::shared_ptr<const DocumentTypeRepo> types_;
  std::unique_ptr<RowReader> rows_;  ///< Null: the input is documents.
  bool once_ = false;
  std::map<BucketId, std::unordered_set<GlobalId>> seen_;
};

/// The documents to map next: those of a block of `bucket` from byte `from` on.
struct MapStep {
  BucketId bucket;
  std::string_view docblock;
  std::size_t from = 0;
};

/// Maps documents into `table` until the turn is over, one by one with map_or_set_aside() or in batches, and counts
/// them in the report. Calls `f()` after each document or batch. Returns the position in the block behind the last
/// document mapped. Errors: those of MapInput::for_some(), map_or_set_aside() and `f`.
template <typename F>
Result<std::size_t> map_documents(MapInput& input, const MapStep& step, Accumulator& table,
                                  const visitors::VisitContext& context, const TaskSpec& spec, TaskReport& report,
                                  const BusyTime& busy, BatchSize& batch, F f) {
  if (!table.takes_many()) {
    const auto one = [&](const DocumentView& view) -> Status {
      FJORD_TRY(map_or_set_aside(table, view, spec, report));
      return f();
    };
    return input.for_some(step.bucket, step.docblock, step.from, context, report, one, [&] { return busy.is_over(); });
  }
  const auto map_all = [&](std::span<const DocumentView> left) -> Status {
    const std::size_t documents = left.size();
    batch.begin();
    while (!left.empty()) {
      FJORD_TRY_ASSIGN(const MappedDocuments mapped, table.map_many(left));
      for (const auto& [document, why] : mapped.failed) {
        if (const Status status = or_set_aside(why, left[document], spec, report); !status)
          return status.with_context("document " + std::string(left[document].id()));
      }
      FJORD_TRY(f());
      left = left.subspan(mapped.documents);
    }
    batch.end(documents);
    return Status::ok();
  };
  std::vector<DocumentView> documents;
  const auto one = [&](const DocumentView& view) -> Status {
    if (input.has_rows()) return map_all({&view, 1});
    documents.push_back(view);
    if (documents.size() < batch.documents()) return Status::ok();
    const Status status = map_all(documents);
    documents.clear();
    return status;
  };
  const auto is_over = [&] { return documents.empty() && busy.is_over(); };
  FJORD_TRY_ASSIGN(const std::size_t end,
                   input.for_some(step.bucket, step.docblock, step.from, context, report, one, is_over));
  FJORD_TRY(map_all(documents));
  return end;
}

}  // namespace fjord::mapreduce
