#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/status.h"
#include "fjord/document/document.h"
#include "fjord/document/json_conversion.h"
#include "json_node.h"

namespace fjord {

/// Writes values in the wire form while their JSON is read: a handler of JsonEvents. It keeps the encoded values of the
/// objects and arrays that are open, and no tree of the JSON.
///
/// Lifetime: the types outlive it; a name given to key() is valid until the end of the object it belongs to.
class JsonEncoder {
 public:
  /// Encodes an object of fields of `type`; null means "not set".
  JsonEncoder(const DocumentType& type, std::size_t size_hint, JsonValues values);
  /// Encodes a value of `type`.
  JsonEncoder(const DataType& type, JsonValues values);

  bool key(std::string_view name);
  bool scalar(const JsonNode& given);
  bool start(const JsonNode& value);
  bool end();

  /// Returns the error that ended the reading: InvalidField with the offset.
  const Status& status() const { return status_; }
  /// Returns the place of the error within the value: "credits[1].share".
  const std::string& path() const { return path_; }

  /// Appends the fields to the parts of the document. Only at the end of the value.
  void finish(EncodedDocument& document);
  /// Returns the value in the form of encode_value(). Only at the end of the value.
  std::string take() { return std::move(frames_[0].bytes); }

 private:
  struct Member {
    const Field* field;
    std::size_t begin;
    std::size_t size;
    std::uint64_t offset;  ///< Offset in the JSON text.
  };
  /// A key of a map or weighted set.
  struct KeyBytes {
    std::size_t begin;
    std::size_t size;
    std::uint64_t offset;  ///< Offset in the JSON text.
  };
  /// An open object or array. The outermost frame is the whole value.
  struct Frame {
    enum class Kind { Value, Document, Struct, Array, WeightedSet, MapObject, MapEntries, MapEntry };

    Kind kind = Kind::Value;
    const DataType* type = nullptr;  ///< Type of the value; null: a document.
    std::uint64_t offset = 0;        ///< Offset in the JSON text.
    std::uint64_t count = 0;         ///< Number of elements so far.
    std::string bytes;             ///< Encoded elements; of a document and a struct, members in the order of the JSON.
    const Field* field = nullptr;  ///< Field of the member that comes next; null if there is no such field.
    std::string key;               ///< Name of the member that comes next.
    std::vector<Member> members;
    std::vector<KeyBytes> keys;
    std::string entry_key;  ///< Encoded key of a map's entry.
    std::uint64_t entry_key_offset = 0;
    bool has_key = false;
    bool has_value = false;
    int degrees_max = 0;  ///< The next value is a number of degrees, of a position; 0: it is not.

    /// Returns where the next value is written.
    std::string& out() { return kind == Kind::MapEntry && key == "key" ? entry_key : bytes; }
    bool has_fields() const { return kind == Kind::Document || kind == Kind::Struct; }
    /// Returns true if the next value has its length before it.
    bool has_length(const DataType& value) const;
  };

  Frame& top() { return frames_[depth_ - 1]; }
  Frame& push(Frame::Kind kind, const DataType* type, std::uint64_t offset);
  /// Prepares the innermost open frame for the next value, and returns the type that the value must have. Null after an
  /// error, and for a value that is left out.
  const DataType* expect(const JsonNode& value);
  const DataType* expect_member(const JsonNode& value);
  const DataType* expect_keyed(const JsonNode& value);
  bool start_as(const DataType& type, const JsonNode& value);
  /// Writes an encoded value, which consists of the two parts `head` and `bytes`, where expect() has prepared it.
  void place(const DataType& type, std::string_view head, std::string_view bytes, std::uint64_t offset);
  /// Notes that a value was written from `begin` on.
  static void placed(Frame& frame, std::size_t begin, std::uint64_t offset);
  /// Writes the members of a position that a text names.
  bool position(const DataType& type, const JsonNode& text);
  bool degrees(const JsonNode& value);
  bool end_members(Frame& frame);
  bool end_entry(Frame& entry);
  bool check_distinct(Frame& frame);
  /// Notes an error. The lowest `frames` frames tell its place.
  bool fail(Status status, std::size_t frames);

  const JsonValues values_;
  const DocumentType* document_type_ = nullptr;
  std::size_t size_hint_ = 0;
  std::vector<Frame> frames_;  ///< Frames above `depth_` are unused and keep their memory.
  std::size_t depth_ = 0;
  std::string scratch_;
  Status status_;
  std::string path_;
};

}  // namespace fjord
