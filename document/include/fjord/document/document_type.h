#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/value.h"

namespace fjord {

class DataType;

/// The part that documents of a type take in keyword searches. A schema declares it at the one field that is searched
/// or shown: `index: keyword`, `index: group` or `index: ad`.
enum class IndexRole : std::uint8_t { None = 0, Keyword = 1, Group = 2, Ad = 3 };

/// One field of a document type or of a struct.
struct Field {
  std::string name;
  std::uint32_t id = 0;  ///< The value of stable_id(name).
  std::shared_ptr<const DataType> type;
  bool in_header =
      false;  ///< Stored in the header part, so selections need not read the body. Unused for members of structs.
  IndexRole index = IndexRole::None;  ///< None for members of structs.
};

/// The 31-bit id of a field or document type on the wire and in files: a hash of its name, never zero. So the id is the
/// same in every deployment and does not depend on the order of declarations.
std::uint32_t stable_id(std::string_view name);

/// The type of a field's values. Immutable and shared.
class DataType {
 public:
  /// `tag` is String to Raw. Returns the same object each time for the same tag.
  static std::shared_ptr<const DataType> primitive(TypeTag tag);
  static std::shared_ptr<const DataType> array_of(std::shared_ptr<const DataType> element);
  static std::shared_ptr<const DataType> weighted_set_of(std::shared_ptr<const DataType> element);
  static std::shared_ptr<const DataType> map_of(std::shared_ptr<const DataType> key,
                                                std::shared_ptr<const DataType> value);
  /// `fields` have distinct ids.
  static std::shared_ptr<const DataType> struct_of(std::string name, std::vector<Field> fields);

  TypeTag tag() const { return tag_; }
  /// The name in a schema: "int", "map<string, array<int>>", a struct's name.
  const std::string& name() const { return name_; }
  /// The element type of an array or weighted set, or the value type of a map. Null for other types.
  const DataType* element() const { return element_.get(); }
  /// The key type of a map. Null for other types.
  const DataType* key() const { return key_.get(); }
  /// The fields of a struct in the order of declaration, inherited ones first. Empty for other types.
  const std::vector<Field>& fields() const { return fields_; }
  const Field* field(std::string_view name) const;
  const Field* field_by_id(std::uint32_t id) const;

  /// OK if `value` fits this type at every level. Errors: InvalidField that names the place within the value.
  Status check(const FieldValue& value) const;

 private:
  DataType(TypeTag tag, std::string name) : tag_(tag), name_(std::move(name)) {}

  TypeTag tag_;
  std::string name_;
  std::shared_ptr<const DataType> element_;
  std::shared_ptr<const DataType> key_;
  std::vector<Field> fields_;
};

/// How storage compresses a part of documents. This is only the declaration in the schema; the storage engine applies
/// it when it writes. Existing data keeps its compression after a change of the schema.
struct PartCompression {
  enum class Codec : std::uint8_t { None = 0, Lz4 = 1, Zstd = 2 };

  Codec codec = Codec::None;
  int level = 0;                ///< Lz4: 1 to 12, Zstd: 1 to 22; 0: the codec's own default.
  std::uint32_t min_bytes = 0;  ///< Parts of fewer bytes are not compressed.
  /// Maximum size of the compressed form in percent of the plain one. A larger compressed form is not kept.
  std::uint32_t percent_max = 100;

  friend bool operator==(const PartCompression&, const PartCompression&) = default;
};

/// The name in a schema: "none", "lz4", "zstd".
std::string_view to_string(PartCompression::Codec codec);

/// A document type as its schema declares it, including inherited fields. Immutable.
class DocumentType {
 public:
  struct Compression {
    PartCompression header;
    PartCompression body;
  };

  /// `fields` have distinct ids. DocumentTypeRepo::build() makes the types of schemas.
  DocumentType(std::string name, std::vector<Field> fields, std::vector<std::string> ancestors = {});
  DocumentType(std::string name, std::vector<Field> fields, std::vector<std::string> ancestors, Compression compression,
               std::string keep_while = {});
  DocumentType(const DocumentType&) = delete;
  DocumentType& operator=(const DocumentType&) = delete;

  const std::string& name() const { return name_; }
  std::uint32_t id() const { return id_; }
  /// In the order of declaration, inherited fields first.
  const std::vector<Field>& fields() const { return fields_; }
  const Field* field(std::string_view name) const;
  const Field* field_by_id(std::uint32_t id) const;
  /// The field that declares the part of this type in searches; null if it takes no part.
  const Field* indexed_field() const;
  /// True if this is the type `name` or inherits it.
  bool is_a(std::string_view name) const;
  /// The names of all direct and indirect base types.
  const std::vector<std::string>& ancestors() const { return ancestors_; }
  /// The compression that the schema declares, else that of the first base type. Default: none.
  const PartCompression& header_compression() const { return compression_.header; }
  const PartCompression& body_compression() const { return compression_.body; }
  /// A selection. Documents for which it is false are garbage, which maintenance removes. Empty: no document is
  /// garbage. A type without its own selection has that of its first base type.
  const std::string& keep_while() const { return keep_while_; }

 private:
  std::string name_;
  std::uint32_t id_;
  std::vector<Field> fields_;
  std::vector<std::string> ancestors_;
  Compression compression_;
  std::string keep_while_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> index_by_id_;  // sorted
  std::unordered_map<std::string_view, std::uint32_t> index_by_name_;
};

/// Returns the name of the document type that a .sd text declares: the word after the first `document` outside of
/// comments, or else that of the schema around it. A deployed text replaces the stored text with the same name.
/// Errors: InvalidArgument if there is no name.
Result<std::string> schema_name(std::string_view sd_text);

/// A statement without meaning for a document store.
struct SchemaWarning {
  std::size_t text = 0;  ///< The index of its text among those passed to DocumentTypeRepo::build().
  std::string message;   ///< With the place.
};

/// All document types of a deployment: an immutable snapshot, shared between threads. A change of schema makes a new
/// snapshot. Lifetime: types and fields live as long as their snapshot.
class DocumentTypeRepo {
 public:
  /// Parses schemas (.sd texts), which may refer to each other in any order. Statements without meaning for a document
  /// store are skipped; `warnings` (may be null) gets one for each kind of them in a text. Errors: InvalidArgument with
  /// line, column, what was expected and what was found, and the name of the text if there are several; also for two
  /// names with the same id, for a type that is declared twice and for unknown or circular references.
  static Result<std::shared_ptr<const DocumentTypeRepo>> build(std::span<const std::string> sd_texts,
                                                               std::vector<SchemaWarning>* warnings = nullptr);

  /// Null if there is no such type.
  const DocumentType* find(std::string_view name) const;
  const DocumentType* find(std::uint32_t id) const;
  /// In the order of declaration.
  const std::vector<std::unique_ptr<const DocumentType>>& types() const { return types_; }
  /// The texts passed to build(); empty if of() made the repo.
  const std::vector<std::string>& schemas() const { return schemas_; }

  /// Makes a repo of finished types. Errors: InvalidArgument for two types with the same name or id.
  static Result<std::shared_ptr<const DocumentTypeRepo>> of(std::vector<std::unique_ptr<const DocumentType>> types);

 private:
  DocumentTypeRepo() = default;

  static Result<std::shared_ptr<DocumentTypeRepo>> make(std::vector<std::unique_ptr<const DocumentType>> types);

  std::vector<std::string> schemas_;
  std::vector<std::unique_ptr<const DocumentType>> types_;
  std::unordered_map<std::string_view, const DocumentType*> by_name_;
  std::unordered_map<std::uint32_t, const DocumentType*> by_id_;
};

}  // namespace fjord
