#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arrow/column_reader.h"
#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_id.h"

namespace fjord {

/// Makes documents of one type from the rows of a table.
///
/// Threading: one thread. Lifetime: a batch that was set must live until the next one is set; the types outlive the
/// encoder.
class RowEncoder {
 public:
  /// Adds a line to `warnings` for each column that is no field. `id_column` is the position of the column with the
  /// ids, which is a field only if the type declares it. Errors: InvalidField for a column whose type does not fit its
  /// field.
  static Result<std::unique_ptr<RowEncoder>> make(const ArrowSchema& table, const DocumentTypeRepo& types,
                                                  const DocumentType& type, std::int64_t id_column,
                                                  std::vector<std::string>& warnings);
  /// Errors: InvalidArgument for a batch that does not have the form of the table.
  Status set(const ArrowArray& batch);
  /// `id` is that of a document of the type. Errors: InvalidField that names the column; InvalidId for a wrong id,
  /// which is noticed only if there is a column of JSON.
  Result<EncodedDocument> encode(std::int64_t row, std::string_view id) const;

 private:
  struct Column {
    const Field* field;
    std::int64_t child;
    bool is_json;  ///< A text that is the field's value as JSON.
    std::unique_ptr<ColumnReader> reader;
  };
  RowEncoder(const DocumentTypeRepo& types, const DocumentType& type) : types_(types), type_(type) {}
  Status add(const ArrowSchema& column, std::int64_t child, std::int64_t id_column, std::vector<std::string>& warnings);
  Status append_value(const Column& column, std::int64_t row, std::string_view id, std::string& out) const;

  const DocumentTypeRepo& types_;
  const DocumentType& type_;
  std::vector<Column> columns_;  ///< By rising id of the field.
  std::int64_t offset_ = 0;
};

}  // namespace fjord
