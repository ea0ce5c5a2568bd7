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

/// One field of a document type or of a struct.
struct Field {
  std::string name;
  std::uint32_t id = 0;  ///< stable_id(name)
  std::shared_ptr<const DataType> type;
  bool in_header = false;  ///< Stored in the header part: can be selected on without reading the body. Not for structs.
};

/// The 31-bit number by which wire and files know a field or a document type: a hash of its name, never zero, so it is
/// the same in every deployment and the order of declarations does not matter.
std::uint32_t stable_id(std::string_view name);

/// What values a field can hold. Immutable and shared.
class DataType {
 public:
  /// String to Raw; always the same object for one tag.
  static std::shared_ptr<const DataType> primitive(TypeTag tag);
  static std::shared_ptr<const DataType> array_of(std::shared_ptr<const DataType> element);
  static std::shared_ptr<const DataType> weighted_set_of(std::shared_ptr<const DataType> element);
  static std::shared_ptr<const DataType> map_of(std::shared_ptr<const DataType> key,
                                                std::shared_ptr<const DataType> value);
  /// `fields` have distinct ids.
  static std::shared_ptr<const DataType> struct_of(std::string name, std::vector<Field> fields);

  TypeTag tag() const { return tag_; }
  /// As in a schema: "int", "map<string, array<int>>", a struct's name.
  const std::string& name() const { return name_; }
  /// The elements of an array or weighted set; the values of a map. Null for others.
  const DataType* element() const { return element_.get(); }
  /// The keys of a map. Null for others.
  const DataType* key() const { return key_.get(); }
  /// The fields of a struct in the order declared, inherited ones first; empty for others.
  const std::vector<Field>& fields() const { return fields_; }
  const Field* field(std::string_view name) const;
  const Field* field_by_id(std::uint32_t id) const;

  /// OK if `value` fits this type all the way down. Errors: InvalidField that names the place within the value.
  Status check(const FieldValue& value) const;

 private:
  DataType(TypeTag tag, std::string name) : tag_(tag), name_(std::move(name)) {}

  TypeTag tag_;
  std::string name_;
  std::shared_ptr<const DataType> element_;
  std::shared_ptr<const DataType> key_;
  std::vector<Field> fields_;
};

/// How a part of documents is compressed where it is stored. The schema only says so; storing is done elsewhere, and
/// what was stored before a change of the schema stays as it is.
struct PartCompression {
  enum class Codec : std::uint8_t { None = 0, Lz4 = 1, Zstd = 2 };

  Codec codec = Codec::None;
  int level = 0;                ///< Lz4: 1 to 12, Zstd: 1 to 22; 0: the codec's own default.
  std::uint32_t min_bytes = 0;  ///< Parts of fewer bytes are not compressed.
  /// The compressed form is kept only if it has at most this part of the plain one's bytes, in percent.
  std::uint32_t percent_max = 100;

  friend bool operator==(const PartCompression&, const PartCompression&) = default;
};

/// "none", "lz4", "zstd": as in a schema.
std::string_view to_string(PartCompression::Codec codec);

/// A document type as its schema declares it, with what it inherits. Immutable.
class DocumentType {
 public:
  struct Compression {
    PartCompression header;
    PartCompression body;
  };

  /// `fields` have distinct ids. Schemas make these through DocumentTypeRepo::build().
  DocumentType(std::string name, std::vector<Field> fields, std::vector<std::string> ancestors = {});
  DocumentType(std::string name, std::vector<Field> fields, std::vector<std::string> ancestors, Compression compression,
               std::string keep_while = {});
  DocumentType(const DocumentType&) = delete;
  DocumentType& operator=(const DocumentType&) = delete;

  const std::string& name() const { return name_; }
  std::uint32_t id() const { return id_; }
  /// In the order declared, inherited ones first.
  const std::vector<Field>& fields() const { return fields_; }
  const Field* field(std::string_view name) const;
  const Field* field_by_id(std::uint32_t id) const;
  /// True if this is the type `name` or inherits it.
  bool is_a(std::string_view name) const;
  /// The names of all types that it inherits, directly or not.
  const std::vector<std::string>& ancestors() const { return ancestors_; }
  /// As the schema says; of a type that says nothing, as the first type that it inherits says. Default: none.
  const PartCompression& header_compression() const { return compression_.header; }
  const PartCompression& body_compression() const { return compression_.body; }
  /// A selection: documents for which it is false are garbage, which maintenance removes. Empty: none is. Of a type
  /// that says nothing, that of the first type that it inherits.
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

/// All document types of a deployment. An immutable snapshot, shared between threads; a change of schema makes a new
/// one. Types and fields live as long as the snapshot that they came from.
class DocumentTypeRepo {
 public:
  /// Parses schemas (.sd texts); they may refer to each other in any order. What has no meaning for a document store
  /// is passed over, with one line for each kind of it added to `warnings` (may be null).
  /// Errors: InvalidArgument with text number, line, column, what was expected and what was found; also for two names
  /// with the same id, for a type that is declared twice and for unknown or circular references.
  static Result<std::shared_ptr<const DocumentTypeRepo>> build(std::span<const std::string> sd_texts,
                                                               std::vector<std::string>* warnings = nullptr);

  /// Null if there is no such type.
  const DocumentType* find(std::string_view name) const;
  const DocumentType* find(std::uint32_t id) const;
  /// In the order declared.
  const std::vector<std::unique_ptr<const DocumentType>>& types() const { return types_; }
  /// The texts that build() was given; none for what of() made.
  const std::vector<std::string>& schemas() const { return schemas_; }

  /// Errors: InvalidArgument for two types with one name or with one id.
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
