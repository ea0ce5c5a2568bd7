#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "commands/commands.h"
#include "commands/end_signal.h"
#include "fjord/library/detail/document_lines.h"
#include "fjord/library/detail/document_query.h"
#include "fjord/library/detail/small_file.h"
#include "fjord/library/visit.h"
#include "output/progress.h"
#include "output/visit_text.h"

namespace fjord::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kVisitPrintBytes = 64 * 1024;

/// Returns the options of the visit. Errors: InvalidArgument for malformed options; those of the file with the cursor.
Result<VisitOptions> options_of(const VisitArgs& args) {
  VisitOptions options;
  options.type = args.type;
  options.selection = args.selection;
  if (!args.fields.empty()) options.fields = {args.fields};
  options.visitor = args.visitor;
  FJORD_TRY_ASSIGN(options.parameters, parse_assignments("--param", args.parameters));
  options.no_progress_limit = args.common.timeout();
  options.visitors_per_node = args.visitors_per_node;
  options.buckets_per_visitor = args.buckets_per_visitor;
  options.buckets_at_once = args.buckets_at_once;
  options.include_removed = args.removes;
  options.snapshot = args.snapshot;
  options.slices = args.slices;
  const bool is_short = args.priority.empty() && args.limit != 0;
  options.priority = args.priority == "high"                 ? ClientPriority::High
                     : args.priority == "normal" || is_short ? ClientPriority::Normal
                                                             : ClientPriority::Background;
  FJORD_TRY(parse_part(args, options));
  FJORD_TRY_ASSIGN(options.resume, args.cursor.read());
  return options;
}

/// Prints the documents of a visit and keeps its cursor in a file.
class Printer {
 public:
  Printer(const VisitArgs& args, Visit& visit, std::vector<std::string> names)
      : args_(args),
        visit_(visit),
        cursor_file_(args.cursor.file_to_keep()),
        lines_(visit.types(), std::move(names)),
        progress_("visit", "docs", Progress::when(args.progress)) {}

  /// Prints all documents, or as many as --limit allows. Errors: those of the visit; IoError.
  Status run() {
    while (args_.limit == 0 || printed_ < args_.limit) {
      const auto entry = visit_.next_entry();
      if (!entry) break;
      ++printed_;
      if (!args_.count) FJORD_TRY(lines_.append_entry(*entry, text_));
      if (text_.size() >= kVisitPrintBytes || visit_.would_wait()) FJORD_TRY(update());
    }
    return visit_.status();
  }

  /// Prints what is left and writes the cursor. Errors: IoError.
  Status finish() {
    print(std::exchange(text_, {}));
    FJORD_TRY(flush_output());
    return cursor_file_.empty() ? Status::ok() : replace_file(cursor_file_, visit_.cursor());
  }

  std::uint64_t printed() const { return printed_; }
  /// Returns the path of the cursor's file; empty without one.
  const std::string& cursor_file() const { return cursor_file_; }

 private:
  /// Prints the lines so far, and writes the cursor at most once a second.
  Status update() {
    print(text_);
    text_.clear();
    FJORD_TRY(output_status());
    progress_.update(visit_.statistics().fraction_done(), printed_);
    const auto now = SteadyClock::now();
    if (cursor_file_.empty() || now < next_save_) return Status::ok();
    next_save_ = now + std::chrono::seconds(1);
    return finish();
  }

  const VisitArgs& args_;
  Visit& visit_;
  const std::string cursor_file_;
  DocumentLines lines_;
  Progress progress_;
  std::string text_;  ///< Lines to print.
  std::uint64_t printed_ = 0;
  SteadyClock::time_point next_save_{};
};

/// Prints the results after the last document. Returns the exit code.
int finish(const VisitArgs& args, const Visit& visit, Printer& printer, Status status, const char* signal,
           double seconds) {
  if (args.count && status) print_line(std::to_string(printer.printed()));
  const bool is_interrupted = status.code() == StatusCode::Cancelled && signal != nullptr;
  const bool may_fail = status.is_ok() || is_interrupted;
  if (const Status kept = printer.finish(); !kept && may_fail) status = kept;
  if (args.explain) {
    const VisitStatistics done = visit.statistics();
    const std::string why = args.common.json() ? explain_json(done, seconds) + '\n' : explain_text(done, seconds);
    std::fputs(why.c_str(), stderr);
  }
  if (is_interrupted && status.code() == StatusCode::Cancelled) {
    const std::string& file = printer.cursor_file();
    complain(fmt::format("{} after {} documents; {}", signal, printer.printed(),
                         file.empty() ? "with --cursor FILE a visit can go on where it ended"
                                      : fmt::format("--cursor {} goes on behind them", file)));
    return kPartial;
  }
  return status ? static_cast<int>(kOk) : report(status);
}

}  // namespace

int run_visit(const VisitArgs& args) {
  EndSignal end_signal;  // Must be created before any other thread.
  auto options = options_of(args);
  if (!options) return report(options.error());
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  const bool goes_on = !options->resume.empty();
  const auto start = SteadyClock::now();
  Visit visit = client.visit(std::move(*options));
  if (!visit.status()) return report(name_cursor_file(visit.status(), args.cursor.file_to_read()));
  auto query = DocumentQuery::make(args.type, args.selection, args.fields, *visit.types());
  if (!query) return report(query.error());
  Printer printer(args, visit, std::move(query->names));
  end_signal.call([&visit] { visit.stop(); });
  Status status = printer.run();
  end_signal.work_is_done();
  if (status && goes_on && printer.printed() == 0) {
    complain(fmt::format("{}: nothing was left to visit; remove the file to visit from the beginning",
                         printer.cursor_file()));
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  return finish(args, visit, printer, std::move(status), end_signal.name(), seconds);
}

}  // namespace fjord::cli
