#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "commands.h"
#include "end_signal.h"
#include "fjord/client/connect.h"
#include "fjord/document/docblock.h"
#include "fjord/library/detail/document_lines.h"
#include "fjord/library/detail/document_query.h"
#include "fjord/library/detail/given_documents.h"
#include "fjord/library/detail/small_file.h"
#include "progress.h"
#include "visit_run.h"
#include "visit_text.h"

namespace fjord::cli {
namespace {

/// Returns the options of the visit. Errors: InvalidArgument for malformed or conflicting options.
Result<VisitRunOptions> visit_options(const VisitArgs& args, const DocumentQuery& query,
                                      const std::vector<visitors::VisitToken>& resume, std::int64_t now_us) {
  VisitRunOptions run;
  visitors::VisitorSessionOptions& options = run.session;
  options.selection = query.selection;
  options.field_set = query.field_set;
  options.library = args.visitor;
  FJORD_TRY_ASSIGN(options.parameters, parse_parameters(args.parameters));
  options.no_progress_limit = args.common.timeout();
  options.follow_bits = true;
  options.visitors_per_node = args.visitors_per_node;
  options.buckets_per_visitor = args.buckets_per_visitor;
  options.buckets_at_once = args.buckets_at_once;
  options.include_removed = args.removes;
  options.snapshot = args.snapshot;
  const bool is_short = args.priority.empty() && args.limit != 0;
  options.priority = args.priority == "high"                 ? rpc::Priority::High
                     : args.priority == "normal" || is_short ? rpc::Priority::Normal
                                                             : rpc::Priority::Background;
  if (!args.from.empty()) {
    FJORD_TRY_ASSIGN(options.from, parse_time(args.from, now_us));
  }
  if (!args.to.empty()) {
    FJORD_TRY_ASSIGN(options.to, parse_time(args.to, now_us));
  }
  if (!args.slice.empty()) {
    FJORD_TRY_ASSIGN(const VisitSlice slice, parse_slice(args.slice));
    options.slice = visitors::PositionRange::slice(slice.index, slice.count);
  }
  run.slices = args.slices;
  run.resume = resume;
  if (!args.resume.empty()) {
    if (run.resume.size() != run.slices) {
      return Status(StatusCode::InvalidArgument, fmt::format("{} is of a visit with --slices {}, this one has {}",
                                                             args.resume, run.resume.size(), run.slices));
    }
  }
  return run;
}

Result<std::uint64_t> count_entries(const std::string& block, const DocumentLines::Filter& is_wanted) {
  std::uint64_t count = 0;
  DocBlockReader reader(block);
  while (const auto entry = reader.next()) count += !is_wanted || is_wanted(*entry) ? 1 : 0;
  if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
  return count;
}

/// The documents that a resumable visit has printed, kept in a progress file that is written every second and at the
/// end. Without a file it keeps nothing.
class PrintedSoFar {
 public:
  /// `is_by_document`: the visitor gives each document itself, once.
  PrintedSoFar(std::string path, GivenDocuments before, bool is_by_document)
      : path_(std::move(path)),
        printed_(std::move(before)),
        is_by_document_(is_by_document && (!path_.empty() || printed_.size() != 0)) {}

  /// Returns a filter that is true for documents still to be printed and counts them as printed. An empty filter: all.
  DocumentLines::Filter filter() {
    if (!is_by_document_) return {};
    return [this](const EntryView& entry) { return printed_.add(entry.gid); };
  }
  void bucket_done(const visitors::PositionRange& range) {
    if (is_by_document_) printed_.complete(range);
  }
  /// Writes the progress file, at most once a second unless `at_once`. Only after printing all that the tokens cover.
  Status save(const VisitRun& run, bool at_once) {
    const auto now = std::chrono::steady_clock::now();
    if (path_.empty() || (!at_once && now < next_)) return Status::ok();
    next_ = now + std::chrono::seconds(1);
    if (std::fflush(stdout) != 0) return {StatusCode::IoError, "standard output cannot be written"};
    return replace_file(path_, VisitCursor{run.tokens(), printed_}.to_text());
  }

 private:
  std::string path_;
  GivenDocuments printed_;
  bool is_by_document_;
  std::chrono::steady_clock::time_point next_{};
};

/// Returns the intersection of the bucket and its slice: slices share the buckets at their borders.
visitors::PositionRange part_of(const VisitedBucket& visited, std::uint64_t slices, visitors::PositionRange slice) {
  if (slices > 1) slice = visitors::PositionRange::slice(visited.slice, slices);
  const visitors::PositionRange whole = visitors::PositionRange::of(visited.bucket);
  return {std::max(whole.first, slice.first), std::min(whole.last, slice.last)};
}

/// Blocks of incomplete buckets of a snapshot visit, which drops the blocks of a bucket that it restarts.
class HeldBuckets {
 public:
  void add(const VisitedBucket& bucket, const std::string& block) { blocks_[bucket].push_back(block); }
  void drop(const VisitedBucket& bucket) { blocks_.erase(bucket); }
  std::vector<std::string> take(const VisitedBucket& bucket) {
    auto found = blocks_.extract(bucket);
    return found.empty() ? std::vector<std::string>() : std::move(found.mapped());
  }

 private:
  std::map<VisitedBucket, std::vector<std::string>> blocks_;
};

/// Prints the documents of a visit.
class Printer {
 public:
  Printer(const VisitArgs& args, std::shared_ptr<const DocumentTypeRepo> types, const DocumentQuery& query,
          visitors::PositionRange slice, PrintedSoFar so_far)
      : args_(args),
        slice_(slice),
        limit_(args.limit == 0 ? std::numeric_limits<std::uint64_t>::max() : args.limit),
        lines_(std::move(types), query.names),
        progress_("visit", "docs", Progress::when(args.show_progress)),
        so_far_(std::move(so_far)),
        is_wanted_(so_far_.filter()) {}

  /// Returns the callbacks for creating `run`, which must be set before the first call and outlive the last one.
  VisitRunCallbacks callbacks(VisitRun*& run) {
    VisitRunCallbacks callbacks;
    callbacks.on_docblock = [this, &run](const VisitedBucket& bucket, const std::string& block) {
      if (!args_.snapshot) return print_block(*run, bucket, block);
      held_.add(bucket, block);
      return Status::ok();
    };
    if (args_.snapshot) callbacks.on_bucket_dropped = [this](const VisitedBucket& bucket) { held_.drop(bucket); };
    callbacks.on_bucket_done = [this, &run](const VisitedBucket& bucket) {
      for (const std::string& block : held_.take(bucket)) {
        if (printed_ < limit_) FJORD_TRY(print_block(*run, bucket, block));
      }
      if (printed_ < limit_) so_far_.bucket_done(part_of(bucket, args_.slices, slice_));
      return so_far_.save(*run, false);
    };
    return callbacks;
  }

  std::uint64_t printed() const { return printed_; }
  Status save(const VisitRun& run) { return so_far_.save(run, true); }

 private:
  Status print_block(VisitRun& run, const VisitedBucket& bucket, const std::string& block) {
    text_.clear();
    if (args_.count) {
      FJORD_TRY_ASSIGN(const std::uint64_t some, count_entries(block, is_wanted_));
      printed_ += some;
      progress_.update(run.part_done(), printed_);
      return Status::ok();
    }
    FJORD_TRY_ASSIGN(const std::uint64_t count, lines_.append(block, limit_ - printed_, text_, is_wanted_));
    print(text_);
    printed_ += count;
    progress_.update(run.part_done(), printed_);
    if (printed_ == limit_) run.stop(bucket);
    return Status::ok();
  }

  const VisitArgs& args_;
  const visitors::PositionRange slice_;
  const std::uint64_t limit_;
  DocumentLines lines_;
  Progress progress_;
  PrintedSoFar so_far_;
  const DocumentLines::Filter is_wanted_;
  HeldBuckets held_;
  std::string text_;
  std::uint64_t printed_ = 0;
};

/// Returns the path of the progress file; empty without one.
const std::string& progress_file(const VisitArgs& args) {
  return args.progress_file.empty() ? args.resume : args.progress_file;
}

/// Prints the results after the last callback. Returns the exit code.
int finish(const VisitArgs& args, const VisitRun& run, Printer& printer, Status status, const char* signal,
           double seconds) {
  if (args.count && status) print_line(std::to_string(printer.printed()));
  const bool is_interrupted = status.code() == StatusCode::Cancelled && signal != nullptr;
  const bool may_fail = status.is_ok() || is_interrupted;
  if (const Status kept = printer.save(run); !kept && may_fail) status = kept;
  if (std::fflush(stdout) != 0 && may_fail) status = Status(StatusCode::IoError, "standard output cannot be written");
  if (args.explain) {
    const std::string why =
        args.common.json() ? explain_json(run.progress(), seconds) + '\n' : explain_text(run.progress(), seconds);
    std::fputs(why.c_str(), stderr);
  }
  if (is_interrupted && status.code() == StatusCode::Cancelled) {
    const std::string& file = progress_file(args);
    complain(fmt::format("{} after {} documents; {}", signal, printer.printed(),
                         file.empty() ? "with --progress FILE a visit can be resumed"
                                      : fmt::format("--resume {} goes on behind them", file)));
    return kPartial;
  }
  return status ? static_cast<int>(kOk) : report(status);
}

int visit(const VisitArgs& args, Connection& connection, VisitCursor before, EndSignal& end_signal) {
  if (Status status = connection.sync().refresh_schemas(); !status) return report(status);
  const auto snapshot = connection.client().snapshot();
  const auto query = DocumentQuery::make(args.type, args.selection, args.fields, *snapshot->types());
  if (!query) return report(query.error());
  auto options = visit_options(args, *query, before.tokens, connection.runtime().clock.wall_now().us);
  if (!options) return report(options.error());
  Printer printer(args, snapshot->types(), *query, options->session.slice,
                  PrintedSoFar(progress_file(args), std::move(before.given), args.visitor == "dump"));
  VisitRun* the_run = nullptr;
  VisitRun run(connection, std::move(*options), printer.callbacks(the_run));
  the_run = &run;
  end_signal.call([&run] { run.interrupt(Status(StatusCode::Cancelled, "interrupted")); });
  const auto start = std::chrono::steady_clock::now();
  Status status = run.run();
  end_signal.work_is_done();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return finish(args, run, printer, std::move(status), end_signal.name(), seconds);
}

}  // namespace

int run_visit(const VisitArgs& args) {
  EndSignal end_signal;  // Must be created before any other thread.
  VisitCursor before;
  if (!args.resume.empty()) {
    const auto text = read_small_file(args.resume);
    if (!text) return report(text.error());
    auto read = VisitCursor::parse(*text);
    if (!read) return report(read.error().with_context(args.resume));
    before = std::move(*read);
  }
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  return visit(args, **connection, std::move(before), end_signal);
}

}  // namespace fjord::cli
