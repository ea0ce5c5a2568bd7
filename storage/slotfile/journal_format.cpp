#include "journal_format.h"

#include <cstring>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "slot_file.h"

namespace fjord::slotfile {

namespace {

std::uint64_t place_seed(std::uint64_t segment, std::uint64_t offset) { return mix64(segment + kRecordMagic, offset); }

Status broken_record() { return Status(StatusCode::Corruption, "a record of the journal is malformed"); }

}  // namespace

std::string encode_segment_header(const SegmentHeader& header) {
  std::string out;
  put_fixed<std::uint32_t>(out, kSegmentMagic);
  put_fixed<std::uint16_t>(out, kFormatVersion);
  put_fixed<std::uint16_t>(out, 0);  // feature bits: none
  put_fixed<std::uint64_t>(out, header.number);
  put_fixed<std::uint64_t>(out, header.first_lsn);
  out.resize(kSegmentHeaderBytes - sizeof(std::uint32_t), '\0');
  put_fixed<std::uint32_t>(out, checksum32(out, kSegmentMagic));
  return out;
}

Result<SegmentHeader> decode_segment_header(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderBytes || load_fixed<std::uint32_t>(bytes.data()) != kSegmentMagic) {
    return Status(StatusCode::Corruption, "not a journal segment: the magic number is wrong");
  }
  if (load_fixed<std::uint32_t>(bytes.data() + kSegmentHeaderBytes - 4) !=
      checksum32(bytes.substr(0, kSegmentHeaderBytes - 4), kSegmentMagic)) {
    return Status(StatusCode::Corruption, "the checksum of the segment's header is wrong");
  }
  if (load_fixed<std::uint16_t>(bytes.data() + 4) != kFormatVersion ||
      load_fixed<std::uint16_t>(bytes.data() + 6) != 0) {
    return Status(StatusCode::NotImplemented, "a journal segment of another format version");
  }
  return SegmentHeader{.number = load_fixed<std::uint64_t>(bytes.data() + 8),
                       .first_lsn = load_fixed<std::uint64_t>(bytes.data() + 16)};
}

void append_record_header(std::string& out, const RecordHeader& header, std::uint64_t segment, std::uint64_t offset) {
  const std::size_t begin = out.size();
  put_fixed<std::uint32_t>(out, kRecordMagic);
  put_fixed<std::uint32_t>(out, static_cast<std::uint32_t>(header.type));
  put_fixed<std::uint64_t>(out, header.lsn);
  put_fixed<std::uint32_t>(out, header.meta_bytes);
  put_fixed<std::uint32_t>(out, header.parts_bytes);
  put_fixed<std::uint32_t>(out, header.meta_checksum);
  put_fixed<std::uint64_t>(out, 0);
  put_fixed<std::uint32_t>(out, checksum32(std::string_view(out).substr(begin), place_seed(segment, offset)));
}

std::optional<RecordHeader> decode_record_header(std::string_view bytes, std::uint64_t segment, std::uint64_t offset) {
  if (bytes.size() < kRecordHeaderBytes || load_fixed<std::uint32_t>(bytes.data()) != kRecordMagic) {
    return std::nullopt;
  }
  if (load_fixed<std::uint32_t>(bytes.data() + kRecordHeaderBytes - 4) !=
      checksum32(bytes.substr(0, kRecordHeaderBytes - 4), place_seed(segment, offset))) {
    return std::nullopt;
  }
  RecordHeader header;
  header.type = static_cast<RecordType>(load_fixed<std::uint32_t>(bytes.data() + 4));
  header.lsn = load_fixed<std::uint64_t>(bytes.data() + 8);
  header.meta_bytes = load_fixed<std::uint32_t>(bytes.data() + 16);
  header.parts_bytes = load_fixed<std::uint32_t>(bytes.data() + 20);
  header.meta_checksum = load_fixed<std::uint32_t>(bytes.data() + 24);
  return header;
}

void encode_write_meta(std::uint64_t uid, const MetaEntry& entry, char* into) {
  store_fixed(into, uid);
  store_fixed(into + 8, entry.timestamp_us);
  std::memcpy(into + 16, entry.gid.bytes.data(), entry.gid.bytes.size());
  store_fixed(into + 28, entry.header_length_flags);
  store_fixed(into + 32, entry.body_length_flags);
  store_fixed<std::uint32_t>(into + 36, 0);
}

Result<std::vector<JournalWrite>> decode_writes(std::string_view meta, std::string_view parts) {
  if (meta.size() % kWriteMetaBytes != 0) return broken_record();
  std::vector<JournalWrite> writes;
  writes.reserve(meta.size() / kWriteMetaBytes);
  for (; !meta.empty(); meta.remove_prefix(kWriteMetaBytes)) {
    JournalWrite& write = writes.emplace_back();
    write.uid = load_fixed<std::uint64_t>(meta.data());
    write.entry.timestamp_us = load_fixed<std::uint64_t>(meta.data() + 8);
    write.entry.gid = GlobalId::from_bytes(meta.substr(16, sizeof(write.entry.gid.bytes)));
    write.entry.header_length_flags = load_fixed<std::uint32_t>(meta.data() + 28);
    write.entry.body_length_flags = load_fixed<std::uint32_t>(meta.data() + 32);
    for (const Part part : {Part::Header, Part::Body}) {
      const std::uint64_t length = stored_bytes(write.entry.length(part));
      if (length > parts.size()) return broken_record();
      const std::string_view stored = parts.substr(0, length);
      if (length != 0 && !verify_part(write.entry, part, stored)) return broken_record();
      (part == Part::Header ? write.header : write.body) = stored;
      parts.remove_prefix(length);
    }
  }
  if (!parts.empty()) return broken_record();
  return writes;
}

}  // namespace fjord::slotfile
