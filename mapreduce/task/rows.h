#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accumulator.h"
#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/selection.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "sink_pump.h"
#include "task.h"

/// Rows of a pass as input of the next pass, and as lasting documents.
namespace fjord::mapreduce {

/// Converts a row to a document of `type`, which check_row_target() has accepted. Errors: Corruption if `row` is
/// malformed; InvalidField for a value that its field does not hold.
Result<EncodedDocument> row_document(const std::vector<AggregateColumn>& columns, const DocumentType& type,
                                     const DocumentId& id, std::string_view row);

/// Returns the fields of a row as a JSON object with all columns that have a value. Errors: Corruption.
Result<std::string> row_fields(const std::vector<AggregateColumn>& columns, std::string_view row);

/// Returns the id of the document that a row is stored as. Errors: InvalidId.
Result<DocumentId> row_target_id(const rpc::RowTarget& into, std::string_view key);

/// row_operation() makes the put of a row as a lasting document (spec.into), result_operation() the put of a result.
/// Errors: as row_document(); InvalidId.
Result<SinkOperation> row_operation(const TaskSpec& spec, const Application& application, const DocumentTypeRepo& types,
                                    std::string_view key, std::string_view row);
Result<SinkOperation> result_operation(const TaskSpec& spec, const DocumentTypeRepo& types, const std::string& id,
                                       std::string_view key, std::string value);

/// Collects rows into a page, the content of a tuple document.
class RowPage {
 public:
  void add(std::string_view key, std::string_view row);
  std::size_t bytes() const { return tuples_.size(); }
  bool is_empty() const { return tuples_.empty(); }
  std::string take() { return std::exchange(tuples_, {}); }

 private:
  std::string tuples_;
};

/// Makes the document of a page and stores its id in `id`. Errors: those of Document::set().
Result<EncodedDocument> page_document(const TaskSpec& spec, const DocumentTypeRepo& types, bool is_whole,
                                      std::uint32_t destination, std::uint32_t counter, std::string page,
                                      std::string& id);

/// Reads the rows of the pass before as documents of the type "row".
///
/// Threading: confined. Lifetime: the views passed to `take` are valid during the call.
class RowReader {
 public:
  /// Errors: InvalidSelection.
  static Result<std::unique_ptr<RowReader>> open(const TaskSpec& spec, std::shared_ptr<const DocumentTypeRepo> types);

  using Take = std::function<Status(std::size_t bytes, bool is_selected, const DocumentView& row)>;
  /// Calls `take` for each row of `page`, a tuple document. Errors: Corruption; those of `take`.
  Status for_each(const DocumentView& page, const Take& take) const;

 private:
  RowReader() = default;

  std::shared_ptr<const DocumentTypeRepo> types_;
  const DocumentType* type_ = nullptr;
  std::vector<AggregateColumn> columns_;
  Selection selection_;
};

}  // namespace fjord::mapreduce
