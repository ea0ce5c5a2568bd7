#include <utility>

#include "fjord/common/check.h"
#include "task_visitors.h"

namespace fjord::mapreduce {
namespace {

/// One input bucket: its documents become tuples, its tuples documents.
struct MapTask {
  MapTask(Application& application, std::size_t memory) : table(application, memory) {}

  TupleTable table;
  TaskReport report;
  std::unique_ptr<TupleDocuments> documents;
  std::shared_ptr<SinkPump> pump;
};

class MapVisitor final : public visitors::Visitor {
 public:
  MapVisitor(std::shared_ptr<TaskContext> shared, visitors::VisitContext& context, TaskSpec spec,
             std::unique_ptr<Application> application)
      : shared_(std::move(shared)),
        context_(context),
        spec_(std::move(spec)),
        application_(std::move(application)),
        types_(context.types()) {}

  Status begin_bucket(BucketId bucket) override {
    tasks_[bucket] = std::make_unique<MapTask>(*application_, static_cast<std::size_t>(shared_->memory.value()));
    return Status::ok();
  }

  Status visit(BucketId bucket, std::string docblock) override {
    MapTask& task = *tasks_.at(bucket);
    TaskEmitter emitter(task, context_);
    const TaskReport before = task.report;
    const Status status = for_each_document(docblock, context_, [&](const EntryView& entry, const DocumentView& view) {
      ++task.report.documents;
      task.report.bytes += entry.header.size() + entry.body.size();
      FJORD_TRY(application_->map(view, emitter));
      return emitter.status();
    });
    shared_->metrics.documents.add(task.report.documents - before.documents);
    shared_->metrics.tuples.add(task.report.tuples - before.tuples);
    return status;
  }

  void end_bucket(BucketId bucket, visitors::BucketDone done) override {
    MapTask& task = *tasks_.at(bucket);
    task.documents =
        std::make_unique<TupleDocuments>(task.table, spec_.output_buckets, shared_->options.tuple_document_bytes);
    task.pump = std::make_shared<SinkPump>(
        shared_->sink, context_.mailbox(), shared_->options.writes_outstanding,
        [this, bucket, &task](SinkOperation& operation) { return next(bucket, task, operation); },
        [this, bucket, answer = std::move(done)](const Status& status) {
          const auto node = tasks_.extract(bucket);  // ends with this function: the pump is still on the stack
          answer({status, status ? node.mapped()->report.encode() : std::string()});
        });
    task.pump->start();
  }

  void abandon_bucket(BucketId bucket) override { tasks_.erase(bucket); }

 private:
  class TaskEmitter final : public Emitter {
   public:
    TaskEmitter(MapTask& task, const visitors::VisitContext& context) : task_(task), context_(context) {}
    void emit(std::string_view key, std::string_view value) override {
      ++task_.report.tuples;
      if (status_) status_ = task_.table.add(key, value);
    }
    bool cancelled() const override { return context_.cancelled(); }
    const Status& status() const { return status_; }

   private:
    MapTask& task_;
    const visitors::VisitContext& context_;
    Status status_;
  };

  Result<bool> next(BucketId bucket, MapTask& task, SinkOperation& operation) {
    if (context_.cancelled()) return Status(StatusCode::Cancelled, "the task was cancelled");
    auto block = task.documents->next();
    if (!block) return false;
    FJORD_TRY_ASSIGN(const DocumentId id,
                     DocumentId::parse(spec_.tuples_id(bucket, block->destination, block->counter)));
    const DocumentType* type = types_->find(kTuplesType);
    FJORD_CHECK(type != nullptr);
    Document document(*type, id);
    FJORD_TRY(document.set("job", spec_.job));
    FJORD_TRY(document.set("source", static_cast<std::int64_t>(bucket.raw())));
    FJORD_TRY(document.set("destination", static_cast<std::int32_t>(block->destination)));
    FJORD_TRY(document.set("counter", static_cast<std::int32_t>(block->counter)));
    FJORD_TRY(document.set("tuples", RawValue{std::move(block->tuples)}));
    operation.id = id.str();
    operation.document = encode(document);
    ++task.report.tuple_documents[block->destination];
    shared_->metrics.tuple_documents.add();
    return true;
  }

  std::shared_ptr<TaskContext> shared_;
  visitors::VisitContext& context_;
  TaskSpec spec_;
  std::unique_ptr<Application> application_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  std::map<BucketId, std::unique_ptr<MapTask>> tasks_;
};

}  // namespace

TaskMetrics::TaskMetrics(MetricRegistry& registry)
    : documents(registry.counter("fjord_job_map_documents_total", "Documents given to map functions.")),
      tuples(registry.counter("fjord_job_map_tuples_total", "Tuples emitted by map functions.")),
      tuple_documents(registry.counter("fjord_job_tuple_documents_total", "Documents of tuples put by map tasks.")),
      results(registry.counter("fjord_job_results_total", "Result documents put by reduce tasks.")) {}

Result<std::unique_ptr<Application>> make_application(const TaskContext& shared, const TaskSpec& spec,
                                                      const DocumentTypeRepo& types) {
  const DocumentType* type = types.find(spec.document_type);
  if (type == nullptr) return Status(StatusCode::UnknownType, "there is no document type " + spec.document_type);
  return shared.applications.create(spec.application, spec.parameters, *type);
}

Result<std::unique_ptr<visitors::Visitor>> make_map_visitor(std::shared_ptr<TaskContext> shared,
                                                            visitors::VisitContext& context,
                                                            const visitors::Parameters& parameters) {
  FJORD_TRY_ASSIGN(TaskSpec spec, TaskSpec::from_parameters(parameters));
  FJORD_TRY_ASSIGN(auto application, make_application(*shared, spec, *context.types()));
  return std::unique_ptr<visitors::Visitor>(
      new MapVisitor(std::move(shared), context, std::move(spec), std::move(application)));
}

Tunable& task_memory_tunable(TunableRegistry& tunables) {
  return tunables.declare({.name = "mapreduce.task_memory_bytes",
                           .unit = Unit::Bytes,
                           .default_value = std::int64_t{64} << 20,
                           .min = std::int64_t{64} << 10,
                           .max = std::int64_t{64} << 30,
                           .help = "The most that the tuples of one map or reduce task may take; a task that needs "
                                   "more fails with TOO_LARGE."});
}

void add_task_visitors(visitors::VisitorRegistry& registry, const ApplicationRegistry& applications, DocumentSink& sink,
                       Runtime& runtime, const TaskOptions& options) {
  const auto shared = std::make_shared<TaskContext>(
      TaskContext{applications, sink, options, task_memory_tunable(runtime.tunables), TaskMetrics(runtime.metrics)});
  using visitors::Parameters;
  using visitors::VisitContext;
  registry.add(kMapVisitor, [shared](VisitContext& context, const Parameters& parameters) {
    return make_map_visitor(shared, context, parameters);
  });
  registry.add(kReduceVisitor, [shared](VisitContext& context, const Parameters& parameters) {
    return make_reduce_visitor(shared, context, parameters);
  });
  registry.add(kRemoveVisitor, [shared](VisitContext& context, const Parameters& parameters) {
    return make_remove_visitor(shared, context, parameters);
  });
}

}  // namespace fjord::mapreduce
