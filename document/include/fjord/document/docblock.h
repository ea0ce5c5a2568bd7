#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/coding.h"
#include "fjord/document/document_id.h"
#include "fjord/document/timestamp.h"

namespace fjord {

/// One version of a document, or the record of its removal at `timestamp`. Lifetime: the views point into the caller's
/// bytes.
struct EntryView {
  GlobalId gid;
  Timestamp timestamp;
  bool removed = false;
  std::string_view id;      ///< The document id; kept for removed entries too.
  std::string_view header;  ///< Wire form, see document/FORMAT.md; empty if removed.
  std::string_view body;
};

/// Builds a docblock: the entries of one bucket, concatenated in one string. So a block travels from a file to a client
/// or a map function without being parsed on the way. Layout of an entry:
///
///     flags:u8 (1 = removed) gid:12 timestamp:u64 id_length:varint id header_length:varint header body_length:varint
///     body
///
/// The id is empty for documents, because their header part holds it.
class DocBlockBuilder {
 public:
  void add(const EntryView& entry);
  /// add_uninitialized() adds an entry whose parts have the given sizes, and returns the offsets where the caller
  /// writes header and body. So a file can be read straight into the block.
  struct Parts {
    std::size_t header_offset;
    std::size_t body_offset;
  };
  Parts add_uninitialized(const GlobalId& gid, Timestamp timestamp, std::size_t header_size, std::size_t body_size);
  /// Drops all entries added since `size()` was `size` and `count()` was `count`.
  void rewind(std::size_t size, std::size_t count);

  char* data() { return bytes_.data(); }
  std::string_view bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  std::size_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::string take();

 private:
  void add_prefix(bool removed, const GlobalId& gid, Timestamp timestamp, std::string_view id);

  std::string bytes_;
  std::size_t count_ = 0;
};

/// Walks the entries of a docblock. `next` returns nothing at the end or at malformed bytes; `ok` is false in the
/// second case.
/// Lifetime: views point into the block.
class DocBlockReader {
 public:
  explicit DocBlockReader(std::string_view block) : reader_(block) {}
  std::optional<EntryView> next();
  bool ok() const { return reader_.ok(); }
  /// Bytes of the block after the entry that `next` returned last.
  std::size_t remaining() const { return reader_.remaining(); }

 private:
  ByteReader reader_;
};

}  // namespace fjord
