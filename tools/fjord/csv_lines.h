#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_type.h"

namespace fjord::cli {

/// A cell of a CSV file (RFC 4180), in quotes where it needs them.
std::string csv_cell(std::string_view text);

/// Makes rows of CSV of docblocks: the id in a column "_id", then a column for each field. Texts, numbers, bools and
/// raw values (in base64) are what they are; arrays, weighted sets, maps and structs are JSON text. A field that is not
/// set is an empty cell, and an empty text is "". `fjord import` reads all of that.
class CsvLines {
 public:
  /// The fields of the type and of those that inherit it; or only those that `fields` names ("a,b" or "TYPE:a,b"), in
  /// that order. Errors: InvalidArgument without a type, or for a field set that names no fields; UnknownType;
  /// InvalidField.
  static Result<CsvLines> make(std::shared_ptr<const DocumentTypeRepo> types, const std::string& type,
                               const std::string& fields);

  /// The first line.
  std::string header() const;
  /// Appends a row for each document. Returns how many. Errors: UnknownType, Corruption.
  Result<std::uint64_t> append(const std::string& docblock, std::string& out) const;

 private:
  CsvLines(std::shared_ptr<const DocumentTypeRepo> types, std::vector<std::string> columns)
      : types_(std::move(types)), columns_(std::move(columns)) {}

  std::shared_ptr<const DocumentTypeRepo> types_;
  std::vector<std::string> columns_;  ///< Without "_id".
};

}  // namespace fjord::cli
