#include <unordered_set>
#include <utility>

#include "fjord/mapreduce/passes.h"
#include "task_visitors.h"

namespace fjord::mapreduce {
namespace {

/// The task of one output bucket: its pages, and the progress of the pump.
struct PutTask {
  struct Page {
    std::uint32_t destination = 0;
    std::string tuples;
  };
  std::vector<Page> pages;
  std::unordered_set<GlobalId> seen;
  std::vector<SinkOperation> ready;  ///< Operations of the current page.
  TaskReport report;
  std::shared_ptr<SinkPump> pump;
};

/// Puts each row as a lasting document, as a result, or both.
class PutVisitor final : public visitors::Visitor {
 public:
  PutVisitor(std::shared_ptr<TaskContext> shared, visitors::VisitContext& context, TaskSpec spec,
             std::shared_ptr<const DocumentTypeRepo> input_types, std::unique_ptr<Application> application)
      : shared_(std::move(shared)),
        context_(context),
        spec_(std::move(spec)),
        input_types_(std::move(input_types)),
        application_(std::move(application)),
        types_(context.types()) {}

  Status visit(BucketId bucket, std::string docblock) override {
    PutTask& task = tasks_[bucket];
    return for_each_document(docblock, context_, [&](const EntryView& entry, const DocumentView& view) {
      if (!task.seen.insert(entry.gid).second) return Status::ok();
      const auto destination = view.field("destination");
      const auto tuples = view.field("tuples");
      if (!destination || !tuples) return Status(StatusCode::Corruption, "no rows in it");
      ++task.report.documents;
      task.pages.push_back(
          {static_cast<std::uint32_t>(destination->as_int64()), std::string(tuples->as_string_view())});
      return Status::ok();
    });
  }

  void end_bucket(BucketId bucket, visitors::BucketDone done) override {
    PutTask& task = tasks_[bucket];
    task.pump = std::make_shared<SinkPump>(
        shared_->sink, context_.mailbox(), shared_->options.writes,
        [this, &task](SinkOperation& operation) { return next(task, operation); },
        [this, bucket, answer = std::move(done)](const Status& status) {
          const auto node = tasks_.extract(bucket);  // destroyed after this call: the pump is on the stack
          answer({status, status ? node.mapped().report.encode() : std::string()});
        },
        [&context = context_] { return context.turn_is_over(); });
    task.pump->start();
  }

  void abandon_bucket(BucketId bucket) override { tasks_.erase(bucket); }
  std::optional<Duration> idle_max() const override { return kPutTaskIdleMax; }

 private:
  Result<bool> next(PutTask& task, SinkOperation& operation) {
    const BusyTime busy(*shared_, spec_, context_, task.report);
    while (task.ready.empty()) {
      if (context_.cancelled()) return Status(StatusCode::Cancelled, "the task was cancelled");
      if (task.pages.empty()) return false;
      const PutTask::Page page = std::move(task.pages.back());
      task.pages.pop_back();
      FJORD_TRY(for_each_tuple(page.tuples, [&](std::string_view key, std::string_view row) {
        ++task.report.results;
        return add(task, page.destination, key, row);
      }));
    }
    operation = std::move(task.ready.back());
    task.ready.pop_back();
    task.report.sent_bytes += operation.document->size();
    return true;
  }

  Status add(PutTask& task, std::uint32_t destination, std::string_view key, std::string_view row) {
    if (!spec_.into.type.empty()) {
      FJORD_TRY_ASSIGN(SinkOperation stays, row_operation(spec_, *application_, *types_, key, row));
      task.ready.push_back(std::move(stays));
    }
    if (!spec_.puts_results) return Status::ok();
    FJORD_TRY_ASSIGN(SinkOperation result,
                     result_operation(spec_, *types_, spec_.result_id(key, destination), key, std::string(row)));
    task.ready.push_back(std::move(result));
    return Status::ok();
  }

  std::shared_ptr<TaskContext> shared_;
  visitors::VisitContext& context_;
  TaskSpec spec_;
  std::shared_ptr<const DocumentTypeRepo> input_types_;  ///< Owns the types that the application uses.
  std::unique_ptr<Application> application_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  std::map<BucketId, PutTask> tasks_;
};

}  // namespace

Result<std::shared_ptr<const DocumentTypeRepo>> input_types(const TaskSpec& spec,
                                                            const visitors::VisitContext& context) {
  if (!spec.reads_rows) return context.types();
  return row_types(spec.columns);
}

Result<std::unique_ptr<MapInput>> MapInput::open(const TaskSpec& spec, const visitors::VisitContext& context) {
  auto input = std::make_unique<MapInput>();
  FJORD_TRY_ASSIGN(input->types_, input_types(spec, context));
  input->once_ = spec.once;
  if (!spec.reads_rows) return input;
  FJORD_TRY_ASSIGN(input->rows_, RowReader::open(spec, input->types_));
  return input;
}

Result<std::unique_ptr<visitors::Visitor>> make_put_visitor(std::shared_ptr<TaskContext> shared,
                                                            visitors::VisitContext& context,
                                                            const visitors::Parameters& parameters) {
  FJORD_TRY_ASSIGN(TaskSpec spec, TaskSpec::from_parameters(parameters));
  FJORD_TRY_ASSIGN(auto types, input_types(spec, context));
  FJORD_TRY_ASSIGN(auto application, make_application(*shared, spec, *types));
  return std::unique_ptr<visitors::Visitor>(
      new PutVisitor(std::move(shared), context, std::move(spec), std::move(types), std::move(application)));
}

}  // namespace fjord::mapreduce
