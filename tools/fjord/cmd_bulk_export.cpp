#include <chrono>
#include <functional>
#include <limits>
#include <unistd.h>

#include "commands.h"
#include "csv_lines.h"
#include "document_lines.h"
#include "end_signal.h"
#include "export_file.h"
#include "json_text.h"
#include "parquet.h"
#include "progress.h"
#include "visit_run.h"

namespace fjord::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto kSaveInterval = std::chrono::seconds(1);

Result<VisitRunOptions> visit_options(const ExportArgs& args, const DocumentQuery& query, std::int64_t now_us) {
  VisitRunOptions run;
  run.session.selection = query.selection;
  run.session.field_set = query.field_set;
  run.session.no_progress_limit = args.common.timeout();
  run.session.follow_bits = true;
  run.session.snapshot = args.snapshot;
  run.session.visitors_per_node = args.visitors_per_node;
  run.session.buckets_per_visitor = args.buckets_per_visitor;
  run.session.buckets_at_once = args.buckets_at_once;
  run.session.priority = args.priority == "high"     ? rpc::Priority::High
                         : args.priority == "normal" ? rpc::Priority::Normal
                                                     : rpc::Priority::Background;
  if (!args.from.empty()) {
    FJORD_TRY_ASSIGN(run.session.from, parse_time(args.from, now_us));
  }
  if (!args.to.empty()) {
    FJORD_TRY_ASSIGN(run.session.to, parse_time(args.to, now_us));
  }
  if (!args.slice.empty()) {
    FJORD_TRY_ASSIGN(run.session.slice, parse_slice(args.slice));
  }
  return run;
}

enum class Format { Lines, Csv, Parquet };

/// Returns the format of the name's ending. Errors: InvalidArgument.
Result<Format> format_of(const std::string& path) {
  if (is_parquet(path)) return Format::Parquet;
  std::string_view name = path;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".jsonl") || name.ends_with(".json") || name.ends_with(".ndjson")) return Format::Lines;
  if (name.ends_with(".csv")) return Format::Csv;
  return Status(StatusCode::InvalidArgument,
                path + ": the ending says the format; expected .jsonl, .csv (both also with .gz) or .parquet");
}

/// Appends a converted docblock to the text. Returns the number of documents.
using Lines = std::function<Result<std::uint64_t>(const std::string& docblock, std::string& text)>;

std::string summary(const ExportFile& file, const VisitRun& run, double seconds) {
  const visitors::VisitProgress progress = run.progress();
  JsonText json;
  json.begin_object().key("documents").number(file.documents()).key("bytes").number(file.bytes());
  json.key("buckets").number(progress.buckets_done).key("buckets_done_before").number(progress.skipped_as_done);
  json.key("buckets_repeated").number(progress.buckets_repeated);
  return json.key("seconds").real(seconds, 3).end_object().str();
}

/// Writes lines of JSON or CSV to `path`. SIGINT and SIGTERM end the export so that --resume can continue it.
Status export_lines(Connection& connection, const ExportArgs& args, const std::string& path, bool is_csv,
                    EndSignal& end_signal) {
  const auto snapshot = connection.client().snapshot();
  FJORD_TRY_ASSIGN(const DocumentQuery query,
                   DocumentQuery::make(args.type, args.selection, args.fields, *snapshot->types()));
  FJORD_TRY_ASSIGN(VisitRunOptions options, visit_options(args, query, connection.runtime().clock.wall_now().us));
  const ExportFile::Mode mode = args.resume      ? ExportFile::Mode::Resume
                                : args.overwrite ? ExportFile::Mode::Overwrite
                                                 : ExportFile::Mode::New;
  FJORD_TRY_ASSIGN(const std::unique_ptr<ExportFile> file, ExportFile::open(path, mode));
  options.resume = file->resumed();
  if (options.resume.empty()) options.resume = {{.question = options.session.fingerprint(), .done = {}}};
  Lines append;
  if (is_csv) {
    FJORD_TRY_ASSIGN(const CsvLines lines, CsvLines::make(snapshot->types(), args.type, args.fields));
    FJORD_TRY(file->begin(lines.header()));
    append = [lines](const std::string& block, std::string& text) { return lines.append(block, text); };
  } else {
    append = [lines = DocumentLines(snapshot->types(), query.names)](const std::string& block,
                                                                     std::string& text) mutable {
      return lines.append(block, std::numeric_limits<std::uint64_t>::max(), text);
    };
  }
  FJORD_TRY(file->save(options.resume));

  Progress progress("export", "docs", Progress::when(args.progress));
  std::uint64_t read = file->documents();
  std::string text;
  VisitRun* the_run = nullptr;
  auto next_save = SteadyClock::now() + kSaveInterval;
  VisitRunCallbacks callbacks;
  callbacks.on_docblock = [&](const VisitedBucket& bucket, const std::string& block) -> Status {
    text.clear();
    FJORD_TRY_ASSIGN(const std::uint64_t count, append(block, text));
    read += count;
    progress.update(the_run->part_done(), read);
    return file->add(bucket, text, count);
  };
  callbacks.on_bucket_done = [&](const VisitedBucket& bucket) -> Status {
    FJORD_TRY(file->commit(bucket));
    if (SteadyClock::now() < next_save) return Status::ok();
    next_save = SteadyClock::now() + kSaveInterval;
    return file->save(the_run->tokens());
  };
  callbacks.on_bucket_dropped = [&](const VisitedBucket& bucket) { file->drop(bucket); };
  VisitRun run(connection, std::move(options), std::move(callbacks));
  the_run = &run;
  end_signal.call([&run] { run.interrupt(Status(StatusCode::Cancelled, "interrupted")); });
  const auto start = SteadyClock::now();
  Status status = run.run();
  end_signal.work_is_done();
  if (!status) FJORD_TRY(file->save(run.tokens()));
  status = status ? file->finish() : status.with_context("the export can be continued with --resume");
  print_line(summary(*file, run, std::chrono::duration<double>(SteadyClock::now() - start).count()));
  return status;
}

/// Exports JSON lines to FILE.jsonl first and converts the complete file to Parquet.
Status export_parquet(Connection& connection, const ExportArgs& args, EndSignal& end_signal) {
  const std::string lines = args.file + ".jsonl";
  if (!args.resume && !args.overwrite && ::access(args.file.c_str(), F_OK) == 0) {
    return {StatusCode::AlreadyExists, args.file + " exists; --overwrite replaces it"};
  }
  FJORD_TRY(export_lines(connection, args, lines, false, end_signal));
  end_signal.call(nullptr);  // The conversion takes long; a signal ends it at once.
  FJORD_TRY(jsonl_to_parquet(lines, args.file, *connection.client().snapshot()->types(), args.fields.empty()));
  ::unlink(lines.c_str());
  return Status::ok();
}

Status export_to(const ExportArgs& args, Format format, EndSignal& end_signal) {
  if (format == Format::Parquet) FJORD_TRY(check_parquet());
  FJORD_TRY_ASSIGN(const auto connection, connect_to(args.common));
  FJORD_TRY(connection->sync().refresh_schemas());
  if (format == Format::Parquet) return export_parquet(*connection, args, end_signal);
  return export_lines(*connection, args, args.file, format == Format::Csv, end_signal);
}

}  // namespace

int run_export(const ExportArgs& args) {
  const auto format = format_of(args.file);
  if (!format || (*format == Format::Csv && args.type.empty())) {
    complain(format ? "a CSV file needs --type: its columns are the fields of one document type; FILE.jsonl and "
                      "FILE.parquet hold documents of all types"
                    : format.error().message());
    return kUsage;
  }
  EndSignal end_signal;  // Must be created before any other thread.
  const Status status = export_to(args, *format, end_signal);
  if (status.code() == StatusCode::Cancelled && end_signal.name() != nullptr) {
    complain(std::string(end_signal.name()) + ": the export can be continued with --resume");
    return kPartial;
  }
  return status ? static_cast<int>(kOk) : report(status);
}

}  // namespace fjord::cli
