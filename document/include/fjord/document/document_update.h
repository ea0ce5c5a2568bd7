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

/// What an update does to the value it names. The numbers are sent to other nodes: never reuse one. Zero is none.
enum class UpdateAction : std::uint8_t {
  None = 0,
  Assign = 1,  ///< Sets the value, whatever was there.
  Clear = 2,   ///< Unsets a field or member; takes an element or entry out of its collection.
  Add = 3,     ///< Appends to an array; sets weights in a weighted set, entries in a map.
  Remove = 4,  ///< Takes every equal element out of an array; elements, entries by key out of weighted sets and maps.
  Increment = 5,  ///< The arithmetic ones are for numbers: Byte, Int, Long, Float, Double and weights.
  Decrement = 6,
  Multiply = 7,
  Divide = 8,
};

/// "assign", "increment": as in JSON. "none" for what is no action.
std::string_view to_string(UpdateAction action);
inline bool is_arithmetic(UpdateAction action) {
  return action >= UpdateAction::Increment && action <= UpdateAction::Divide;
}

/// One step from a value to one within it.
struct UpdateStep {
  enum class Kind : std::uint8_t { Member = 1, Index = 2, Key = 3 };

  Kind kind = Kind::Member;
  std::uint32_t number = 0;  ///< Member: the id of the struct's field. Index: the position in the array, from 0.
  FieldValue key;            ///< Key: of the map's entry, or the element of the weighted set.

  friend bool operator==(const UpdateStep&, const UpdateStep&) = default;
};

/// One change of one value. What JSON calls "match" is a step of the path.
struct FieldUpdate {
  const Field* field = nullptr;  ///< Of the document type.
  std::vector<UpdateStep> path;  ///< From the field to the value that is changed; empty for the field itself.
  UpdateAction action = UpdateAction::None;
  /// Assign, Add: of the type of the value that is changed (a weight is an Int). Remove: an ArrayValue of the elements
  /// or keys. Arithmetic: a Long or a Double. Clear: none.
  FieldValue operand;

  /// Same field id, path, action and operand.
  friend bool operator==(const FieldUpdate& a, const FieldUpdate& b);
};

/// Changes to some fields of one document, applied one after the other, all or none.
///
/// What is not there counts as empty: Assign, Add and arithmetic make the members, entries and elements on their path
/// (a number that is not set counts as 0), Clear and Remove do nothing. Only positions of arrays must exist; Clear of a
/// position moves those behind it. A collection or struct that becomes empty stays, as an empty one.
///
/// Arithmetic: on integers with an integer operand exact, quotients cut off towards zero; otherwise in Double, cut off
/// towards zero for integers. A result out of the range of the type, one that is not finite, and a division by zero are
/// errors (InvalidField).
///
/// Lifetime: `type` outlives the update, unless keep() was given the DocumentTypeRepo that it came from. A value
/// otherwise; may be read from any thread.
class DocumentUpdate {
 public:
  static constexpr std::size_t kFieldUpdatesMax = 10000;

  DocumentUpdate(const DocumentType& type, DocumentId id) : type_(&type), id_(std::move(id)) {}

  /// Reads {"update": "<id>", "create": true, "fields": {...}}; `create` may be absent, old ids need "type" as in
  /// parse_feed_operation(), which also reads conditions. Members of "fields" are paths and actions, applied in the
  /// order of the text: {"year": {"assign": 1999}, "plays": {"increment": 1}, "charts{no}": {"assign": 1},
  /// "credits[0].name": {"assign": null}, "tags": {"add": ["x"]}, "moods": {"match": {"element": "sad",
  /// "increment": 1}}}. Text: document/FEED.md. Errors: as parse_feed_operation(), with offset and path.
  static Result<DocumentUpdate> from_json(const DocumentTypeRepo& repo, std::string_view json);
  /// The same from what stands in "fields" alone. Errors: as above; InvalidId if `id` names another type.
  static Result<DocumentUpdate> from_json_fields(const DocumentType& type, const DocumentId& id,
                                                 std::string_view json_object);
  /// In one line, what from_json() reads. Errors: InvalidField for infinite and undefined numbers, which JSON lacks.
  Result<std::string> to_json() const;

  /// The form in which updates travel, opaque to who passes them on. Format: document/FORMAT.md.
  std::string encode() const;
  /// Trusts nothing in `bytes`. Errors: Corruption for anything malformed or of an unknown version; UnknownType;
  /// InvalidId; InvalidField for what does not fit the type as `repo` has it.
  static Result<DocumentUpdate> decode(const DocumentTypeRepo& repo, std::string_view bytes);
  /// The document id in what encode() made; empty if there is none.
  static std::string_view id_of(std::string_view bytes);

  const DocumentType& type() const { return *type_; }
  const DocumentId& id() const { return id_; }
  /// The update and its copies keep their type alive from now on.
  void keep(std::shared_ptr<const DocumentTypeRepo> types) { types_ = std::move(types); }
  /// Makes the document if there is none, as if an empty one had been there.
  bool create_if_missing() const { return create_if_missing_; }
  void set_create_if_missing(bool create) { create_if_missing_ = create; }
  const std::vector<FieldUpdate>& updates() const { return updates_; }

  /// Adds a change after those before it. Errors: InvalidField that names path, operand and what was expected; nothing
  /// is added then. TooLarge beyond kFieldUpdatesMax.
  Status add(FieldUpdate update);
  /// The same by path: "year", "charts{no}", "credits[0].name". Arithmetic takes an Int for a Long. Errors: as above.
  Status add(std::string_view path, UpdateAction action, FieldValue operand = {});

  /// True if applying it can add more than a few bytes to the document; false if it only sets, counts and takes away
  /// values of fixed size.
  bool may_grow() const;

  /// The document after the update. `existing` has both parts; null if there is no document. Fields that are not
  /// changed are copied as they are, also those that the type does not know.
  /// Errors: NotFound without a document and create_if_missing(); InvalidField that names field, value and what was
  /// expected; InvalidArgument if `existing` is another document or of another type; Corruption of `existing`.
  Result<EncodedDocument> apply_to(const DocumentView* existing) const;

  /// Same type name, id, create_if_missing and updates.
  friend bool operator==(const DocumentUpdate& a, const DocumentUpdate& b);

 private:
  const DocumentType* type_;
  DocumentId id_;
  bool create_if_missing_ = false;
  std::vector<FieldUpdate> updates_;
  std::shared_ptr<const DocumentTypeRepo> types_;  // may be empty
};

/// Reads a path from JSON, "charts{no}" or "credits[0].name", into `field` and `path` of an update. Keys of strings may
/// stand in double quotes with \" and \\ inside: moods{"a } b"}. Errors: InvalidField with the position in `text`.
Result<FieldUpdate> parse_update_path(const DocumentType& type, std::string_view text);
/// The inverse. `update` fits `type`.
std::string update_path_text(const FieldUpdate& update);

}  // namespace fjord
