#include "column_inputs.h"

#include <utility>

namespace fjord::mapreduce {

ColumnInputs::Recording::Recording(ColumnInputs* inputs, BucketId bucket, Accumulator& table)
    : inputs_(inputs), bucket_(bucket), table_(table) {
  if (inputs_ == nullptr) return;
  const auto input = inputs_->inputs_.find(bucket);
  if (input != inputs_->inputs_.end() && input->second.made) table_.record(&*input->second.made);
}

ColumnInputs::Recording::~Recording() {
  if (inputs_ == nullptr) return;
  table_.record(nullptr);
  const auto input = inputs_->inputs_.find(bucket_);
  if (input != inputs_->inputs_.end()) inputs_->give_up_if_large(input->second);
}

std::unique_ptr<ColumnInputs> ColumnInputs::make(std::shared_ptr<TaskContext> shared,
                                                 const visitors::VisitContext& context, const TaskSpec& spec,
                                                 const MapInput& input, std::vector<std::string> values) {
  if (values.empty() || input.has_rows() || spec.once || shared->columns.limit() == 0) return nullptr;
  return std::unique_ptr<ColumnInputs>(
      new ColumnInputs(std::move(shared), {context.types(), spec.document_type, "", std::move(values)}));
}

ColumnInputs::ColumnInputs(std::shared_ptr<TaskContext> shared, ColumnQuery query)
    : shared_(std::move(shared)),
      columns_(query.values.size()),
      lookup_(std::make_shared<ColumnLookup>(shared_->columns, std::move(query))) {}

std::shared_ptr<visitors::BucketReader> ColumnInputs::make_reader(BucketId bucket) {
  Input& input = inputs_.insert_or_assign(bucket, Input(columns_)).first->second;
  input.reader = std::make_shared<ColumnReader>(lookup_, bucket);
  return input.reader;
}

Status ColumnInputs::end(BucketId bucket, Accumulator& table, TaskReport& report) {
  const auto node = inputs_.extract(bucket);
  if (node.empty()) return Status::ok();
  Input& input = node.mapped();
  if (const auto& found = input.reader->found()) {
    const std::uint64_t documents = found->columns->documents;
    const std::uint64_t tuples = table.tuples();
    FJORD_TRY(table.map_columns(*found));
    report.documents += documents;
    report.bytes += found->columns->read_bytes;
    report.tuples += table.tuples() - tuples;
    shared_->metrics.in_columns.add(documents);
    shared_->metrics.tuples.add(table.tuples() - tuples);
    return Status::ok();
  }
  const bool is_kept = input.made && input.reader->content() && report.dead_letters.empty();
  if (!is_kept) return Status::ok();
  BucketColumns columns = input.made->finish(report.documents, report.bytes);
  columns.version = *input.reader->content();
  lookup_->put(bucket, std::move(columns));
  return Status::ok();
}

void ColumnInputs::give_up_if_large(Input& input) const {
  constexpr std::size_t kBucketsAtLeast = 8;
  if (input.made && input.made->bytes() > shared_->columns.limit() / kBucketsAtLeast) input.made.reset();
}

}  // namespace fjord::mapreduce
