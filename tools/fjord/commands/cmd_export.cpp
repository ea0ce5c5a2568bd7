#include <fmt/format.h>
#include <stop_token>

#include "commands/commands.h"
#include "commands/end_signal.h"
#include "fjord/library/detail/file_format.h"
#include "fjord/library/files.h"
#include "output/json_text.h"
#include "output/parquet.h"
#include "output/progress.h"
#include "output/visit_text.h"

namespace fjord::cli {
namespace {

/// Returns the options of the export, without the members for stopping and progress. Errors: InvalidArgument.
Result<ExportOptions> options_of(const ExportArgs& args) {
  ExportOptions options;
  options.type = args.type;
  options.selection = args.selection;
  options.fields = args.fields;
  options.mode = args.resume ? ExportMode::Resume : args.overwrite ? ExportMode::Replace : ExportMode::New;
  options.snapshot = args.snapshot;
  options.visitors_per_node = args.visitors_per_node;
  options.buckets_per_visitor = args.buckets_per_visitor;
  options.buckets_at_once = args.buckets_at_once;
  options.no_progress_limit = args.common.timeout();
  options.priority = args.priority == "high"     ? ClientPriority::High
                     : args.priority == "normal" ? ClientPriority::Normal
                                                 : ClientPriority::Background;
  FJORD_TRY(parse_part(args, options));
  return options;
}

std::string to_json(const ExportSummary& summary) {
  JsonText json;
  json.begin_object().key("documents").number(summary.documents).key("bytes").number(summary.bytes);
  json.key("buckets").number(summary.buckets_done).key("buckets_done_before").number(summary.buckets_done_before);
  json.key("buckets_repeated").number(summary.buckets_repeated);
  return json.key("seconds").real(summary.seconds, 3).end_object().str();
}

/// Writes lines of JSON or CSV. SIGINT and SIGTERM end the export so that --resume can continue it.
Status export_lines(Client& client, const ExportArgs& args, EndSignal& end_signal) {
  FJORD_TRY_ASSIGN(ExportOptions options, options_of(args));
  Progress progress("export", "docs", Progress::when(args.progress));
  options.on_progress = [&](const ExportProgress& now) { progress.update(now.fraction_done, now.documents); };
  std::stop_source stop;
  options.stop = stop.get_token();
  end_signal.call([stop]() mutable { stop.request_stop(); });
  const ExportSummary summary = client.export_to(args.file, options);
  end_signal.work_is_done();
  if (summary.status || summary.bytes != 0) print_line(to_json(summary));
  return summary.status;
}

Status export_to(const ExportArgs& args, EndSignal& end_signal) {
  Client client = client_of(args.common);
  FJORD_TRY(ready(client, args.common));
  return export_lines(client, args, end_signal);
}

}  // namespace

int run_export(const ExportArgs& args) {
  const FileFormat format = file_format(args.file);
  if (format == FileFormat::Unknown) {
    complain(args.file + ": the ending says the format; expected .jsonl, .csv (both also with .gz) or .parquet");
    return kUsage;
  }
  if (format == FileFormat::Csv && args.type.empty()) {
    complain(
        "a CSV file needs --type: its columns are the fields of one document type; FILE.jsonl and FILE.parquet hold "
        "documents of all types");
    return kUsage;
  }
  if (format == FileFormat::Parquet) return export_parquet(args);
  EndSignal end_signal;  // Must be created before any other thread.
  const Status status = export_to(args, end_signal);
  if (status.code() == StatusCode::Cancelled && end_signal.name() != nullptr) {
    complain(std::string(end_signal.name()) + ": the export can be continued with --resume");
    return kPartial;
  }
  return status ? static_cast<int>(kOk) : report(status);
}

}  // namespace fjord::cli
