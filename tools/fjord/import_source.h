#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csv_reader.h"
#include "feed_source.h"
#include "fjord/document/document_type.h"
#include "input_file.h"
#include "record_source.h"

namespace fjord::cli {

struct ImportOptions {
  std::string type;
  std::string id_field;    ///< Empty: the number of the record, from 1.
  std::string namespace_;  ///< Of the ids; empty: the type's name.
};

/// The rows of a CSV file with a header row as documents. Columns go to the fields of the same name, in any case; the
/// values are what the schema says. An empty cell leaves its field unset, "" is an empty string.
class CsvImport final : public RecordSource {
 public:
  /// Reads the header row. Errors: UnknownType; InvalidField for columns that do not work; InvalidArgument for an
  /// unusable header or a missing id column. `warnings` gets a line for each column that is no field.
  static Result<std::unique_ptr<CsvImport>> open(std::unique_ptr<InputFile> file,
                                                 std::shared_ptr<const DocumentTypeRepo> types,
                                                 const ImportOptions& options, std::vector<std::string>& warnings);

  const std::string& name() const override { return file_->name(); }
  Result<std::optional<Record>> next() override;
  bool failed() const override { return reader_.failed(); }
  double part_read() const override { return file_->part_read(); }
  Result<rpc::Operation> parse(const Record& record) const override;

 private:
  CsvImport(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types, const DocumentType& type,
            const ImportOptions& options);
  Status read_header(std::vector<std::string>& warnings);

  std::unique_ptr<InputFile> file_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  const DocumentType& type_;
  const ImportOptions options_;
  CsvReader reader_;
  std::vector<std::string> columns_;
  std::vector<const Field*> fields_;  ///< By column; null: left out.
  std::size_t id_column_ = 0;
  std::string scratch_;
  std::uint64_t rows_ = 0;
};

/// The lines of a JSONL file, each a flat object of fields, as documents.
class JsonImport final : public FeedSource {
 public:
  /// Errors: UnknownType; InvalidArgument without an id field.
  static Result<std::unique_ptr<JsonImport>> open(std::unique_ptr<InputFile> file,
                                                  std::shared_ptr<const DocumentTypeRepo> types,
                                                  const ImportOptions& options);
  Result<rpc::Operation> parse(const Record& record) const override;

 private:
  JsonImport(std::unique_ptr<InputFile> file, std::shared_ptr<const DocumentTypeRepo> types, const DocumentType& type,
             const ImportOptions& options);
  const DocumentType& type_;
  const ImportOptions options_;
};

/// A field's value from the text of a cell. Errors: InvalidField that names the text and the type.
Result<FieldValue> value_from_text(const DataType& type, const std::string& text);

}  // namespace fjord::cli
