#include <set>
#include <utility>

#include "column_inputs.h"
#include "task_visitors.h"

namespace fjord::mapreduce {
namespace {

/// Buckets that are read together share one table, so that a group is sent once for all of them. They form a unit: the
/// runner counts their tuples only when all of them are done. So the visitor reports its buckets done only with the
/// last one, and if one fails, all are read again.
class DirectMapVisitor final : public visitors::Visitor {
 public:
  DirectMapVisitor(std::shared_ptr<TaskContext> shared, visitors::VisitContext& context, TaskSpec spec,
                   std::unique_ptr<MapInput> input, std::unique_ptr<Application> application)
      : shared_(std::move(shared)),
        context_(context),
        spec_(std::move(spec)),
        input_(std::move(input)),
        application_(std::move(application)),
        table_(make_accumulator(*application_, [&visit = context] { return visit.cancelled(); })),
        batch_(shared_->clock),
        columns_(ColumnInputs::make(shared_, context_, spec_, *input_, table_->values())) {}

  Status begin_bucket(BucketId bucket) override {
    if (reports_.empty()) begin_unit(bucket);
    if (is_broken_) return broken();
    reports_[bucket];
    open_.insert(bucket);
    return Status::ok();
  }

  std::shared_ptr<visitors::BucketReader> make_reader(BucketId bucket) override {
    return columns_ == nullptr ? nullptr : columns_->make_reader(bucket);
  }

  Result<std::size_t> visit_some(BucketId bucket, std::string& docblock, std::size_t from) override {
    if (is_broken_) return broken();
    TaskReport& report = reports_.at(bucket);
    const std::uint64_t documents = report.documents;
    const std::uint64_t tuples = table_->tuples();
    const std::size_t limit = static_cast<std::size_t>(shared_->memory.value());
    const BusyTime busy(*shared_, spec_, context_, report);
    const auto end = [&] {
      const ColumnInputs::Recording recording(columns_.get(), bucket, *table_);
      return map_documents(*input_, {bucket, docblock, from}, *table_, context_, spec_, report, busy, batch_,
                           [&] { return table_->bytes() > limit ? ship() : Status::ok(); });
    }();
    report.tuples += table_->tuples() - tuples;
    shared_->metrics.documents.add(report.documents - documents);
    shared_->metrics.tuples.add(table_->tuples() - tuples);
    if (columns_ != nullptr) FJORD_TRY(columns_->limit_memory(bucket, *table_, report));
    return end;
  }

  void end_bucket(BucketId bucket, visitors::BucketDone done) override {
    open_.erase(bucket);
    input_->forget(bucket);
    if (const Status status = end_input(bucket); !status) failure_ = status;
    waiting_.emplace_back(bucket, std::move(done));
    if (open_.empty()) end_unit();
  }

  void abandon_bucket(BucketId bucket) override {
    open_.erase(bucket);
    input_->forget(bucket);
    if (columns_ != nullptr) columns_->drop(bucket);
    reports_.erase(bucket);
    is_broken_ = true;
    table_->clear();
    if (open_.empty()) end_unit();
  }

 private:
  /// Adds the documents of a bucket whose columns were found. Keeps the columns of one whose documents were read.
  Status end_input(BucketId bucket) {
    if (columns_ == nullptr) return Status::ok();
    if (is_broken_) {
      columns_->drop(bucket);
      return Status::ok();
    }
    TaskReport& report = reports_.at(bucket);
    const BusyTime busy(*shared_, spec_, context_, report);
    FJORD_TRY(columns_->end(bucket, *table_, report));
    return table_->bytes() > static_cast<std::size_t>(shared_->memory.value()) ? ship() : Status::ok();
  }

  static Status broken() {
    return Status(StatusCode::NotReady, "a bucket that was read together with this one failed");
  }

  void begin_unit(BucketId bucket) {
    carrier_ = bucket;
    unit_ = shared_->new_unit();
    chunks_ = sent_bytes_ = 0;
    is_broken_ = false;
    failure_ = Status::ok();
  }

  /// Sends the tuples of the table in chunks, and empties the table.
  Status ship() {
    TupleDocuments pieces(table_->drain(0), shared_->options.chunk_bytes);
    for (;;) {
      FJORD_TRY_ASSIGN(const auto piece, pieces.next());
      if (!piece) break;
      std::string chunk = TupleChunk::encode(unit_, piece->tuples);
      sent_bytes_ += chunk.size();
      context_.send(carrier_, std::move(chunk));
      ++chunks_;
    }
    table_->clear();
    return Status::ok();
  }

  void end_unit() {
    Status status = is_broken_ ? broken() : failure_;
    if (status) status = ship();
    for (auto& [bucket, done] : waiting_) {
      TaskReport& report = reports_[bucket];
      report.unit = unit_;
      report.unit_buckets = waiting_.size();
      report.unit_chunks = chunks_;
      report.sent_bytes = std::exchange(sent_bytes_, 0);
      done({status, status ? report.encode() : std::string()});
    }
    waiting_.clear();
    reports_.clear();
    table_->clear();
  }

  std::shared_ptr<TaskContext> shared_;
  visitors::VisitContext& context_;
  TaskSpec spec_;
  std::unique_ptr<MapInput> input_;  ///< Declared before the application, whose types it owns.
  std::unique_ptr<Application> application_;
  std::unique_ptr<Accumulator> table_;
  BatchSize batch_;
  std::unique_ptr<ColumnInputs> columns_;  ///< Null: this application has none.

  // State of the current unit.
  BucketId carrier_;  ///< First bucket of the unit. All chunks of the unit are sent in its name.
  std::uint64_t unit_ = 0;
  std::uint64_t chunks_ = 0;
  std::uint64_t sent_bytes_ = 0;
  bool is_broken_ = false;
  Status failure_;  ///< The error of a bucket that had ended before.
  std::set<BucketId> open_;
  std::map<BucketId, TaskReport> reports_;
  std::vector<std::pair<BucketId, visitors::BucketDone>> waiting_;
};

}  // namespace

std::unique_ptr<visitors::Visitor> make_direct_map_visitor(std::shared_ptr<TaskContext> shared,
                                                           visitors::VisitContext& context, TaskSpec spec,
                                                           std::unique_ptr<MapInput> input,
                                                           std::unique_ptr<Application> application) {
  return std::make_unique<DirectMapVisitor>(std::move(shared), context, std::move(spec), std::move(input),
                                            std::move(application));
}

}  // namespace fjord::mapreduce
