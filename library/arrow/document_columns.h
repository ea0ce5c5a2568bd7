#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arrow/arrow_memory.h"
#include "arrow/column_builder.h"
#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/timestamp.h"
#include "fjord/library/arrow.h"

namespace fjord {

/// The columns of a visit: "_id", "_version" if wanted, and one for each field.
///
/// Lifetime: keeps the document types of make().
class DocumentColumns {
 public:
  /// The fields of `type` and of types that inherit it, or of all types of users if it is empty; only those in `fields`
  /// if it is not empty. A field that types declare differently is JSON text.
  static std::unique_ptr<DocumentColumns> make(std::shared_ptr<const DocumentTypeRepo> types, const std::string& type,
                                               const std::vector<std::string>& fields, bool version);

  void schema(ArrowSchema* out) const { export_schema(table_, out); }
  /// Appends a row. Errors, after which the columns cannot be used: Corruption, InvalidField.
  Status append(const DocumentView& document, Timestamp version);
  std::size_t rows() const { return id_.rows(); }
  /// Moves the rows out.
  void finish(ArrowArray* out);

 private:
  struct Column {
    std::string name;
    const DataType* type = nullptr;  ///< Null: JSON text.
    std::unique_ptr<ColumnBuilder> builder;
  };
  /// Where the fields of one document type go.
  struct Route {
    FieldRouter router;
    std::vector<std::pair<const Field*, TextBuilder*>> texts;  ///< Fields that become JSON text.
  };

  explicit DocumentColumns(std::shared_ptr<const DocumentTypeRepo> types) : types_(std::move(types)) {}
  void add_field(const Field& field);
  Route make_route(const DocumentType& type);
  static Status append_texts(const Route& route, const DocumentView& document);

  std::shared_ptr<const DocumentTypeRepo> types_;
  bool has_version_ = false;
  TextBuilder id_{TypeTag::String};
  LongBuilder version_;
  std::vector<Column> columns_;
  SchemaNode table_;
  std::map<std::uint32_t, Route> routes_;  ///< By type id.
};

}  // namespace fjord
