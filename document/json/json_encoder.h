#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/status.h"
#include "fjord/document/document.h"
#include "json_node.h"

namespace fjord {

/// Writes JSON in the wire form while it is read: a handler of JsonEvents. It holds the encoded values of the objects
/// and arrays that are open, and no tree of the JSON.
///
/// Lifetime: the types outlive it, and the names given to key() the object that they belong to.
class JsonEncoder {
 public:
  /// The value is an object of fields; null means "not set".
  JsonEncoder(const DocumentType& type, std::size_t size_hint);
  /// A value of the type.
  explicit JsonEncoder(const DataType& type);

  bool key(std::string_view name);
  bool scalar(const JsonNode& value);
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
    std::uint64_t offset;  ///< In the JSON.
  };
  /// A key of a map or weighted set.
  struct KeyBytes {
    std::size_t begin;
    std::size_t size;
    std::uint64_t offset;  ///< In the JSON.
  };
  /// An object or array that is open, or, outside of all, the value itself.
  struct Frame {
    enum class Kind { Value, Document, Struct, Array, WeightedSet, MapObject, MapEntries, MapEntry };

    Kind kind = Kind::Value;
    const DataType* type = nullptr;  ///< For Value, what is expected; null: a document.
    std::uint64_t offset = 0;        ///< In the JSON.
    std::uint64_t count = 0;         ///< Elements.
    std::string bytes;             ///< Encoded elements; of a document and a struct, members in the order of the JSON.
    const Field* field = nullptr;  ///< Field of the member that comes next; null if there is no such field.
    std::string key;               ///< Name of the member that comes next.
    std::vector<Member> members;
    std::vector<KeyBytes> keys;
    std::string entry_key;  ///< Encoded key of a map's entry.
    std::uint64_t entry_key_offset = 0;
    bool has_key = false;
    bool has_value = false;

    /// Returns where the next value is written.
    std::string& out() { return kind == Kind::MapEntry && key == "key" ? entry_key : bytes; }
    bool has_fields() const { return kind == Kind::Document || kind == Kind::Struct; }
    /// Returns true if the next value has its length before it.
    bool has_length(const DataType& value) const;
  };

  Frame& top() { return frames_[depth_ - 1]; }
  Frame& push(Frame::Kind kind, const DataType* type, std::uint64_t offset);
  /// Prepares the frame for a value at this place, and returns the type it must have; null after an error, and for a
  /// value that is left out.
  const DataType* expect(const JsonNode& value);
  const DataType* expect_member(const JsonNode& value);
  const DataType* expect_keyed(const JsonNode& value);
  bool start_as(const DataType& type, const JsonNode& value);
  /// Writes an encoded value at the place that expect() has prepared. It consists of two parts.
  void place(const DataType& type, std::string_view head, std::string_view bytes, std::uint64_t offset);
  /// Notes that a value was written from `begin` on.
  static void placed(Frame& frame, std::size_t begin, std::uint64_t offset);
  bool end_members(Frame& frame);
  bool end_entry(Frame& entry);
  bool check_distinct(Frame& frame);
  /// Notes an error whose place is in the lowest `frames` frames.
  bool fail(Status status, std::size_t frames);

  const DocumentType* document_type_ = nullptr;
  std::size_t size_hint_ = 0;
  std::vector<Frame> frames_;  ///< Those above `depth_` keep their memory for the next value.
  std::size_t depth_ = 0;
  std::string scratch_;
  Status status_;
  std::string path_;
};

}  // namespace fjord
