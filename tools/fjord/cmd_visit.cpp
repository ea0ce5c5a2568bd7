#include <chrono>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "commands.h"
#include "document_lines.h"
#include "fjord/client/connect.h"
#include "fjord/document/docblock.h"
#include "progress.h"
#include "visit_run.h"

namespace fjord::cli {
namespace {

/// Errors: InvalidArgument for options that do not parse or do not go together; as read_tokens().
Result<VisitRunOptions> visit_options(const VisitArgs& args, const DocumentQuery& query, std::int64_t now_us) {
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
  options.priority = args.priority == "high"     ? rpc::Priority::High
                     : args.priority == "normal" ? rpc::Priority::Normal
                                                 : rpc::Priority::Background;
  if (!args.from.empty()) {
    FJORD_TRY_ASSIGN(options.from, parse_time(args.from, now_us));
  }
  if (!args.to.empty()) {
    FJORD_TRY_ASSIGN(options.to, parse_time(args.to, now_us));
  }
  if (!args.slice.empty()) {
    FJORD_TRY_ASSIGN(options.slice, parse_slice(args.slice));
  }
  run.slices = args.slices;
  if (!args.resume.empty()) {
    FJORD_TRY_ASSIGN(run.resume, read_tokens(args.resume));
    if (run.resume.size() != run.slices) {
      return Status(StatusCode::InvalidArgument, fmt::format("{} is of a visit with --slices {}, this one has {}",
                                                             args.resume, run.resume.size(), run.slices));
    }
  }
  return run;
}

Result<std::uint64_t> count_entries(const std::string& block) {
  std::uint64_t count = 0;
  DocBlockReader reader(block);
  while (reader.next()) ++count;
  if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
  return count;
}

/// Keeps the tokens of a visit in a file, written now and then and at the end.
class TokenFile {
 public:
  explicit TokenFile(std::string path) : path_(std::move(path)) {}

  /// What is in the tokens has been printed.
  Status update(const VisitRun& run, bool at_once) {
    const auto now = std::chrono::steady_clock::now();
    if (path_.empty() || (!at_once && now < next_)) return Status::ok();
    next_ = now + std::chrono::seconds(1);
    if (std::fflush(stdout) != 0) return {StatusCode::IoError, "standard output cannot be written"};
    return write_tokens(path_, run.tokens());
  }

 private:
  std::string path_;
  std::chrono::steady_clock::time_point next_{};
};

/// Blocks of buckets that are not done: of a snapshot, what was given of a bucket may be taken back.
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

}  // namespace

int run_visit(const VisitArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  if (Status status = (*connection)->sync().refresh_schemas(); !status) return report(status);
  const auto snapshot = (*connection)->client().snapshot();
  const auto query = DocumentQuery::make(args.type, args.selection, args.fields, *snapshot->types());
  if (!query) return report(query.error());
  auto options = visit_options(args, *query, (*connection)->runtime().clock.wall_now().us);
  if (!options) {
    complain(options.error().message());
    return kUsage;
  }

  DocumentLines lines(snapshot->types(), query->names);
  std::string text;
  std::uint64_t printed = 0;
  Progress progress("visit", "docs", Progress::when(args.show_progress));
  TokenFile tokens(args.progress_file);
  const std::uint64_t limit = args.limit == 0 ? std::numeric_limits<std::uint64_t>::max() : args.limit;
  VisitRun* the_run = nullptr;
  HeldBuckets held;
  VisitRunCallbacks callbacks;
  const auto print_block = [&](const VisitedBucket& bucket, const std::string& block) {
    text.clear();
    if (args.count) {
      FJORD_TRY_ASSIGN(const std::uint64_t some, count_entries(block));
      printed += some;
      progress.update(the_run->part_done(), printed);
      return Status::ok();
    }
    FJORD_TRY_ASSIGN(const std::uint64_t count, lines.append(block, limit - printed, text));
    print(text);
    printed += count;
    progress.update(the_run->part_done(), printed);
    if (printed == limit) the_run->stop(bucket);
    return Status::ok();
  };
  callbacks.on_docblock = [&](const VisitedBucket& bucket, const std::string& block) {
    if (!args.snapshot) return print_block(bucket, block);
    held.add(bucket, block);
    return Status::ok();
  };
  if (args.snapshot) callbacks.on_bucket_dropped = [&](const VisitedBucket& bucket) { held.drop(bucket); };
  callbacks.on_bucket_done = [&](const VisitedBucket& bucket) {
    for (const std::string& block : held.take(bucket)) {
      if (printed < limit) FJORD_TRY(print_block(bucket, block));
    }
    return tokens.update(*the_run, false);
  };
  VisitRun run(**connection, std::move(*options), std::move(callbacks));
  the_run = &run;
  const auto start = std::chrono::steady_clock::now();
  Status status = run.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (args.count && status) print_line(std::to_string(printed));
  if (const Status kept = tokens.update(run, true); !kept && status) status = kept;
  if (std::fflush(stdout) != 0 && status) status = Status(StatusCode::IoError, "standard output cannot be written");
  if (args.explain) {
    const std::string why =
        args.common.json() ? explain_json(run.progress(), seconds) + '\n' : explain_text(run.progress(), seconds);
    std::fputs(why.c_str(), stderr);
  }
  return status ? static_cast<int>(kOk) : report(status);
}

}  // namespace fjord::cli
