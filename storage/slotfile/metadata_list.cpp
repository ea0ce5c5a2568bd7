#include "metadata_list.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace fjord::slotfile {

namespace {

bool all_zero(const char* bytes, std::size_t size) {
  return std::all_of(bytes, bytes + size, [](char c) { return c == 0; });
}

/// A write that was cut, at any byte, leaves one end of an entry empty.
bool looks_torn(const char* entry) { return entry[0] == 0 || entry[kEntryBytes - 1] == 0; }

bool plausible(const FileHeader& header, const MetaEntry& entry) {
  return entry.header_position + stored_bytes(entry.header_length()) <= header.header_capacity &&
         entry.body_position + stored_bytes(entry.body_length) <= header.body_capacity &&
         slot_of(entry.gid, header.slot_bits) == header.slot;
}

}  // namespace

Result<FileHeader> read_file_header(const RandomAccessFile& file, const std::string& path) {
  std::string area(kHeaderAreaBytes, '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file.read(0, {area.data(), area.size()}));
  area.resize(got);
  Status first_error;
  for (const std::uint64_t offset : kHeaderCopyOffsets) {
    const std::string_view copy =
        offset < area.size() ? std::string_view(area).substr(offset, kHeaderCopyBytes) : std::string_view{};
    Result<FileHeader> header = decode_header_copy(copy);
    if (header) return header;
    if (first_error.is_ok()) first_error = header.error();
  }
  return first_error.with_context(path);
}

Result<MetadataList> MetadataList::read(const RandomAccessFile& file, const FileHeader& header) {
  std::string bytes(header.entry_capacity * kEntryBytes, '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file.read(header.entry_offset(0), {bytes.data(), bytes.size()}));
  return MetadataList(header, std::string_view(bytes).substr(0, got));
}

MetadataList::MetadataList(const FileHeader& header, std::string_view bytes) {
  const std::uint64_t count = std::min<std::uint64_t>(header.entry_capacity, bytes.size() / kEntryBytes);
  for (std::uint64_t i = 0; i < count; ++i) {
    const char* at = bytes.data() + i * kEntryBytes;
    if (all_zero(at, kEntryBytes)) continue;
    const std::uint64_t seed = entry_seed(header.bucket, header.slot, i);
    std::optional<MetaEntry> entry = decode_entry(at, seed);
    const bool intact = entry.has_value();
    if (!intact) entry = repair_entry(at, seed);
    if (entry && plausible(header, *entry)) {
      if (!intact) ++repaired_;
      add_valid(i, *entry);
    } else {
      bad_.push_back(
          {.index = i, .gid = GlobalId::from_bytes({at + 8, GlobalId{}.bytes.size()}), .torn = looks_torn(at)});
    }
  }
  lost_ = used_ - valid_.size();
  // What lies before a valid entry was acknowledged once; what lies behind may be an interrupted write.
  const std::uint64_t valid_end = used_;
  for (Bad& bad : bad_) {
    if (bad.index < valid_end) continue;
    if (bad.torn) {
      ++torn_;
    } else {
      ++lost_;
      used_ = bad.index + 1;
    }
  }
}

void MetadataList::add_valid(std::uint64_t index, const MetaEntry& entry) {
  valid_.push_back({.index = index, .entry = entry});
  used_ = index + 1;
  header_bytes_used_ = std::max(header_bytes_used_, entry.header_position + stored_bytes(entry.header_length()));
  body_bytes_used_ = std::max(body_bytes_used_, entry.body_position + stored_bytes(entry.body_length));
}

std::vector<MetaEntry> MetadataList::newest() const {
  std::unordered_map<GlobalId, std::size_t> newest_of;  // into valid_; its order is not used
  newest_of.reserve(valid_.size());
  std::vector<bool> dropped(valid_.size());
  std::size_t next_bad = 0;
  const auto drop_replaced = [&](std::uint64_t before_index) {
    for (; next_bad < bad_.size() && bad_[next_bad].index < before_index; ++next_bad) {
      const auto found = newest_of.find(bad_[next_bad].gid);
      if (bad_[next_bad].torn || found == newest_of.end()) continue;
      dropped[found->second] = true;
      newest_of.erase(found);
    }
  };
  for (std::size_t i = 0; i < valid_.size(); ++i) {
    drop_replaced(valid_[i].index);
    const auto [at, first] = newest_of.try_emplace(valid_[i].entry.gid, i);
    if (first) continue;
    const bool newer = valid_[i].entry.timestamp_us > valid_[at->second].entry.timestamp_us;
    dropped[newer ? at->second : i] = true;
    if (newer) at->second = i;
  }
  drop_replaced(~std::uint64_t{0});

  std::vector<MetaEntry> result;
  result.reserve(newest_of.size());
  for (std::size_t i = 0; i < valid_.size(); ++i) {
    if (!dropped[i]) result.push_back(valid_[i].entry);
  }
  return result;
}

}  // namespace fjord::slotfile
