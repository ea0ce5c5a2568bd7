#include <chrono>
#include <fmt/format.h>

#include "bulk_run.h"
#include "commands.h"
#include "fjord/client/operations.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_update.h"
#include "fjord/document/selection.h"
#include "input_file.h"
#include "json_text.h"

namespace fjord::cli {
namespace {

constexpr std::size_t kChangesBytesMax = std::size_t{16} << 20;

/// What bulk operations have in common.
struct Bulk {
  std::unique_ptr<Connection> connection;
  visitors::VisitorSessionOptions visit;
};

Result<Bulk> prepare(const BulkArgs& args) {
  Bulk bulk;
  FJORD_TRY_ASSIGN(bulk.connection, connect_to(args.common));
  FJORD_TRY(bulk.connection->sync().refresh_schemas());
  const auto types = bulk.connection->client().snapshot()->types();
  if (types->find(args.type) == nullptr) {
    return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", args.type));
  }
  bulk.visit.selection = fmt::format("({}) and ({})", args.type, args.where);
  if (const auto parsed = Selection::parse(args.where, *types); !parsed) return parsed.error();
  bulk.visit.field_set = "[id]";
  bulk.visit.follow_bits = true;
  bulk.visit.no_progress_limit = args.common.timeout();
  return bulk;
}

/// Counts what would be written to.
int count(Bulk& bulk, const BulkArgs& args, const char* done) {
  std::uint64_t matched = 0;
  Progress progress("count", "docs", Progress::when(args.progress));
  VisitRun* the_run = nullptr;
  VisitRunCallbacks callbacks;
  callbacks.on_docblock = [&](const VisitedBucket&, const std::string& block) {
    DocBlockReader reader(block);
    while (reader.next()) ++matched;
    progress.update(the_run->part_done(), matched);
    return reader.ok() ? Status::ok() : Status(StatusCode::Corruption, "a block of documents is malformed");
  };
  VisitRunOptions options;
  options.session = bulk.visit;
  VisitRun run(*bulk.connection, std::move(options), std::move(callbacks));
  the_run = &run;
  if (Status status = run.run(); !status) return report(status);
  if (args.common.json()) {
    print_line(JsonText().begin_object().key("matched").number(matched).end_object().str());
  } else {
    print_line(fmt::format("{} documents would be {}", matched, done));
  }
  if (args.dry_run) return kOk;
  complain(fmt::format("nothing was {}: repeat it with --yes", done));
  return kRefused;
}

int run_bulk(Bulk& bulk, const BulkArgs& args, std::string kind,
             std::function<rpc::Operation(const std::string&)> make) {
  BulkRunOptions options;
  options.visit = bulk.visit;
  options.make = std::move(make);
  options.kind = std::move(kind);
  options.progress_file = args.progress_file;
  options.resume_file = args.resume;
  options.in_flight = args.in_flight;
  options.timeout = args.common.timeout();
  options.progress = Progress::when(args.progress);
  BulkRun run(*bulk.connection, std::move(options));
  const Status status = run.run();
  print_line(run.result().to_json());
  if (!status) return report(status);
  return run.result().failed_total() + run.result().in_doubt == 0 ? kOk : kPartial;
}

/// The text itself if it begins with a brace, "-" for standard input, or the name of a file.
Result<std::string> changes_of(const std::string& argument) {
  if (argument.starts_with('{')) return argument;
  FJORD_TRY_ASSIGN(const auto file, InputFile::open(argument));
  return file->read_all(kChangesBytesMax);
}

}  // namespace

int run_bulk_remove(const BulkArgs& args) {
  auto bulk = prepare(args);
  if (!bulk) return report(bulk.error());
  if (!args.yes || args.dry_run) return count(*bulk, args, "removed");
  return run_bulk(*bulk, args, "remove", [](const std::string& id) { return remove_operation(id); });
}

int run_bulk_update(const BulkArgs& args) {
  auto changes = changes_of(args.changes);
  if (!changes) return report(changes.error());
  auto bulk = prepare(args);
  if (!bulk) return report(bulk.error());
  const auto types = bulk->connection->client().snapshot()->types();
  const auto any_id = DocumentId::parse(fmt::format("id:any:{}::any", args.type));
  if (!any_id) return report(any_id.error());
  const auto understood = DocumentUpdate::from_json_fields(*types->find(args.type), *any_id, *changes);
  if (!understood) return report_failure(understood.error());
  if (!args.yes || args.dry_run) return count(*bulk, args, "updated");
  return run_bulk(*bulk, args, "update " + *changes,
                  [text = *changes](const std::string& id) { return update_json_operation(id, text); });
}

}  // namespace fjord::cli
