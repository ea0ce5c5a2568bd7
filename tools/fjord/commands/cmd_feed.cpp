#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <stop_token>
#include <utility>

#include "commands/commands.h"
#include "commands/end_signal.h"
#include "fjord/library/detail/file_format.h"
#include "fjord/library/files.h"
#include "output/json_text.h"
#include "output/parquet.h"
#include "output/progress.h"

namespace fjord::cli {
namespace {

std::string to_json(const ImportSummary& summary) {
  JsonText json;
  json.begin_object().key("ok").number(summary.stored).key("failed").number(summary.failed_total());
  json.key("failed_by_code").begin_object();
  for (const auto& [code, count] : summary.failed) json.key(to_string(code)).number(count);
  json.end_object().key("in_doubt").number(summary.in_doubt).key("retried").number(summary.retried);
  json.key("replaced").number(summary.replaced).key("existing").number(summary.existing);
  json.key("bytes").number(summary.bytes).key("seconds").real(summary.seconds, 3);
  json.key("docs_per_s").real(static_cast<double>(summary.stored) / std::max(summary.seconds, 1e-6), 1);
  json.key("latency_ms").begin_object().key("p50").real(summary.latency_p50_seconds * 1e3, 2);
  json.key("p99").real(summary.latency_p99_seconds * 1e3, 2);
  return json.key("max").real(summary.latency_max_seconds * 1e3, 2).end_object().end_object().str();
}

/// Returns 0 if all records are stored, 5 for a part of them, else 1, or the code of the error if no file could be
/// opened and all for the same reason.
int exit_code_of(const ImportSummary& summary) {
  if (summary) return kOk;
  if (summary.stored + summary.existing > 0) return kPartial;
  const std::vector<Status>& unreadable = summary.unreadable_files;
  if (unreadable.empty() || summary.failed_total() + summary.in_doubt != unreadable.size()) return kFailed;
  const int code = failure_code(unreadable.front());
  const bool is_same = std::all_of(unreadable.begin(), unreadable.end(),
                                   [&](const Status& status) { return failure_code(status) == code; });
  return is_same ? code : static_cast<int>(kFailed);
}

std::string ended_text(const FeedArgs& args, const char* signal, std::uint64_t stored) {
  const std::string rest = args.cursor_file.empty() ? "with --cursor FILE an import can go on where it ended"
                                                    : fmt::format("--cursor {} goes on behind them", args.cursor_file);
  return fmt::format("{} after {} documents were stored; {}", signal, stored, rest);
}

/// Ends an import at the first signal, after the writes in flight. A read of standard input may wait for ever: then the
/// process ends at once.
class ImportEnd {
 public:
  explicit ImportEnd(const FeedArgs& args) : args_(args) {
    signal_.call([this] { take(); });
  }

  std::stop_token token() const { return stop_.get_token(); }
  void note(std::uint64_t stored) { stored_ = stored; }
  /// Returns the name of the signal; null without one. From here on a signal has no effect.
  const char* finish() {
    signal_.work_is_done();
    return signal_.name();
  }

 private:
  void take() {
    stop_.request_stop();
    const bool reads_input = std::find(args_.files.begin(), args_.files.end(), "-") != args_.files.end();
    if (!reads_input) return;
    complain(ended_text(args_, "a signal", stored_));
    std::_Exit(kPartial);
  }

  const FeedArgs& args_;
  std::stop_source stop_;
  std::atomic<std::uint64_t> stored_ = 0;
  EndSignal signal_;
};

/// Feeds or imports the files, prints failures while it runs, and the summary. Returns the exit code.
int run_import_of(const FeedArgs& args, ImportOptions options) {
  ImportEnd end(args);
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  options.timeout = args.common.timeout();
  options.in_flight = args.in_flight;
  if (args.background) options.priority = ClientPriority::Background;
  options.progress_file = args.cursor_file;
  options.stop = end.token();
  options.create_only = args.create_only;
  options.convert_values = args.convert_values;
  Progress progress("feed", "docs", Progress::when(args.progress));
  options.on_progress = [&](const ImportProgress& now) {
    end.note(now.stored);
    progress.update(now.fraction_done, now.stored, now.failed == 0 ? "" : fmt::format("{} failed", now.failed));
  };
  std::uint64_t errors = 0;
  options.on_failure = [&](const ImportFailure& failure) {
    if (++errors <= args.errors_shown) complain(failure.to_string());
    if (errors == args.errors_shown + 1) complain("further errors are only counted, see --errors-shown");
  };
  options.on_warning = [](const std::string& warning) { complain("warning: " + warning); };
  const ImportSummary summary = client.import_from(args.files, options);
  const char* const signal = end.finish();
  if (summary.status.code() == StatusCode::Cancelled && signal != nullptr) {
    print_line(to_json(summary));
    complain(ended_text(args, signal, summary.stored));
    return kPartial;
  }
  if (!summary.status) return report(summary.status);
  print_line(to_json(summary));
  return exit_code_of(summary);
}

bool is_jsonl(const std::string& path) { return file_format(path) == FileFormat::Lines; }

}  // namespace

int run_feed(const FeedArgs& args) {
  if (std::any_of(args.files.begin(), args.files.end(), is_parquet)) {
    complain("a feed is JSON; `fjord import` reads Parquet");
    return kUsage;
  }
  ImportOptions options;
  options.format = ImportFormat::Feed;
  return run_import_of(args, std::move(options));
}

int run_import(const FeedArgs& args) {
  if (args.files.size() > 1 && !args.cursor_file.empty()) {
    complain("--cursor keeps how far one file is, not several");
    return kUsage;
  }
  const auto parquet_files = std::count_if(args.files.begin(), args.files.end(), is_parquet);
  if (parquet_files != 0 && static_cast<std::size_t>(parquet_files) != args.files.size()) {
    complain("Parquet files need a command of their own; the others are imported by another one");
    return kUsage;
  }
  // Lines that `fjord export` wrote contain the ids, so no type is needed.
  if (args.type.empty() && std::all_of(args.files.begin(), args.files.end(), is_jsonl)) return run_feed(args);
  if (args.type.empty() && parquet_files == 0) {
    complain("--type is needed for a table; without, FILE.jsonl or FILE.parquet as `fjord export` writes them");
    return kUsage;
  }
  if (args.id_row && args.files.size() > 1) {
    complain("--id-row numbers the rows of one file; with several files their documents would have the same ids");
    return kUsage;
  }
  if (parquet_files != 0) return import_parquet(args);
  ImportOptions options;
  options.type = args.type;
  options.id_field = args.id_field;
  options.id_namespace = args.namespace_;
  options.ignore_unknown = args.ignore_unknown;
  return run_import_of(args, std::move(options));
}

}  // namespace fjord::cli
