#include <utility>

#include "column_inputs.h"
#include "fjord/common/check.h"
#include "fjord/common/log.h"
#include "task_visitors.h"

namespace fjord::mapreduce {
namespace {

/// The task of one input bucket: documents become tuples, and tuples become tuple documents.
struct MapTask {
  MapTask(Application& application, TaskContext& shared, const visitors::VisitContext& context,
          std::uint32_t destinations)
      : groups(application, shared.spills, shared.store_options(destinations),
               [&context] { return context.cancelled(); }) {}

  GroupStore groups;
  TaskReport report;
  std::unique_ptr<TupleDocuments> documents;
  std::shared_ptr<SinkPump> pump;
};

class MapVisitor final : public visitors::Visitor {
 public:
  MapVisitor(std::shared_ptr<TaskContext> shared, visitors::VisitContext& context, TaskSpec spec,
             std::unique_ptr<MapInput> input, std::unique_ptr<Application> application)
      : shared_(std::move(shared)),
        context_(context),
        spec_(std::move(spec)),
        input_(std::move(input)),
        application_(std::move(application)),
        types_(context.types()),
        batch_(shared_->clock),
        columns_(ColumnInputs::make(shared_, context_, spec_, *input_, make_accumulator(*application_)->values())) {}

  Status begin_bucket(BucketId bucket) override {
    tasks_[bucket] = std::make_unique<MapTask>(*application_, *shared_, context_, spec_.output_buckets);
    return Status::ok();
  }

  std::shared_ptr<visitors::BucketReader> make_reader(BucketId bucket) override {
    return columns_ == nullptr ? nullptr : columns_->make_reader(bucket);
  }

  Result<std::size_t> visit_some(BucketId bucket, std::string& docblock, std::size_t from) override {
    MapTask& task = *tasks_.at(bucket);
    const std::uint64_t documents = task.report.documents;
    const std::uint64_t tuples = task.report.tuples;
    const BusyTime busy(*shared_, spec_, context_, task.report);
    const auto end = [&] {
      const ColumnInputs::Recording recording(columns_.get(), bucket, task.groups.table());
      return map_documents(*input_, {bucket, docblock, from}, task.groups.table(), context_, spec_, task.report, busy,
                           batch_, [&] { return task.groups.keep_within_memory(); });
    }();
    task.report.tuples = task.groups.table().tuples();
    shared_->metrics.documents.add(task.report.documents - documents);
    shared_->metrics.tuples.add(task.report.tuples - tuples);
    if (columns_ != nullptr) FJORD_TRY(columns_->limit_memory(bucket, task.groups.table(), task.report));
    return end;
  }

  void end_bucket(BucketId bucket, visitors::BucketDone done) override {
    MapTask& task = *tasks_.at(bucket);
    input_->forget(bucket);
    const Status added = end_input(bucket, task);
    auto tuples = added ? task.groups.finish() : Result<std::unique_ptr<TupleSource>>(added);
    if (!tuples) {
      tasks_.erase(bucket);
      done({tuples.error(), {}});
      return;
    }
    task.report.spilled_bytes = task.groups.spilled_bytes();
    shared_->metrics.spilled_bytes.add(task.report.spilled_bytes);
    task.documents = std::make_unique<TupleDocuments>(std::move(*tuples), shared_->options.tuple_document_bytes);
    task.pump = std::make_shared<SinkPump>(
        shared_->sink, context_.mailbox(), shared_->options.writes,
        [this, bucket, &task](SinkOperation& operation) { return next(bucket, task, operation); },
        [this, bucket, answer = std::move(done)](const Status& status) {
          const auto node = tasks_.extract(bucket);  // destroyed after this call: the pump is on the stack
          answer({status, status ? node.mapped()->report.encode() : std::string()});
        },
        [&context = context_] { return context.turn_is_over(); });
    task.pump->start();
  }

  void abandon_bucket(BucketId bucket) override {
    tasks_.erase(bucket);
    input_->forget(bucket);
    if (columns_ != nullptr) columns_->drop(bucket);
  }

 private:
  /// Adds the documents of a bucket whose columns were found. Keeps the columns of one whose documents were read.
  Status end_input(BucketId bucket, MapTask& task) {
    if (columns_ == nullptr) return Status::ok();
    const BusyTime busy(*shared_, spec_, context_, task.report);
    FJORD_TRY(columns_->end(bucket, task.groups.table(), task.report));
    return task.groups.keep_within_memory();
  }

  Result<bool> next(BucketId bucket, MapTask& task, SinkOperation& operation) {
    if (context_.cancelled()) return Status(StatusCode::Cancelled, "the task was cancelled");
    FJORD_TRY_ASSIGN(auto block, task.documents->next());
    if (!block) return false;
    FJORD_TRY_ASSIGN(const DocumentId id,
                     DocumentId::parse(spec_.tuples_id(bucket, block->destination, block->counter)));
    const DocumentType* type = types_->find(kTuplesType);
    FJORD_CHECK(type != nullptr);
    Document document(*type, id);
    FJORD_TRY(document.set("job", spec_.tuples_job()));
    FJORD_TRY(document.set("source", static_cast<std::int64_t>(bucket.raw())));
    FJORD_TRY(document.set("destination", static_cast<std::int32_t>(block->destination)));
    FJORD_TRY(document.set("counter", static_cast<std::int32_t>(block->counter)));
    FJORD_TRY(document.set("tuples", RawValue{std::move(block->tuples)}));
    operation.id = id.str();
    operation.document = encode(document);
    task.report.sent_bytes += operation.document->size();
    ++task.report.tuple_documents[block->destination];
    shared_->metrics.tuple_documents.add();
    return true;
  }

  std::shared_ptr<TaskContext> shared_;
  visitors::VisitContext& context_;
  TaskSpec spec_;
  std::unique_ptr<MapInput> input_;  ///< Declared before the application, whose types it owns.
  std::unique_ptr<Application> application_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  BatchSize batch_;
  std::unique_ptr<ColumnInputs> columns_;  ///< Null: this application has none.
  std::map<BucketId, std::unique_ptr<MapTask>> tasks_;
};

}  // namespace

TaskMetrics::TaskMetrics(MetricRegistry& registry)
    : documents(registry.counter("fjord_job_map_documents_total", "Documents given to map functions.")),
      tuples(registry.counter("fjord_job_map_tuples_total", "Tuples emitted by map functions.")),
      tuple_documents(registry.counter("fjord_job_tuple_documents_total", "Documents of tuples put by map tasks.")),
      results(registry.counter("fjord_job_results_total", "Result documents put by reduce tasks.")),
      spilled_bytes(registry.counter("fjord_job_spilled_bytes_total",
                                     "Bytes that tasks wrote to disk because their groups did not fit into memory.")),
      reused(
          registry.counter("fjord_job_documents_reused_total", "Documents that incremental jobs did not read again.")),
      in_columns(registry.counter("fjord_job_documents_in_columns_total",
                                  "Documents that jobs did not read, because columns had their values.")) {}

Result<std::unique_ptr<Application>> make_application(const TaskContext& shared, const TaskSpec& spec,
                                                      const DocumentTypeRepo& types) {
  const DocumentType* type = types.find(spec.document_type);
  if (type == nullptr) return Status(StatusCode::UnknownType, "there is no document type " + spec.document_type);
  FJORD_TRY(shared.applications.check_version(spec.application, spec.version));
  return shared.applications.create(spec.application, spec.parameters, *type, &types);
}

Result<std::unique_ptr<visitors::Visitor>> make_map_visitor(std::shared_ptr<TaskContext> shared,
                                                            visitors::VisitContext& context,
                                                            const visitors::Parameters& parameters) {
  FJORD_TRY_ASSIGN(TaskSpec spec, TaskSpec::from_parameters(parameters));
  FJORD_TRY_ASSIGN(auto input, MapInput::open(spec, context));
  FJORD_TRY_ASSIGN(auto application, make_application(*shared, spec, input->types()));
  if (spec.direct && !spec.incremental.empty()) {
    return make_incremental_map_visitor(std::move(shared), context, std::move(spec), std::move(application));
  }
  if (spec.direct) {
    return make_direct_map_visitor(std::move(shared), context, std::move(spec), std::move(input),
                                   std::move(application));
  }
  return std::unique_ptr<visitors::Visitor>(
      new MapVisitor(std::move(shared), context, std::move(spec), std::move(input), std::move(application)));
}

TaskContext::TaskContext(const ApplicationRegistry& known, DocumentSink& documents, TaskOptions chosen,
                         Runtime& runtime)
    : applications(known),
      sink(documents),
      options(std::move(chosen)),
      clock(runtime.clock),
      memory(runtime.tunables.declare("mapreduce.task_memory_bytes")),
      spill_limit(runtime.tunables.declare("mapreduce.task_spill_bytes")),
      metrics(runtime.metrics),
      spills(runtime.env, options.spill_directory),
      partials(runtime.tunables.declare("mapreduce.incremental_bytes"), runtime.metrics),
      columns([&limit = runtime.tunables.declare(
                   "mapreduce.incremental_bytes")] { return static_cast<std::size_t>(limit.value()) / kColumnsPart; },
              runtime.metrics),
      unit_seed(runtime.random.next()) {}

void add_task_visitors(visitors::VisitorRegistry& registry, const ApplicationRegistry& applications, DocumentSink& sink,
                       Runtime& runtime, const TaskOptions& options) {
  const auto shared = std::make_shared<TaskContext>(applications, sink, options, runtime);
  if (const Status status = shared->spills.clean(); !status) {
    log::warning("job", "{} cannot be emptied: {}", options.spill_directory, status.to_string());
  }
  using visitors::Parameters;
  using visitors::VisitContext;
  registry.add_internal(kMapVisitor, [shared](VisitContext& context, const Parameters& parameters) {
    return make_map_visitor(shared, context, parameters);
  });
  registry.add_internal(kReduceVisitor, [shared](VisitContext& context, const Parameters& parameters) {
    return make_reduce_visitor(shared, context, parameters);
  });
  registry.add_internal(kPutVisitor, [shared](VisitContext& context, const Parameters& parameters) {
    return make_put_visitor(shared, context, parameters);
  });
  registry.add_internal(kRemoveVisitor, [shared](VisitContext& context, const Parameters& parameters) {
    return make_remove_visitor(shared, context, parameters);
  });
}

}  // namespace fjord::mapreduce
