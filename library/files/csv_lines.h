#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

namespace fjord {

/// Converts docblocks to CSV rows: a column "_id", then a column for each field. Texts, numbers and bools are written
/// as they are, raw values in base64, and arrays, weighted sets, maps and structs as JSON text. An unset field is an
/// empty cell, an empty text is "". `fjord import` reads this format.
class CsvLines {
 public:
  /// Chooses the columns: the fields of the type and its subtypes, or only the fields in `fields` ("a,b" or "TYPE:a,b")
  /// in that order. Errors: InvalidArgument without a type, or if a field set names no fields; UnknownType;
  /// InvalidField.
  static Result<CsvLines> make(std::shared_ptr<const DocumentTypeRepo> types, const std::string& type,
                               const std::string& fields);

  /// Returns the header row.
  std::string header() const;
  /// Appends a row for each document. Returns the number of rows. Errors: UnknownType, Corruption.
  Result<std::uint64_t> append(const std::string& docblock, std::string& out) const;

 private:
  CsvLines(std::shared_ptr<const DocumentTypeRepo> types, std::vector<std::string> columns)
      : types_(std::move(types)), columns_(std::move(columns)) {}

  std::shared_ptr<const DocumentTypeRepo> types_;
  std::vector<std::string> columns_;  ///< Columns after "_id".
};

}  // namespace fjord
