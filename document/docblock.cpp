#include "fjord/document/docblock.h"

#include "fjord/document/document_format.h"

namespace fjord {

void DocBlockBuilder::add_prefix(bool removed, const GlobalId& gid, Timestamp timestamp, std::string_view id) {
  char prefix[1 + sizeof(gid.bytes) + sizeof(timestamp.us) + kVarintBytesMax];
  char* at = prefix;
  *at++ = removed ? '\1' : '\0';
  std::memcpy(at, gid.bytes.data(), sizeof(gid.bytes));
  at += sizeof(gid.bytes);
  store_fixed<std::uint64_t>(at, timestamp.us);
  at = store_varint(at + sizeof(timestamp.us), id.size());
  bytes_.append(prefix, static_cast<std::size_t>(at - prefix));
  bytes_.append(id);
}

void DocBlockBuilder::add(const EntryView& entry) {
  add_prefix(entry.removed, entry.gid, entry.timestamp, entry.removed ? entry.id : std::string_view{});
  put_string(bytes_, entry.header);
  put_string(bytes_, entry.body);
  ++count_;
}

DocBlockBuilder::Parts DocBlockBuilder::add_uninitialized(const GlobalId& gid, Timestamp timestamp,
                                                          std::size_t header_size, std::size_t body_size) {
  add_prefix(false, gid, timestamp, {});
  Parts parts{};
  put_varint(bytes_, header_size);
  parts.header_offset = bytes_.size();
  bytes_.resize(bytes_.size() + header_size);
  put_varint(bytes_, body_size);
  parts.body_offset = bytes_.size();
  bytes_.resize(bytes_.size() + body_size);
  ++count_;
  return parts;
}

void DocBlockBuilder::rewind(std::size_t size, std::size_t count) {
  bytes_.resize(size);
  count_ = count;
}

std::string DocBlockBuilder::take() {
  count_ = 0;
  return std::exchange(bytes_, {});
}

std::optional<EntryView> DocBlockReader::next() {
  if (!reader_.ok() || reader_.at_end()) return std::nullopt;
  EntryView entry;
  entry.removed = (reader_.fixed<std::uint8_t>() & 1U) != 0;
  std::string_view gid = reader_.bytes(entry.gid.bytes.size());
  entry.timestamp = Timestamp{reader_.fixed<std::uint64_t>()};
  entry.id = reader_.string();
  entry.header = reader_.string();
  entry.body = reader_.string();
  if (!reader_.ok()) return std::nullopt;
  std::memcpy(entry.gid.bytes.data(), gid.data(), gid.size());
  if (!entry.removed) entry.id = document_id_of_header(entry.header);
  return entry;
}

}  // namespace fjord
