#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csv_reader.h"
#include "feed_source.h"
#include "fjord/document/document_type.h"
#include "fjord/library/detail/input_file.h"
#include "record_source.h"

namespace fjord {

struct RowOptions {
  std::string type = {};
  std::string id_field = {};              ///< Field with the document's name; empty: the number of the record, from 1.
  std::string namespace_ = {};            ///< Namespace of the ids; empty: the type's name.
  bool ignore_unknown = false;            ///< Columns without a field are left out; otherwise such a table is refused.
  JsonValues values = JsonValues::Exact;  ///< What rows of JSON may have.
};

/// Turns the rows of a CSV file with a header row into documents. A column sets the field of the same name, or of one
/// that differs in case only if no column has that very name; the schema determines the type of the value. An empty
/// cell leaves its field unset; "" is an empty string.
class CsvImport final : public RecordSource {
 public:
  /// Reads the header row. Adds a line to `warnings` for each column that is left out. Errors: UnknownType;
  /// InvalidField for unusable columns; InvalidArgument for an unusable header or a missing id column.
  static Result<std::unique_ptr<CsvImport>> open(std::unique_ptr<InputFile> file,
                                                 std::shared_ptr<const DocumentTypeRepo> types,
                                                 const RowOptions& options, std::vector<std::string>& warnings);

  const std::string& name() const override { return file_->name(); }
  Result<std::optional<FileRecord>> next() override;
  bool failed() const override { return reader_.failed(); }
  double part_read() const override { return file_->part_read(); }
  Result<rpc::Operation> parse(const FileRecord& record) const override;

 private:
  CsvImport(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types, const DocumentType& type,
            const RowOptions& options);
  Status read_header(std::vector<std::string>& warnings);
  Status check_columns() const;
  /// The column of this name, or the first one that differs from it in the case of letters only.
  std::optional<std::size_t> find_column(const std::string& name) const;
  /// The field that a column sets, by the same rule; null if it is none.
  const Field* field_of(const std::string& column) const;

  std::unique_ptr<InputFile> file_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  const DocumentType& type_;
  const RowOptions options_;
  CsvReader reader_;
  std::vector<std::string> columns_;
  std::vector<const Field*> fields_;  ///< Field of each column; null: the column is ignored.
  std::size_t id_column_ = 0;
  std::string scratch_;
  std::uint64_t rows_ = 0;
};

/// Turns the lines of a JSONL file, each a flat object of fields, into documents.
class JsonImport final : public FeedSource {
 public:
  /// Errors: UnknownType; InvalidArgument without an id field.
  static Result<std::unique_ptr<JsonImport>> open(std::unique_ptr<InputFile> file,
                                                  std::shared_ptr<const DocumentTypeRepo> types,
                                                  const RowOptions& options);
  Result<rpc::Operation> parse(const FileRecord& record) const override;

 private:
  JsonImport(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types, const DocumentType& type,
             const RowOptions& options);
  const DocumentType& type_;
  const RowOptions options_;
};

/// Parses the text of a cell as a field value. Errors: InvalidField that names the text and the type.
Result<FieldValue> value_from_text(const DataType& type, const std::string& text);

}  // namespace fjord
