#include <deque>
#include <optional>
#include <utility>

#include "fjord/common/check.h"
#include "key_reducer.h"
#include "task_visitors.h"

namespace fjord::mapreduce {
namespace {

/// The tuples of one destination.
struct Destination {
  Destination(Application& application, TaskContext& shared)
      : groups(application, shared.spills, shared.store_options(1)) {}
  GroupStore groups;
  std::uint64_t documents = 0;
};

/// The task of one output bucket, which may contain several destinations.
struct ReduceTask {
  std::map<std::uint32_t, Destination> destinations;
  std::unordered_set<GlobalId> seen;  ///< Documents read; one that is overwritten meanwhile may come twice.
  TaskReport report;
  std::shared_ptr<SinkPump> pump;

  // The destination that the pump works on; the members below belong to it.
  std::map<std::uint32_t, Destination>::iterator at;
  std::unique_ptr<TupleSource> tuples;  ///< Tuples of destination `at`; null: not begun.
  std::optional<KeyReducer> reducer;    ///< Reduces `tuples`.
  RowPage page;
  std::uint32_t pages = 0;          ///< Pages of rows written to the current destination.
  std::deque<SinkOperation> ready;  ///< Operations to send before the next key is reduced.
};

class ReduceVisitor final : public visitors::Visitor {
 public:
  ReduceVisitor(std::shared_ptr<TaskContext> shared, visitors::VisitContext& context, TaskSpec spec,
                std::shared_ptr<const DocumentTypeRepo> input_types, std::unique_ptr<Application> application)
      : shared_(std::move(shared)),
        context_(context),
        spec_(std::move(spec)),
        input_types_(std::move(input_types)),
        application_(std::move(application)),
        types_(context.types()) {}

  Status begin_bucket(BucketId bucket) override {
    tasks_[bucket] = std::make_unique<ReduceTask>();
    return Status::ok();
  }

  Result<std::size_t> visit_some(BucketId bucket, std::string& docblock, std::size_t from) override {
    ReduceTask& task = *tasks_.at(bucket);
    const BusyTime busy(*shared_, spec_, context_, task.report);
    const auto one = [&](const EntryView& entry, const DocumentView& view) {
      if (!task.seen.insert(entry.gid).second) return Status::ok();
      ++task.report.documents;
      task.report.bytes += entry.header.size() + entry.body.size();
      return add(task, view);
    };
    return for_some_documents(docblock, from, context_, one, [&] { return busy.is_over(); });
  }

  void end_bucket(BucketId bucket, visitors::BucketDone done) override {
    ReduceTask& task = *tasks_.at(bucket);
    if (Status complete = check_complete(bucket, task); !complete) {
      tasks_.erase(bucket);
      done({std::move(complete), {}});
      return;
    }
    task.seen.clear();
    task.at = task.destinations.begin();
    task.pump = std::make_shared<SinkPump>(
        shared_->sink, context_.mailbox(), shared_->options.writes,
        [this, &task](SinkOperation& operation) { return next(task, operation); },
        [this, bucket, answer = std::move(done)](const Status& status) {
          const auto node = tasks_.extract(bucket);
          answer({status, status ? node.mapped()->report.encode() : std::string()});
        },
        [&context = context_] { return context.turn_is_over(); });
    task.pump->start();
  }

  void abandon_bucket(BucketId bucket) override { tasks_.erase(bucket); }
  std::optional<Duration> idle_max() const override {
    if (spec_.into.type.empty()) return std::nullopt;
    return kPutTaskIdleMax;
  }

 private:
  Status add(ReduceTask& task, const DocumentView& view) {
    const auto destination = view.field("destination");
    const auto tuples = view.field("tuples");
    if (!destination || !tuples) return Status(StatusCode::Corruption, "no tuples in it");
    const auto number = static_cast<std::uint32_t>(destination->as_int64());
    auto& into = task.destinations.try_emplace(number, *application_, *shared_).first->second;
    ++into.documents;
    return for_each_tuple(tuples->as_string_view(), [&](std::string_view key, std::string_view value) {
      FJORD_TRY(into.groups.table().merge(key, value));
      return into.groups.keep_within_memory();
    });
  }

  /// Checks that exactly the documents that map tasks put are there, which makes the result exact. Errors: Corruption.
  Status check_complete(BucketId bucket, const ReduceTask& task) const {
    for (std::uint32_t destination = 0; destination < spec_.output_buckets; ++destination) {
      if (spec_.bucket(destination, bucket.used_bits()) != bucket) continue;
      const std::uint64_t expected =
          destination < spec_.expected_documents.size() ? spec_.expected_documents[destination] : 0;
      const auto it = task.destinations.find(destination);
      const std::uint64_t found = it == task.destinations.end() ? 0 : it->second.documents;
      if (found != expected) {
        return Status(StatusCode::Corruption, "destination " + std::to_string(destination) + " of job " + spec_.job +
                                                  " has " + std::to_string(found) + " tuple documents in " +
                                                  bucket.to_string() + ", map put " + std::to_string(expected));
      }
    }
    return Status::ok();
  }

  /// Reduces keys until there is an operation to send or the turn is over.
  Result<bool> next(ReduceTask& task, SinkOperation& operation) {
    const BusyTime busy(*shared_, spec_, context_, task.report);
    for (;;) {
      if (!task.ready.empty()) {
        operation = std::move(task.ready.front());
        task.ready.pop_front();
        task.report.sent_bytes += operation.document->size();
        return true;
      }
      if (context_.cancelled()) return Status(StatusCode::Cancelled, "the task was cancelled");
      if (task.at == task.destinations.end()) return false;
      auto& [destination, collected] = *task.at;
      if (task.tuples == nullptr) {
        FJORD_TRY_ASSIGN(task.tuples, collected.groups.finish());
        task.reducer.emplace(*application_, *task.tuples);
      }
      std::string key, result;
      FJORD_TRY_ASSIGN(const bool more, task.reducer->next(key, result));
      if (!more) {
        task.report.spilled_bytes += collected.groups.spilled_bytes();
        shared_->metrics.spilled_bytes.add(collected.groups.spilled_bytes());
        FJORD_TRY(end_page(task, destination));
        task.reducer.reset();
        task.tuples.reset();
        task.pages = 0;
        ++task.at;
        continue;
      }
      FJORD_TRY(make_documents(task, destination, key, std::move(result)));
      ++task.report.results;
      shared_->metrics.results.add();
      if (task.ready.empty() && busy.is_over()) return true;
    }
  }

  Status make_documents(ReduceTask& task, std::uint32_t destination, std::string_view reduced, std::string value) {
    FJORD_TRY_ASSIGN(const std::string text, application_->key_text(reduced));
    const std::string key = printable_key(text);
    if (!spec_.into.type.empty()) {
      FJORD_TRY_ASSIGN(SinkOperation stays, row_operation(spec_, *application_, *types_, key, value));
      task.ready.push_back(std::move(stays));
    }
    if (spec_.puts_rows) {
      task.page.add(key, value);
      if (task.page.bytes() >= shared_->options.tuple_document_bytes) FJORD_TRY(end_page(task, destination));
    }
    if (!spec_.puts_results) return Status::ok();
    FJORD_TRY_ASSIGN(SinkOperation result,
                     result_operation(spec_, *types_, spec_.result_id(text, destination), key, std::move(value)));
    task.ready.push_back(std::move(result));
    return Status::ok();
  }

  Status end_page(ReduceTask& task, std::uint32_t destination) {
    if (task.page.is_empty()) return Status::ok();
    SinkOperation operation;
    FJORD_TRY_ASSIGN(operation.document, page_document(spec_, *types_, spec_.puts_all, destination, task.pages++,
                                                       task.page.take(), operation.id));
    task.ready.push_back(std::move(operation));
    return Status::ok();
  }

  std::shared_ptr<TaskContext> shared_;
  visitors::VisitContext& context_;
  TaskSpec spec_;
  std::shared_ptr<const DocumentTypeRepo> input_types_;  ///< Owns the types that the application uses.
  std::unique_ptr<Application> application_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  std::map<BucketId, std::unique_ptr<ReduceTask>> tasks_;
};

/// Removes documents of one type that jobs have put: tuples, or results.
class RemoveVisitor final : public visitors::Visitor {
 public:
  RemoveVisitor(std::shared_ptr<TaskContext> shared, visitors::VisitContext& context, std::string type)
      : shared_(std::move(shared)), context_(context), type_(std::move(type)) {}

  Status visit(BucketId bucket, std::string docblock) override {
    auto& task = tasks_[bucket];
    return for_each_document(docblock, context_, [&](const EntryView&, const DocumentView& view) {
      const bool is_of_type = view.type() != nullptr && view.type()->name() == type_;
      if (!is_of_type) return Status(StatusCode::InvalidArgument, "a document that is not of type " + type_);
      task.ids.emplace_back(view.id());
      return Status::ok();
    });
  }

  void end_bucket(BucketId bucket, visitors::BucketDone done) override {
    Task& task = tasks_[bucket];
    task.pump = std::make_shared<SinkPump>(
        shared_->sink, context_.mailbox(), shared_->options.writes,
        [&task](SinkOperation& operation) -> Result<bool> {
          if (task.ids.empty()) return false;
          operation.id = std::move(task.ids.back());
          task.ids.pop_back();
          return true;
        },
        [this, bucket, answer = std::move(done)](const Status& status) {
          const auto node = tasks_.extract(bucket);
          answer({status, {}});
        });
    task.pump->start();
  }

  void abandon_bucket(BucketId bucket) override { tasks_.erase(bucket); }

 private:
  struct Task {
    std::vector<std::string> ids;
    std::shared_ptr<SinkPump> pump;
  };

  std::shared_ptr<TaskContext> shared_;
  visitors::VisitContext& context_;
  std::string type_;
  std::map<BucketId, Task> tasks_;
};

}  // namespace

Result<std::unique_ptr<visitors::Visitor>> make_reduce_visitor(std::shared_ptr<TaskContext> shared,
                                                               visitors::VisitContext& context,
                                                               const visitors::Parameters& parameters) {
  FJORD_TRY_ASSIGN(TaskSpec spec, TaskSpec::from_parameters(parameters));
  FJORD_TRY_ASSIGN(auto types, input_types(spec, context));
  FJORD_TRY_ASSIGN(auto application, make_application(*shared, spec, *types));
  return std::unique_ptr<visitors::Visitor>(
      new ReduceVisitor(std::move(shared), context, std::move(spec), std::move(types), std::move(application)));
}

Result<std::unique_ptr<visitors::Visitor>> make_remove_visitor(std::shared_ptr<TaskContext> shared,
                                                               visitors::VisitContext& context,
                                                               const visitors::Parameters& parameters) {
  std::string type = kTuplesType;
  for (const rpc::Parameter& parameter : parameters) {
    if (parameter.name != "type" || parameter.value != kResultType) {
      return Status(StatusCode::InvalidArgument, std::string(kRemoveVisitor) +
                                                     " takes the parameter type=" + kResultType + " or none, not " +
                                                     parameter.name + "=" + parameter.value);
    }
    type = kResultType;
  }
  return std::unique_ptr<visitors::Visitor>(new RemoveVisitor(std::move(shared), context, std::move(type)));
}

}  // namespace fjord::mapreduce
