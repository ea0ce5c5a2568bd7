#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/json_argument.h"
#include "fjord/document/document_update.h"
#include "fjord/library/bulk.h"
#include "fjord/library/detail/small_file.h"
#include "output/json_text.h"
#include "output/progress.h"

namespace fjord::cli {
namespace {

constexpr std::size_t kChangesBytesMax = std::size_t{16} << 20;

constexpr std::uint64_t kFailuresShown = 20;

std::string to_json(const BulkSummary& summary) {
  JsonText json;
  json.begin_object().key("matched").number(summary.matched).key("applied").number(summary.applied);
  json.key("skipped").number(summary.skipped).key("in_doubt").number(summary.in_doubt).key("failed").begin_object();
  for (const auto& [code, count] : summary.failed) json.key(to_string(code)).number(count);
  return json.end_object().key("seconds").real(summary.seconds, 3).end_object().str();
}

/// Runs `change(options)`, which counts or writes, and prints its result.
template <typename F>
int run_bulk(const BulkArgs& args, const char* done, F change) {
  const bool counts = !args.yes || args.dry_run;
  BulkOptions options;
  options.type = args.type;
  options.dry_run = counts;
  options.in_flight = args.in_flight;
  auto cursor = args.cursor.read();
  if (!cursor) return report(cursor.error());
  options.resume = std::move(*cursor);
  Progress progress(counts ? "count" : "done", "docs", Progress::when(args.progress));
  options.on_progress = [&](const BulkProgress& now) { progress.update(now.fraction_done, now.written); };
  if (const std::string& file = args.cursor.file_to_keep(); !file.empty()) {
    options.on_cursor = [&file](const std::string& position) { return replace_file(file, position); };
  }
  std::uint64_t failures = 0;
  options.on_failure = [&](const std::string& id, const Status& error) {
    if (++failures <= kFailuresShown) complain(fmt::format("{}: {}", id, error.to_string()));
  };
  BulkSummary summary = change(std::move(options));
  summary.status = name_cursor_file(summary.status, args.cursor.file_to_read());
  if (!counts) {
    print_line(to_json(summary));
    if (!summary.status) return report(summary.status);
    return summary.failed_total() + summary.in_doubt == 0 ? kOk : kPartial;
  }
  if (!summary.status) return report(summary.status);
  if (args.common.json()) {
    print_line(JsonText().begin_object().key("matched").number(summary.matched).end_object().str());
  } else {
    print_line(fmt::format("{} documents would be {}", summary.matched, done));
  }
  if (args.dry_run) return kOk;
  complain(fmt::format("nothing was {}: repeat it with --yes", done));
  return kRefused;
}

/// Checks that the changes fit the document type. Returns OK for an unknown type.
Status check_changes(Client& client, const std::string& type_name, const std::string& changes) {
  FJORD_TRY_ASSIGN(const auto types, client.types());
  const DocumentType* const type = types->find(type_name);
  if (type == nullptr) return Status::ok();
  FJORD_TRY_ASSIGN(const DocumentId any_id, DocumentId::parse(fmt::format("id:any:{}::any", type_name)));
  return DocumentUpdate::from_json_fields(*type, any_id, changes).status();
}

}  // namespace

int run_bulk_remove(const BulkArgs& args) {
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  return run_bulk(args, "removed",
                  [&](BulkOptions options) { return client.remove_where(args.selection, std::move(options)); });
}

int run_bulk_update(const BulkArgs& args) {
  const auto changes = json_argument(args.changes, kChangesBytesMax);
  if (!changes) return report(changes.error());
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  if (const Status status = check_changes(client, args.type, changes->text); !status) return report(status);
  return run_bulk(args, "updated", [&](BulkOptions options) {
    return client.update_where(args.selection, changes->text, std::move(options));
  });
}

}  // namespace fjord::cli
