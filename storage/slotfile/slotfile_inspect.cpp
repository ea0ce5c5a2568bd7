#include "fjord/storage/slotfile/slotfile_inspect.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/document/document_format.h"
#include "metadata_list.h"

namespace fjord {

namespace {

using slotfile::FileHeader;
using slotfile::MetadataList;
using slotfile::MetaEntry;
using slotfile::Part;

/// One part of a document, verified. Errors: Corruption, IoError.
Result<std::string> read_part(const RandomAccessFile& file, const FileHeader& header, const MetaEntry& entry,
                              Part part) {
  const std::uint32_t length = part == Part::Header ? entry.header_length() : entry.body_length;
  if (length == 0) return std::string();
  const std::uint64_t offset = part == Part::Header ? header.header_offset() + entry.header_position
                                                    : header.body_offset() + entry.body_position;
  std::string bytes(slotfile::stored_bytes(length), '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file.read(offset, {bytes.data(), bytes.size()}));
  const std::uint64_t seed = slotfile::part_seed(header.bucket, entry.gid, entry.timestamp_us, part);
  const bool right = got == bytes.size() && load_fixed<std::uint32_t>(bytes.data() + length) ==
                                                checksum32(std::string_view(bytes).substr(0, length), seed);
  if (!right) {
    return Status(StatusCode::Corruption, fmt::format("the {} ({} bytes at offset {}) does not verify",
                                                      part == Part::Header ? "header" : "body", length, offset));
  }
  bytes.resize(length);
  return bytes;
}

class SlotfileInspector {
 public:
  SlotfileInspector(const RandomAccessFile& file, const FileHeader& header, SlotfileReport& report)
      : file_(file), header_(header), report_(report) {}

  Status run() {
    FJORD_TRY_ASSIGN(const MetadataList list, MetadataList::read(file_, header_));
    for (const MetaEntry& entry : list.newest()) newest_.emplace(entry.gid, entry.timestamp_us);
    for (const MetadataList::Valid& valid : list.valid()) FJORD_TRY(add(valid));
    for (const MetadataList::Bad& bad : list.bad()) add(bad);
    std::sort(report_.entries.begin(), report_.entries.end(),
              [](const EntryReport& a, const EntryReport& b) { return a.index < b.index; });
    if (list.repaired() != 0) problem(fmt::format("{} metadata entries have a flipped bit", list.repaired()));
    const auto bad = static_cast<std::uint64_t>(std::count_if(
        report_.entries.begin(), report_.entries.end(), [](const auto& e) { return e.state == EntryState::Bad; }));
    if (list.lost() > bad) problem(fmt::format("{} metadata entries are empty before others", list.lost() - bad));
    FJORD_TRY_ASSIGN(const std::uint64_t size, file_.size());
    if (size < header_.file_bytes()) {
      problem(fmt::format("{} bytes are missing at the end", header_.file_bytes() - size));
    }
    return Status::ok();
  }

 private:
  void problem(const std::string& what) { report_.problems.push_back(report_.path + ": " + what); }

  Status add(const MetadataList::Valid& valid) {
    const MetaEntry& entry = valid.entry;
    const auto newest = newest_.find(entry.gid);
    const bool counts = newest != newest_.end() && newest->second == entry.timestamp_us;
    EntryReport report{.index = valid.index,
                       .state = counts ? EntryState::Newest : EntryState::Replaced,
                       .gid = entry.gid,
                       .timestamp_us = entry.timestamp_us,
                       .removed = entry.removed(),
                       .id = {},
                       .header_position = entry.header_position,
                       .header_length = entry.header_length(),
                       .body_position = entry.body_position,
                       .body_length = entry.body_length};
    if (counts) {
      report_.live_bytes += slotfile::kEntryBytes + slotfile::stored_bytes(entry.header_length()) +
                            slotfile::stored_bytes(entry.body_length);
    }
    for (const Part part : {Part::Header, Part::Body}) {
      const Result<std::string> bytes = read_part(file_, header_, entry, part);
      if (!bytes && bytes.error().code() != StatusCode::Corruption) return bytes.error();
      if (!bytes && counts) {
        problem(fmt::format("entry {}, {}: {}", valid.index, entry.gid.to_string(), bytes.error().message()));
      }
      if (bytes && part == Part::Header) report.id = entry.removed() ? *bytes : document_id_of_header(*bytes);
    }
    report_.entries.push_back(std::move(report));
    return Status::ok();
  }

  void add(const MetadataList::Bad& bad) {
    EntryReport report;
    report.index = bad.index;
    report.state = bad.torn ? EntryState::Torn : EntryState::Bad;
    report.gid = bad.gid;
    if (!bad.torn) problem(fmt::format("entry {}: the checksum of the metadata is wrong", bad.index));
    report_.entries.push_back(std::move(report));
  }

  const RandomAccessFile& file_;
  const FileHeader& header_;
  SlotfileReport& report_;
  std::map<GlobalId, std::uint64_t> newest_;
};

void check_slot(const SlotfileReport& slotfile, const slotfile::Manifest& manifest, std::uint32_t slot,
                BucketReport& report) {
  if (!slotfile.problems.empty() && slotfile.entry_capacity == 0 && slotfile.generation == 0) return;  // no header
  if (slotfile.bucket != manifest.bucket || slotfile.generation != manifest.generation || slotfile.slot != slot ||
      slotfile.slot_bits != manifest.slot_bits) {
    report.problems.push_back(slotfile.path + ": the header is that of another slotfile");
  }
}

}  // namespace

std::string_view to_string(EntryState state) {
  switch (state) {
    case EntryState::Newest:
      return "newest";
    case EntryState::Replaced:
      return "replaced";
    case EntryState::Bad:
      return "bad";
    case EntryState::Torn:
      return "torn";
  }
  return "unknown";
}

Result<SlotfileReport> inspect_slotfile(Env& env, const std::string& path) {
  SlotfileReport report;
  report.path = path;
  FJORD_TRY_ASSIGN(auto file, env.open_random_access(path));
  const Result<FileHeader> header = slotfile::read_file_header(*file, path);
  if (!header) {
    if (header.error().code() != StatusCode::Corruption && header.error().code() != StatusCode::NotImplemented) {
      return header.error();
    }
    report.problems.push_back(header.error().message());
    return report;
  }
  report.bucket = header->bucket;
  report.generation = header->generation;
  report.slot = header->slot;
  report.slot_bits = header->slot_bits;
  report.entry_capacity = header->entry_capacity;
  report.header_capacity = header->header_capacity;
  report.body_capacity = header->body_capacity;
  FJORD_TRY(SlotfileInspector(*file, *header, report).run());
  return report;
}

Result<BucketReport> inspect_bucket(Env& env, const std::string& directory) {
  BucketReport report;
  report.directory = directory;
  FJORD_TRY_ASSIGN(const std::vector<std::string> names, env.list_directory(directory));
  const Result<std::string> bytes = read_file(env, directory + "/" + std::string(slotfile::kManifestName));
  const Result<slotfile::Manifest> manifest =
      bytes ? slotfile::decode_manifest(*bytes) : Result<slotfile::Manifest>(bytes.error());
  if (!manifest) report.problems.push_back(directory + ": manifest: " + manifest.error().message());
  if (manifest) {
    report.bucket = manifest->bucket;
    report.generation = manifest->generation;
    report.slot_bits = manifest->slot_bits;
    report.replicas = manifest->replicas;
  }
  std::set<std::uint32_t> slots;
  for (const std::string& name : names) {
    const std::optional<slotfile::SlotfileName> parsed = slotfile::parse_slotfile_name(name);
    const bool other = manifest && parsed &&
                       (parsed->generation != manifest->generation || parsed->slot >= (1U << manifest->slot_bits));
    if (other || name.ends_with(slotfile::kTemporarySuffix)) report.leftovers.push_back(name);
    if (name.ends_with(slotfile::kBadSuffix))
      report.problems.push_back(directory + "/" + name + ": kept as unreadable");
    if (!parsed || other) continue;
    FJORD_TRY_ASSIGN(SlotfileReport slotfile, inspect_slotfile(env, directory + "/" + name));
    if (manifest) check_slot(slotfile, *manifest, parsed->slot, report);
    slots.insert(parsed->slot);
    report.slotfiles.push_back(std::move(slotfile));
  }
  for (std::uint32_t slot = 0; manifest && slot < (1U << manifest->slot_bits); ++slot) {
    if (slots.contains(slot)) continue;
    report.problems.push_back(
        fmt::format("{}/{}: missing", directory, slotfile::slotfile_name(manifest->generation, slot)));
  }
  return report;
}

}  // namespace fjord
