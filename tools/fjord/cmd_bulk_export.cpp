#include <chrono>
#include <limits>
#include <unistd.h>

#include "commands.h"
#include "document_lines.h"
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

std::string summary(const ExportFile& file, const VisitRun& run, double seconds) {
  const visitors::VisitProgress progress = run.progress();
  JsonText json;
  json.begin_object().key("documents").number(file.documents()).key("bytes").number(file.bytes());
  json.key("buckets").number(progress.buckets_done).key("buckets_done_before").number(progress.skipped_as_done);
  json.key("buckets_repeated").number(progress.buckets_repeated);
  return json.key("seconds").real(seconds, 3).end_object().str();
}

/// Writes lines of JSON to `path`.
Status export_lines(Connection& connection, const ExportArgs& args, const std::string& path) {
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
  FJORD_TRY(file->save(options.resume));

  DocumentLines lines(snapshot->types(), query.names);
  Progress progress("export", "docs", Progress::when(args.progress));
  std::uint64_t read = file->documents();
  std::string text;
  VisitRun* the_run = nullptr;
  auto next_save = SteadyClock::now() + kSaveInterval;
  VisitRunCallbacks callbacks;
  callbacks.on_docblock = [&](const VisitedBucket& bucket, const std::string& block) -> Status {
    text.clear();
    FJORD_TRY_ASSIGN(const std::uint64_t count, lines.append(block, std::numeric_limits<std::uint64_t>::max(), text));
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
  const auto start = SteadyClock::now();
  Status status = run.run();
  status = status ? file->finish() : status.with_context("the export can be continued with --resume");
  print_line(summary(*file, run, std::chrono::duration<double>(SteadyClock::now() - start).count()));
  return status;
}

Status export_to(const ExportArgs& args) {
  const bool parquet = is_parquet(args.file);
  if (parquet) FJORD_TRY(check_parquet());
  FJORD_TRY_ASSIGN(const auto connection, connect_to(args.common));
  FJORD_TRY(connection->sync().refresh_schemas());
  if (!parquet) return export_lines(*connection, args, args.file);
  const std::string lines = args.file + ".jsonl";
  if (!args.resume && !args.overwrite && ::access(args.file.c_str(), F_OK) == 0) {
    return {StatusCode::AlreadyExists, args.file + " exists; --overwrite replaces it"};
  }
  FJORD_TRY(export_lines(*connection, args, lines));
  FJORD_TRY(jsonl_to_parquet(lines, args.file));
  ::unlink(lines.c_str());
  return Status::ok();
}

}  // namespace

int run_export(const ExportArgs& args) {
  const Status status = export_to(args);
  return status ? static_cast<int>(kOk) : report(status);
}

}  // namespace fjord::cli
