#include "column_inputs.h"

#include <numeric>
#include <utility>

namespace fjord::mapreduce {

ColumnInputs::Recording::Recording(ColumnInputs* inputs, BucketId bucket, Accumulator& table) : table_(table) {
  if (inputs == nullptr) return;
  const auto input = inputs->inputs_.find(bucket);
  if (input != inputs->inputs_.end() && input->second.made) table_.record(&*input->second.made);
}

ColumnInputs::Recording::~Recording() { table_.record(nullptr); }

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

Status ColumnInputs::add(const FoundColumns& columns, Accumulator& table, TaskReport& report) {
  const std::uint64_t tuples = table.tuples();
  FJORD_TRY(table.map_columns(columns));
  report.tuples += table.tuples() - tuples;
  shared_->metrics.tuples.add(table.tuples() - tuples);
  return Status::ok();
}

Result<std::shared_ptr<BucketColumns>> ColumnInputs::add_made(Input& input, Accumulator& table, TaskReport& report) {
  auto made = std::make_shared<BucketColumns>(input.made->finish(report.bytes));
  input.made.reset();
  std::vector<std::size_t> places(columns_);
  std::iota(places.begin(), places.end(), 0);
  FJORD_TRY(add({made, std::move(places)}, table, report));
  return made;
}

Status ColumnInputs::limit_memory(BucketId bucket, Accumulator& table, TaskReport& report) {
  constexpr std::size_t kBucketsAtLeast = 8;
  const auto input = inputs_.find(bucket);
  if (input == inputs_.end() || !input->second.made) return Status::ok();
  if (input->second.made->bytes() <= shared_->columns.limit() / kBucketsAtLeast) return Status::ok();
  return add_made(input->second, table, report).status();
}

Status ColumnInputs::end(BucketId bucket, Accumulator& table, TaskReport& report) {
  const auto node = inputs_.extract(bucket);
  if (node.empty()) return Status::ok();
  Input& input = node.mapped();
  if (const auto& found = input.reader->found()) {
    FJORD_TRY(add(*found, table, report));
    report.documents += found->columns->documents;
    report.bytes += found->columns->read_bytes;
    shared_->metrics.in_columns.add(found->columns->documents);
    return Status::ok();
  }
  if (!input.made) return Status::ok();
  FJORD_TRY_ASSIGN(const std::shared_ptr<BucketColumns> columns, add_made(input, table, report));
  if (!input.reader->content() || !report.dead_letters.empty()) return Status::ok();
  columns->content = *input.reader->content();
  lookup_->put(bucket, columns);
  return Status::ok();
}

}  // namespace fjord::mapreduce
