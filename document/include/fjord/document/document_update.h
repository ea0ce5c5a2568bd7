#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document.h"
#include "fjord/document/document_id.h"
#include "fjord/document/document_type.h"
#include "fjord/document/value.h"

namespace fjord {

/// The effect of an update on the value it names. The numbers are sent to other nodes: never reuse one. Zero stands for
/// no action.
enum class UpdateAction : std::uint8_t {
  None = 0,
  Assign = 1,  ///< Sets the value and replaces an existing one.
  Clear = 2,   ///< Unsets a field or member; removes an element or entry from its collection.
  Add = 3,     ///< Appends to an array; sets weights in a weighted set, entries in a map.
  Remove = 4,  ///< Removes every equal element from an array; elements from a weighted set, entries by key from a map.
  Increment = 5,  ///< Arithmetic works on numbers: Byte, Int, Long, Float, Double and weights.
  Decrement = 6,
  Multiply = 7,
  Divide = 8,
};

/// Name in JSON: "assign", "increment". "none" for other numbers.
std::string_view to_string(UpdateAction action);
inline bool is_arithmetic(UpdateAction action) {
  return action >= UpdateAction::Increment && action <= UpdateAction::Divide;
}

/// One step from a value to a value inside it.
struct UpdateStep {
  enum class Kind : std::uint8_t { Member = 1, Index = 2, Key = 3 };

  Kind kind = Kind::Member;
  std::uint32_t number = 0;  ///< Member: the id of the struct's field. Index: the position in the array, from 0.
  FieldValue key;            ///< Key: the key of the map's entry, or the element of the weighted set.

  friend bool operator==(const UpdateStep&, const UpdateStep&) = default;
};

/// One change of one value. JSON's "match" is a step of the path.
struct FieldUpdate {
  const Field* field = nullptr;  ///< A field of the document type.
  std::vector<UpdateStep> path;  ///< Steps from the field to the changed value; empty for the field itself.
  UpdateAction action = UpdateAction::None;
  /// Assign, Add: a value of the type of the changed value (a weight is an Int). Remove: an ArrayValue of the elements
  /// or keys. Arithmetic: a Long or a Double. Clear: none.
  FieldValue operand;

  /// True if field id, path, action and operand are equal.
  friend bool operator==(const FieldUpdate& a, const FieldUpdate& b);
};

/// Changes to fields of one document, applied in order, all or none.
///
/// Missing values count as empty: Assign, Add and arithmetic create the members, entries and elements on their path (a
/// number that is not set counts as 0). Clear and Remove of missing values do nothing. Only array positions must exist;
/// Clear of a position moves the elements behind it. A collection or struct that becomes empty stays set.
///
/// Arithmetic on integers with an integer operand is exact; quotients are truncated towards zero. All other arithmetic
/// is in Double, and the result is truncated towards zero if the value is an integer. Errors (InvalidField): a result
/// outside the range of the type, a result that is not finite, a division by zero.
///
/// Lifetime: `type` outlives the update, unless keep() was given the type's DocumentTypeRepo. Otherwise a value; may be
/// read from any thread.
class DocumentUpdate {
 public:
  static constexpr std::size_t kFieldUpdatesMax = 10000;

  DocumentUpdate(const DocumentType& type, DocumentId id) : type_(&type), id_(std::move(id)) {}

  /// Reads {"update": "<id>", "create": true, "fields": {...}}. `create` may be absent; ids of the old schemes need
  /// "type" as in parse_feed_operation(), which also reads conditions. Members of "fields" are paths and actions,
  /// applied in the order of the text: {"year": {"assign": 1999}, "plays": {"increment": 1}, "charts{no}": {"assign":
  /// 1}, "credits[0].name": {"assign": null}, "tags": {"add": ["x"]}, "moods": {"match": {"element": "sad",
  /// "increment": 1}}}. Syntax: document/FEED.md. Errors: as parse_feed_operation(), with offset and path.
  static Result<DocumentUpdate> from_json(const DocumentTypeRepo& repo, std::string_view json);
  /// Reads only the value of "fields". An empty id stands for any. Errors: as from_json(); InvalidId for another type.
  static Result<DocumentUpdate> from_json_fields(const DocumentType& type, const DocumentId& id,
                                                 std::string_view json_object);
  /// One line that from_json() can read. Errors: InvalidField for infinite and undefined numbers, which JSON lacks.
  Result<std::string> to_json() const;

  /// The form in which updates travel, opaque to components that only forward it. Format: document/FORMAT.md.
  std::string encode() const;
  /// Checks all of `bytes`. Errors: Corruption for anything malformed or of an unknown version; UnknownType; InvalidId;
  /// InvalidField if a change does not fit the type in `repo`.
  static Result<DocumentUpdate> decode(const DocumentTypeRepo& repo, std::string_view bytes);
  /// The document id in the result of encode(); empty if the bytes hold none.
  static std::string_view id_of(std::string_view bytes);

  const DocumentType& type() const { return *type_; }
  const DocumentId& id() const { return id_; }
  /// Keeps the update's type alive for as long as the update and its copies live.
  void keep(std::shared_ptr<const DocumentTypeRepo> types) { types_ = std::move(types); }
  /// True if the update creates a missing document, as if there were an empty one.
  bool create_if_missing() const { return create_if_missing_; }
  void set_create_if_missing(bool create) { create_if_missing_ = create; }
  const std::vector<FieldUpdate>& updates() const { return updates_; }

  /// Appends a change. Errors, after which nothing is added: InvalidField that names path, operand and what was
  /// expected; TooLarge beyond kFieldUpdatesMax.
  Status add(FieldUpdate update);
  /// Appends a change by path: "year", "charts{no}", "credits[0].name". The operand of arithmetic may be an Int instead
  /// of a Long. Errors: as the other add().
  Status add(std::string_view path, UpdateAction action, FieldValue operand = {});

  /// True if the update can add more than a few bytes to the document. False if it only sets, counts and removes values
  /// of fixed size.
  bool may_grow() const;

  /// Returns the document after the update. `existing` is the document with its header and its body, or null if there
  /// is none. Unchanged fields are copied as they are, also those that the type does not know. Errors: NotFound if
  /// there is no document and create_if_missing() is false; InvalidField with the field, the value and what was
  /// expected; InvalidArgument if `existing` has another id or type; Corruption if the bytes of `existing` are
  /// malformed.
  Result<EncodedDocument> apply_to(const DocumentView* existing) const;

  /// True if type name, id, create_if_missing and updates are equal.
  friend bool operator==(const DocumentUpdate& a, const DocumentUpdate& b);

 private:
  const DocumentType* type_;
  DocumentId id_;
  bool create_if_missing_ = false;
  std::vector<FieldUpdate> updates_;
  std::shared_ptr<const DocumentTypeRepo> types_;  // null if the update does not keep its type alive
};

/// Reads a path from JSON, "charts{no}" or "credits[0].name", into `field` and `path` of an update. String keys may
/// stand in double quotes with \" and \\ inside: moods{"a } b"}. Errors: InvalidField with the position in `text`.
Result<FieldUpdate> parse_update_path(const DocumentType& type, std::string_view text);
/// The inverse of parse_update_path(). `update` fits its type.
std::string update_path_text(const FieldUpdate& update);

}  // namespace fjord
