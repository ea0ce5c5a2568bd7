#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_id.h"
#include "fjord/document/document_type.h"
#include "fjord/document/value.h"

namespace fjord {

/// The wire form of a document: two parts that are stored and read separately. Format: document/FORMAT.md.
struct EncodedDocument {
  std::string header;
  std::string body;  ///< Empty if no field of the body is set.

  std::size_t size() const { return header.size() + body.size(); }
  friend bool operator==(const EncodedDocument&, const EncodedDocument&) = default;
};

/// A document with owned field values, for building or changing it.
///
/// Lifetime: `type` outlives the document, unless keep() was given the DocumentTypeRepo that it came from.
class Document {
 public:
  Document(const DocumentType& type, DocumentId id) : type_(&type), id_(std::move(id)) {}

  const DocumentType& type() const { return *type_; }
  const DocumentId& id() const { return id_; }
  /// Keeps the document's type alive for as long as the document and its copies live.
  void keep(std::shared_ptr<const DocumentTypeRepo> types) { types_ = std::move(types); }

  /// Sets or replaces a field. Errors: InvalidField if the type has no such field or the value does not fit it.
  Status set(std::string_view field_name, FieldValue value);
  /// `field` belongs to the document's type.
  Status set(const Field& field, FieldValue value);
  /// Null if the field is not set.
  const FieldValue* get(std::string_view field_name) const;
  const FieldValue* get(const Field& field) const;
  bool has(std::string_view field_name) const { return get(field_name) != nullptr; }
  /// The value of a field of kind Int, Long, Byte or Bool. Empty if the field is not set or is of another kind.
  std::optional<std::int64_t> integer(std::string_view field_name) const;
  /// The value of a field of any kind of number, else empty.
  std::optional<double> number(std::string_view field_name) const;
  /// The value of a String field, else empty. Lifetime: a view of the document.
  std::optional<std::string_view> text(std::string_view field_name) const;
  /// Unsets the field. Returns true if it was set.
  bool remove(std::string_view field_name);

  /// The fields that are set, in the order of their ids.
  const std::vector<std::pair<const Field*, FieldValue>>& fields() const { return fields_; }

  /// True if type name, id and fields are equal.
  friend bool operator==(const Document& a, const Document& b);

 private:
  const DocumentType* type_;
  DocumentId id_;
  std::vector<std::pair<const Field*, FieldValue>> fields_;  // sorted by field id
  std::shared_ptr<const DocumentTypeRepo> types_;            // null if keep() was not called
};

EncodedDocument encode(const Document& document);

/// The value of one field, element or member inside the bytes of a document. Lifetime: a view that lives as long as the
/// bytes. Scalars have the size of their kind. The contents of collections and structs are checked when they are read.
struct FieldSlice {
  TypeTag tag = TypeTag::None;
  std::string_view bytes;

  bool is_integer() const;  ///< Int, Long, Byte or Bool
  bool is_number() const;   ///< an integer, Float or Double
  /// The integer value. Float and Double are truncated towards zero and clamped to the range. 0 if the slice holds no
  /// number.
  std::int64_t as_int64() const;
  /// The value of any number; 0 if the slice holds no number.
  double as_double() const;
  bool as_bool() const { return as_int64() != 0; }
  /// The bytes of a String or Raw; empty for other kinds.
  std::string_view as_string_view() const;
  /// A member of a struct. Empty if the member is not set, if the slice is no struct, or if the bytes before the member
  /// are malformed.
  std::optional<FieldSlice> member(std::uint32_t field_id) const;

  /// An owning copy. Errors: Corruption.
  Result<FieldValue> value() const;
};

/// Walks the elements of an array, weighted set or map without copying:
///   for (ElementCursor at(slice); at.next();) use(at.key(), at.value());
class ElementCursor {
 public:
  /// A `collection` that is not an array, weighted set or map has no elements.
  explicit ElementCursor(const FieldSlice& collection);

  /// Steps to the next element; false at the end, and from the first malformed byte on (see ok()).
  bool next();
  /// False after malformed bytes were read.
  bool ok() const { return ok_; }
  /// Number of elements according to the collection's own count.
  std::uint64_t count() const { return count_; }

  /// Index of the current element, from 0.
  std::uint64_t index() const { return index_ - 1; }
  /// Map: the key. Weighted set: the element. Array: empty.
  const FieldSlice& key() const { return key_; }
  /// Map: the value. Array: the element. Weighted set: the weight, as an Int.
  const FieldSlice& value() const { return value_; }

 private:
  std::optional<std::string_view> take(TypeTag tag);

  std::string_view rest_;
  TypeTag key_tag_ = TypeTag::None;
  TypeTag value_tag_ = TypeTag::None;
  std::uint64_t count_ = 0;
  std::uint64_t index_ = 0;
  FieldSlice key_;
  FieldSlice value_;
  bool ok_ = true;
};

/// Walks a sequence of encoded fields: a part of a document, or the bytes of a struct.
class FieldCursor {
 public:
  explicit FieldCursor(std::string_view fields) : rest_(fields) {}

  bool next();
  bool ok() const { return ok_; }
  std::uint32_t field_id() const { return field_id_; }
  const FieldSlice& slice() const { return slice_; }

 private:
  std::string_view rest_;
  std::uint32_t field_id_ = 0;
  FieldSlice slice_;
  bool ok_ = true;
};

/// Reads an encoded document in place, without copies or allocation. Every read stays within the bytes, also if they
/// are malformed.
///
/// Lifetime: the bytes of both parts and the repo outlive the view.
class DocumentView {
 public:
  /// Checks only the header's prefix (version, type, id). A type that `repo` does not know is no error. The body may be
  /// empty if only fields of the header are read. Errors: Corruption.
  static Result<DocumentView> open(const DocumentTypeRepo& repo, std::string_view header, std::string_view body);

  std::string_view id() const { return id_; }
  std::uint32_t type_id() const { return type_id_; }
  /// Null if the repo does not know the type.
  const DocumentType* type() const { return type_; }

  /// Empty if the field is not set, or if the bytes before it are malformed. validate() and document() report malformed
  /// bytes.
  std::optional<FieldSlice> field(const Field& field) const;
  /// Looks the field up by name; also empty if the type has no such field.
  std::optional<FieldSlice> field(std::string_view name) const;
  /// Looks in both parts, also for unknown types.
  std::optional<FieldSlice> field_by_id(std::uint32_t field_id) const;
  bool has_field(const Field& f) const { return field(f).has_value(); }

  /// The parts that were passed to open().
  std::string_view header() const { return header_; }
  std::string_view body() const { return body_fields_; }
  /// The encoded fields of each part, for FieldCursor.
  std::string_view header_fields() const { return header_fields_; }
  std::string_view body_fields() const { return body_fields_; }

  /// An owning copy of the whole document. Errors: Corruption; UnknownType; InvalidField if the type lacks a field.
  Result<Document> document() const;

 private:
  DocumentView() = default;

  std::string_view header_;
  std::string_view id_;
  std::string_view header_fields_;
  std::string_view body_fields_;
  std::uint32_t type_id_ = 0;
  const DocumentType* type_ = nullptr;
};

/// Checks every byte of an encoded document against its type. Errors: UnknownType; InvalidId; InvalidField for a field
/// that the type lacks, that has another type or that is in the wrong part; Corruption for anything malformed.
Status validate(const DocumentTypeRepo& repo, std::string_view header, std::string_view body);

}  // namespace fjord
