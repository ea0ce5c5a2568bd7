#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"
#include "fjord/document/timestamp.h"
#include "fjord/library/documents.h"
#include "fjord/library/visit.h"

namespace fjord {

// --- Export

/// What an export does if a file of this name exists.
enum class ExportMode : std::uint8_t {
  New,      ///< The export fails with AlreadyExists.
  Replace,  ///< The export replaces the file.
  Resume,   ///< Continues an interrupted export; begins a new one if there is none.
};

struct ExportProgress {
  double fraction_done = -1;    ///< Fraction of the buckets read, 0 to 1; negative: not known yet.
  std::uint64_t documents = 0;  ///< Documents received, including those of an earlier run of the export.
};

struct ExportOptions {
  std::string selection = {};  ///< "music.year > 1990"; empty: all documents.
  std::string type = {};       ///< Only documents of this type. Required for a CSV file: it has the type's fields.
  std::string fields = {};     ///< "title,year" or a field set such as "[id]"; empty: all.
  ExportMode mode = ExportMode::New;
  Timestamp from{0};                     ///< Only versions written at or after this time.
  Timestamp to{0};                       ///< Only versions written at or before this time; 0: no limit.
  bool snapshot = false;                 ///< Write each bucket as it was at one moment.
  std::optional<VisitSlice> slice = {};  ///< Only this slice, if several programs share the work.
  ClientPriority priority = ClientPriority::Background;
  std::uint32_t visitors_per_node = 4;
  std::uint32_t buckets_per_visitor = 0;     ///< 0: the library chooses.
  std::uint32_t buckets_at_once = 1;         ///< Buckets that one visitor reads at the same time.
  Duration no_progress_limit = seconds(60);  ///< The export fails if nothing arrives for this long.
  /// Called from time to time, on the calling thread.
  std::function<void(const ExportProgress&)> on_progress = {};
  std::stop_token stop = {};  ///< A stop request ends the export as Cancelled; ExportMode::Resume continues it.
};

/// Result of an export.
struct ExportSummary {
  Status status;                          ///< OK: the file is complete.
  std::uint64_t documents = 0;            ///< Documents in the file.
  std::uint64_t bytes = 0;                ///< Size of the file.
  std::uint64_t buckets_done = 0;         ///< Buckets that this run has read.
  std::uint64_t buckets_done_before = 0;  ///< Buckets that an earlier run had read.
  std::uint64_t buckets_repeated = 0;     ///< Number of restarts of a bucket after a failure.
  double seconds = 0;

  explicit operator bool() const { return status.is_ok(); }
};

// --- Import

/// A record that was not stored, or a file that could not be read.
struct ImportFailure {
  std::string file;        ///< Empty if the failure is not of one file.
  std::uint64_t line = 0;  ///< From 1; 0: the failure is of the whole file.
  Status status;
  bool in_doubt = false;  ///< The write was sent, and may have been applied.

  /// Returns "cars.csv:7: INVALID_FIELD: ...".
  std::string to_string() const;
};

struct ImportProgress {
  double fraction_done = -1;  ///< Fraction of the current file, 0 to 1; negative: its size is not known.
  std::uint64_t stored = 0;
  std::uint64_t failed = 0;
};

/// How an import reads its files.
enum class ImportFormat : std::uint8_t {
  /// FILE.csv: rows. FILE.jsonl, FILE.json, FILE.ndjson: objects of fields if ImportOptions::type is set, else a feed.
  /// Any of them also with .gz behind; other names: rows.
  ByName,
  /// Puts, updates and removes as JSON (document/FEED.md), as export_to() writes them.
  Feed,
};

struct ImportOptions {
  ImportFormat format = ImportFormat::ByName;
  /// Type of the documents. Required for rows and objects; their columns and members are fields of this type.
  std::string type = {};
  /// Column or member with the last part of each id, or with whole ids. Empty: the number of the row, from 1.
  std::string id_field = {};
  std::string id_namespace = {};  ///< Namespace of the ids; empty: the name of the type.
  /// Columns of a table that are no fields of the type are left out, with a call of on_warning. If this is not set,
  /// such a file is refused. A file without any column that is a field is always refused.
  bool ignore_unknown = false;
  /// In JSON, take texts with digits for numbers, and numbers for texts, as feeds of other systems have them.
  bool convert_values = false;
  /// Documents that exist stay as they are: their puts are counted in ImportSummary::existing. Other operations of a
  /// feed are refused then.
  bool create_only = false;
  /// File with the position of the import, which it saves every second. If it is there, the import continues behind
  /// that position; at the end the file is removed. For a single file; a record can be written twice, so it is not for
  /// feeds with increments. Empty: none.
  std::string progress_file = {};
  std::size_t in_flight = 0;  ///< Writes in flight at once; 0: the library adapts it.
  ClientPriority priority = ClientPriority::Default;
  Duration timeout{0};  ///< Timeout of one write; 0: the client's timeout.
  /// Called from time to time, on the calling thread.
  std::function<void(const ImportProgress&)> on_progress = {};
  /// Called for each failure, on any thread of the import or the client, one call at a time.
  std::function<void(const ImportFailure&)> on_failure = {};
  /// Called for each column that is left out, on the calling thread.
  std::function<void(const std::string& warning)> on_warning = {};
  std::stop_token stop = {};  ///< A stop request ends the import as Cancelled after the writes in flight.
};

/// Result of an import.
struct ImportSummary {
  Status status;                               ///< OK: the import has read its files to the end.
  std::uint64_t stored = 0;                    ///< Operations that were applied.
  std::uint64_t replaced = 0;                  ///< Puts among them of documents that existed.
  std::uint64_t existing = 0;                  ///< With create_only: puts that were left out, as the document existed.
  std::map<StatusCode, std::uint64_t> failed;  ///< Malformed and refused records and unreadable files, by code.
  std::uint64_t in_doubt = 0;
  std::uint64_t retried = 0;
  std::uint64_t bytes = 0;               ///< Bytes of the documents.
  std::vector<Status> unreadable_files;  ///< One error for each file that could not be opened.
  double seconds = 0;
  double latency_p50_seconds = 0;  ///< Latency of one write.
  double latency_p99_seconds = 0;
  double latency_max_seconds = 0;

  std::uint64_t failed_total() const;
  explicit operator bool() const { return status.is_ok() && in_doubt == 0 && failed.empty(); }
};

}  // namespace fjord
