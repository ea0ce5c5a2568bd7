#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"

namespace fjord {

class DocumentId;

/// 96-bit hash of a document id: the low 32 bits of DocumentId::location(), then 64 bits of the MD5 of the id string.
/// This is enough to compute the document's bucket with any number of used bits.
struct GlobalId {
  std::array<std::uint8_t, 12> bytes{};

  static GlobalId of(const DocumentId& id);
  /// The inverse of view(). `twelve_bytes` has 12 bytes.
  static GlobalId from_bytes(std::string_view twelve_bytes);

  std::string_view view() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
  /// Returns the low 32 bits of DocumentId::location(). They are bits 0 to 31 of the document's bucket.
  std::uint32_t location_bits() const { return load<std::uint32_t>(0); }
  /// Returns 64 bits of the MD5 of the id, which do not depend on the location. Bits 32 to 57 of this value are bits 32
  /// to 57 of the document's bucket.
  std::uint64_t hash_bits() const { return load<std::uint64_t>(4); }
  /// "gid(0x64000000dd4c4b431749f95f)": the bytes in order.
  std::string to_string() const;

  friend auto operator<=>(const GlobalId&, const GlobalId&) = default;
  /// Compares two words; comparing the array would call memcmp.
  friend bool operator==(const GlobalId& a, const GlobalId& b) {
    return a.hash_bits() == b.hash_bits() && a.location_bits() == b.location_bits();
  }

 private:
  template <typename T>
  T load(std::size_t at) const {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
  }
};

/// The document's bucket with `used_bits` bits, like DocumentId::bucket().
BucketId bucket_of(const GlobalId& gid, unsigned used_bits);

/// The name of a document. Schemes:
///   id:<namespace>:<type>:[n=<uint64>|g=<group>]:<user part>   the namespace may be empty; a group has no ','
///   doc:<namespace>:<user part>   userdoc:<namespace>:<uint64>:<user part>   groupdoc:<namespace>:<group>:<user part>
/// Ids with the same number or group share a location, hence they share a bucket of up to 32 used bits.
///
/// A value: parsed and hashed once, cheap to move, readable from any thread. Its views live until it is moved or
/// destroyed.
class DocumentId {
 public:
  static constexpr std::size_t kBytesMax = 65536;        ///< Maximum length of the whole id string.
  static constexpr std::size_t kPrefixBytesMax = 65280;  ///< Maximum length before the colon of the user part.

  /// An empty id, for members that are set later.
  DocumentId() = default;

  /// Parses an id: UTF-8 without control characters. Errors: InvalidId with the input (shortened), the position and
  /// what was expected there.
  static Result<DocumentId> parse(std::string_view text);

  const std::string& str() const { return text_; }
  bool empty() const { return text_.empty(); }
  std::string_view scheme() const;
  std::string_view namespace_() const { return part(scheme_end_ + 1u, namespace_end_); }
  /// The document type's name; empty in the old schemes, which have none.
  std::string_view type() const { return scheme_ == Scheme::Id ? part(namespace_end_ + 1u, type_end_) : ""; }
  /// Returns the number of an id with n= or of the scheme userdoc.
  std::optional<std::uint64_t> number() const {
    return has_number_ ? std::optional<std::uint64_t>(location_) : std::nullopt;
  }
  /// Returns the group of an id with g= or of the scheme groupdoc.
  std::optional<std::string_view> group() const;
  std::string_view user_part() const { return std::string_view(text_).substr(user_part_); }

  /// Returns the number that decides where the document is kept. It is the number in the id. Without one, it is the
  /// first 8 bytes of the MD5 of the group, else of the user part; in the scheme doc, of the whole id.
  std::uint64_t location() const { return location_; }
  const GlobalId& gid() const { return gid_; }
  /// The document's bucket with `used_bits` bits, at most BucketId::kUsedBitsMax.
  BucketId bucket(unsigned used_bits) const { return bucket_of(gid_, used_bits); }

  friend bool operator==(const DocumentId& a, const DocumentId& b) { return a.text_ == b.text_; }
  friend auto operator<=>(const DocumentId& a, const DocumentId& b) { return a.text_ <=> b.text_; }

 private:
  friend class DocumentIdParser;
  enum class Scheme : std::uint8_t { Id, Doc, UserDoc, GroupDoc };

  std::string_view part(std::size_t begin, std::size_t end) const {
    return begin >= end ? std::string_view() : std::string_view(text_).substr(begin, end - begin);
  }

  std::string text_;
  std::uint64_t location_ = 0;
  GlobalId gid_;
  std::uint16_t scheme_end_ = 0;
  std::uint16_t namespace_end_ = 0;
  std::uint16_t type_end_ = 0;
  std::uint16_t group_begin_ = 0;
  std::uint16_t user_part_ = 0;
  Scheme scheme_ = Scheme::Id;
  bool has_number_ = false;
  bool has_group_ = false;
};

inline std::ostream& operator<<(std::ostream& out, const DocumentId& id) { return out << id.str(); }
inline std::ostream& operator<<(std::ostream& out, const GlobalId& gid) { return out << gid.to_string(); }

}  // namespace fjord

template <>
struct std::hash<fjord::GlobalId> {
  std::size_t operator()(const fjord::GlobalId& gid) const noexcept { return gid.hash_bits(); }
};

template <>
struct std::hash<fjord::DocumentId> {
  std::size_t operator()(const fjord::DocumentId& id) const noexcept { return id.gid().hash_bits(); }
};
