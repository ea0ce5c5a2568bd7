#include "fjord/storage/slotfile/slotfile_inspect.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <set>

#include "fjord/common/coding.h"
#include "fjord/document/document_format.h"
#include "format_v1.h"
#include "inspect_files.h"
#include "inspect_versions.h"
#include "part_codec.h"

namespace fjord {

namespace slotfile {

namespace {

/// A parsed catalog file name. The engine needs no such parser, because it knows the names that it opens.
struct CatalogName {
  unsigned stripe = 0;
  unsigned copy = 0;
};
std::optional<CatalogName> parse_catalog_name(std::string_view name) {
  constexpr unsigned kStripesMost = 256;
  for (unsigned stripe = 0; stripe < kStripesMost; ++stripe) {
    for (const unsigned copy : {0U, 1U}) {
      if (name == catalog_name(stripe, copy)) return CatalogName{.stripe = stripe, .copy = copy};
    }
  }
  return std::nullopt;
}

/// Returns the stripe in a segment's name; nothing for other names.
std::optional<unsigned> stripe_of_journal_name(std::string_view name) {
  constexpr std::string_view kPrefix = "journal-";
  unsigned stripe = 0;
  if (!name.starts_with(kPrefix) || name.size() < kPrefix.size() + 2) return std::nullopt;
  const char* const digits = name.data() + kPrefix.size();
  if (std::from_chars(digits, digits + 2, stripe, 16).ptr != digits + 2) return std::nullopt;
  return parse_journal_name(name, stripe) ? std::optional(stripe) : std::nullopt;
}

std::string id_of(const JournalWrite& write) {
  if (write.entry.compression(Part::Header) == spi::Compression::None) {
    const std::string_view header = write.header.substr(0, write.entry.header_length());
    return std::string(write.entry.removed() ? header : document_id_of_header(header));
  }
  std::string plain;
  const std::string_view stored = write.header.substr(0, write.entry.header_length());
  if (!decompress(stored, write.entry.compression(Part::Header), plain)) return {};
  return std::string(document_id_of_header(plain));
}

EntryReport report_of_write(const JournalWrite& write, std::uint64_t offset) {
  EntryReport report;
  report.offset = offset;
  report.gid = write.entry.gid;
  report.timestamp_us = write.entry.timestamp_us;
  report.removed = write.entry.removed();
  report.id = id_of(write);
  report.header_length = write.entry.header_length();
  report.header_compression = write.entry.compression(Part::Header);
  report.body_length = write.entry.body_length();
  report.body_compression = write.entry.compression(Part::Body);
  return report;
}

/// Inspects all files of one stripe in a folder.
class StripeInspection {
 public:
  StripeInspection(Env& env, const std::string& directory, unsigned stripe, unsigned stripes,
                   const InspectOptions& options, FindingSink& sink)
      : env_(env), directory_(directory), options_(options), sink_(sink), stripes_(stripes) {
    report_.stripe = stripe;
  }

  Status run(const std::vector<std::string>& names) {
    FJORD_TRY(read_catalogs());
    FJORD_TRY(read_journal(names));
    versions_.set_structure(catalog_);
    for (const auto& [uid, gid, timestamp_us] : journal_writes_) versions_.add_write(uid, gid, timestamp_us);
    FJORD_TRY(read_slotfiles(names));
    judge_writes();
    report_.structure = slotfile::report_of(catalog_);
    return Status::ok();
  }
  StripeReport take() { return std::move(report_); }

 private:
  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  Status read_catalogs() {
    std::vector<std::string> missing;
    bool any = false;
    for (const unsigned copy : {0U, 1U}) {
      const std::string path = path_of(catalog_name(report_.stripe, copy));
      const Result<std::string> bytes = read_file(env_, path);
      if (!bytes && bytes.error().code() != StatusCode::NotFound) return bytes.error();
      if (!bytes) {
        missing.push_back(path);
        continue;
      }
      any = true;
      Result<LoadedCatalog> loaded = decode_catalog(*bytes, report_.stripe);
      if (!loaded) {
        sink_.problem(path, 0, loaded.error().message());
        continue;
      }
      report_.catalogs.push_back({.path = path,
                                  .stripes = loaded->stripes,
                                  .lsn = loaded->catalog.lsn,
                                  .first_segment = loaded->catalog.first_segment,
                                  .structure = slotfile::report_of(loaded->catalog)});
      if (found_ && loaded->catalog.lsn <= catalog_.lsn) continue;
      found_ = true;
      stripes_ = loaded->stripes;
      catalog_ = std::move(loaded->catalog);
    }
    // A new engine has not written a catalog yet, so two missing copies are no problem.
    for (const std::string& path : missing) {
      if (any) sink_.problem(path, 0, "this copy of the catalog is missing");
    }
    return Status::ok();
  }

  Status read_journal(const std::vector<std::string>& names) {
    const std::uint64_t known_lsn = catalog_.lsn;
    std::vector<std::uint64_t> numbers;
    for (const std::string& name : names) {
      if (const auto number = parse_journal_name(name, report_.stripe)) numbers.push_back(*number);
    }
    JournalCursor cursor;
    std::uint64_t expected = found_ ? catalog_.first_segment : 0;
    for (const std::uint64_t number : numbers) {
      const std::string path = path_of(journal_name(report_.stripe, number));
      if (found_ && number < catalog_.first_segment) {
        FJORD_TRY_ASSIGN(const auto file, env_.open_random_access(path));
        SegmentReport& spare = report_.segments.emplace_back();
        spare.path = path;
        spare.number = number;
        spare.needed = false;
        FJORD_TRY_ASSIGN(spare.bytes, file->size());
        continue;
      }
      for (; expected != 0 && expected < number; ++expected) {
        sink_.problem(path_of(journal_name(report_.stripe, expected)), 0, "this segment of the journal is missing");
      }
      expected = number + 1;
      std::vector<std::vector<EntryReport>> writes;
      const auto visit = [&](const FoundRecord& found) {
        if (found.edit && found.header.lsn > known_lsn) catalog_.apply(*found.edit, found.header.lsn);
        std::vector<EntryReport>& of_record = writes.emplace_back();
        for (const JournalWrite& write : found.writes) {
          journal_writes_.emplace_back(write.uid, write.entry.gid, write.entry.timestamp_us);
          if (options_.entries) of_record.push_back(report_of_write(write, found.offset));
        }
      };
      FJORD_TRY_ASSIGN(SegmentReport segment,
                       inspect_segment(env_, path, number, number == numbers.back(), cursor, sink_, visit));
      for (std::size_t i = 0; i < writes.size(); ++i) segment.records[i].writes = std::move(writes[i]);
      report_.segments.push_back(std::move(segment));
    }
    cursor.finish(sink_);
    return Status::ok();
  }

  Status read_slotfiles(const std::vector<std::string>& names) {
    std::set<std::uint32_t> there;
    std::vector<SlotfileInspection> files;
    for (const std::string& name : names) {
      const std::optional<std::uint32_t> number = parse_slotfile_name(name);
      if (!number || *number % stripes_ != report_.stripe) continue;
      there.insert(*number);
      const bool known = versions_.is_referred_to(*number);
      if (found_ && !known) {
        sink_.note(path_of(name), 0, "nothing refers to this file; it is removed at the next start");
        continue;
      }
      // Without a catalog it is unknown which bytes count, so each entry is checked by itself.
      const std::optional<std::uint64_t> counted = found_ ? std::optional(catalog_.file_sizes[*number]) : std::nullopt;
      SlotfileInspection& file = files.emplace_back(path_of(name), *number, counted, sink_);
      FJORD_TRY(file.read_entries(env_));
      file.for_each([&](const MetaEntry& entry) { versions_.add_entry(*number, entry); });
    }
    for (const std::uint32_t number : versions_.referred_to()) {
      if (!there.contains(number)) sink_.problem(path_of(slotfile_name(number)), 0, "this slotfile is missing");
    }
    for (SlotfileInspection& file : files) {
      const auto judge = [&](EntryReport& report, const MetaEntry& entry) {
        versions_.judge(file.number(), entry, report);
      };
      FJORD_TRY(file.read_parts(env_, judge, options_.entries));
      report_.slotfiles.push_back(file.take());
    }
    if (!report_.catalogs.empty()) versions_.compare_with_catalog(report_.catalogs.front().path, sink_);
    return Status::ok();
  }

  /// Sets the states of the writes, in the order in which they were read.
  void judge_writes() {
    std::size_t at = 0;
    for (SegmentReport& segment : report_.segments) {
      for (RecordReport& record : segment.records) {
        for (EntryReport& write : record.writes) versions_.judge_write(std::get<0>(journal_writes_[at++]), write);
      }
    }
  }

  Env& env_;
  const std::string& directory_;
  const InspectOptions& options_;
  FindingSink& sink_;
  StripeReport report_;
  bool found_ = false;  ///< True if a readable catalog exists.
  unsigned stripes_;
  Catalog catalog_;
  std::vector<std::tuple<std::uint64_t, GlobalId, std::uint64_t>> journal_writes_;
  NewestVersions versions_;
};

void note_other_names(const std::string& directory, const std::vector<std::string>& names, FindingSink& sink) {
  for (const std::string& name : names) {
    if (name.ends_with(kTemporarySuffix)) sink.note(directory + "/" + name, 0, "a file that was being written");
    if (!v1::parse_bucket_name(std::string_view(name).substr(0, 16))) continue;
    const std::string_view suffix = std::string_view(name).substr(16);
    if (suffix.empty()) {
      sink.note(directory + "/" + name, 0, "a bucket of format version 1, taken over at the next start");
    } else if (suffix == ".imported") {
      sink.note(directory + "/" + name, 0,
                "a bucket of format version 1 that was taken over; removed at the next start");
    } else if (suffix == ".damaged") {
      sink.note(directory + "/" + name, 0, "kept: parts of this bucket of format version 1 could not be taken over");
    }
  }
}

Status read_one_catalog(Env& env, const std::string& path, CatalogName name, StripeReport& stripe, FindingSink& sink) {
  FJORD_TRY_ASSIGN(const std::string bytes, read_file(env, path));
  stripe.stripe = name.stripe;
  const Result<LoadedCatalog> loaded = decode_catalog(bytes, name.stripe);
  if (!loaded) {
    sink.problem(path, 0, loaded.error().message());
    return Status::ok();
  }
  stripe.structure = report_of(loaded->catalog);
  stripe.catalogs.push_back({.path = path,
                             .stripes = loaded->stripes,
                             .lsn = loaded->catalog.lsn,
                             .first_segment = loaded->catalog.first_segment,
                             .structure = stripe.structure});
  return Status::ok();
}

Status read_one_segment(Env& env, const std::string& path, std::optional<unsigned> stripe_of_name,
                        std::string_view name, const InspectOptions& options, StripeReport& stripe, FindingSink& sink) {
  std::optional<std::uint64_t> number;
  if (stripe_of_name) number = parse_journal_name(name, *stripe_of_name);
  stripe.stripe = stripe_of_name.value_or(0);
  std::vector<std::vector<EntryReport>> writes;
  const auto visit = [&](const FoundRecord& found) {
    std::vector<EntryReport>& of_record = writes.emplace_back();
    for (const JournalWrite& write : found.writes) {
      if (options.entries) of_record.push_back(report_of_write(write, found.offset));
    }
  };
  JournalCursor cursor;
  FJORD_TRY_ASSIGN(SegmentReport segment, inspect_segment(env, path, number, true, cursor, sink, visit));
  cursor.finish(sink);
  for (std::size_t i = 0; i < writes.size(); ++i) segment.records[i].writes = std::move(writes[i]);
  stripe.segments.push_back(std::move(segment));
  return Status::ok();
}

Status read_one_slotfile(Env& env, const std::string& path, std::string_view name, const InspectOptions& options,
                         StripeReport& stripe, FindingSink& sink) {
  SlotfileInspection file(path, parse_slotfile_name(name), std::nullopt, sink);
  FJORD_TRY(file.read_entries(env));
  NewestVersions versions;  // The object gets no structure, so entries are compared by document id alone.
  file.for_each([&](const MetaEntry& entry) { versions.add_entry(file.number(), entry); });
  const auto judge = [&](EntryReport& report, const MetaEntry& entry) { versions.judge(file.number(), entry, report); };
  FJORD_TRY(file.read_parts(env, judge, options.entries));
  stripe.slotfiles.push_back(file.take());
  return Status::ok();
}

}  // namespace

}  // namespace slotfile

std::string to_string(const InspectFinding& finding) {
  return fmt::format("{}: offset {}: {}", finding.path, finding.offset, finding.what);
}

std::string_view to_string(EntryState state) {
  switch (state) {
    case EntryState::Newest:
      return "newest";
    case EntryState::Replaced:
      return "replaced";
    case EntryState::Forgotten:
      return "forgotten";
    case EntryState::Unused:
      return "unused";
    case EntryState::Void:
      return "void";
    case EntryState::Bad:
      return "bad";
  }
  return "unknown";
}

std::uint64_t StoreReport::problem_count() const {
  return static_cast<std::uint64_t>(std::count_if(findings.begin(), findings.end(), [](const InspectFinding& finding) {
    return finding.severity == InspectFinding::Severity::Problem;
  }));
}

Result<StoreReport> inspect_store(Env& env, const std::string& directory, const InspectOptions& options) {
  StoreReport report;
  report.path = directory;
  slotfile::FindingSink sink(report.findings);
  FJORD_TRY_ASSIGN(const std::vector<std::string> names, env.list_directory(directory));
  std::set<unsigned> stripes;
  bool slotfiles = false;
  for (const std::string& name : names) {
    if (const auto catalog = slotfile::parse_catalog_name(name)) stripes.insert(catalog->stripe);
    if (const auto stripe = slotfile::stripe_of_journal_name(name)) stripes.insert(*stripe);
    slotfiles = slotfiles || slotfile::parse_slotfile_name(name);
  }
  if (stripes.empty() && slotfiles) stripes.insert(0);
  const unsigned stripe_count = stripes.empty() ? 1 : std::bit_ceil(*stripes.rbegin() + 1);
  for (const unsigned stripe : stripes) {
    slotfile::StripeInspection inspection(env, directory, stripe, stripe_count, options, sink);
    FJORD_TRY(inspection.run(names));
    report.stripes.push_back(inspection.take());
  }
  slotfile::note_other_names(directory, names, sink);
  return report;
}

Result<StoreReport> inspect_store_file(Env& env, const std::string& path, const InspectOptions& options) {
  StoreReport report;
  report.path = path;
  slotfile::FindingSink sink(report.findings);
  const std::string name = path.substr(path.find_last_of('/') + 1);
  FJORD_TRY_ASSIGN(const auto file, env.open_random_access(path));
  std::array<char, sizeof(std::uint32_t)> head{};
  FJORD_TRY(file->read(0, head).status());
  const auto magic = load_fixed<std::uint32_t>(head.data());
  const auto catalog = slotfile::parse_catalog_name(name);
  const auto journal = slotfile::stripe_of_journal_name(name);
  StripeReport stripe;
  if (catalog) {
    FJORD_TRY(slotfile::read_one_catalog(env, path, *catalog, stripe, sink));
  } else if (journal || magic == slotfile::kSegmentMagic) {
    FJORD_TRY(slotfile::read_one_segment(env, path, journal, name, options, stripe, sink));
  } else if (slotfile::parse_slotfile_name(name) || magic == slotfile::kSlotfileMagic) {
    FJORD_TRY(slotfile::read_one_slotfile(env, path, name, options, stripe, sink));
  } else {
    return Status(StatusCode::InvalidArgument, path + ": neither a catalog, a journal segment nor a slotfile");
  }
  report.stripes.push_back(std::move(stripe));
  return report;
}

}  // namespace fjord
