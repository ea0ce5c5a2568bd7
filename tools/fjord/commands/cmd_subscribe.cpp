#include <chrono>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>

#include "commands/commands.h"
#include "fjord/library/detail/document_lines.h"
#include "fjord/library/detail/document_query.h"
#include "fjord/library/detail/small_file.h"
#include "fjord/library/subscription.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kChangePrintBytes = 64 * 1024;

/// Returns the options of the subscription. Errors: those of the file with the cursor.
Result<SubscribeOptions> options_of(const SubscribeArgs& args) {
  SubscribeOptions options;
  options.type = args.type;
  options.selection = args.selection;
  if (!args.fields.empty()) options.fields = {args.fields};
  options.from_now = args.from == "now";
  options.poll_interval = Duration(static_cast<std::int64_t>(args.interval_s * 1e6));
  options.decode = false;
  if (args.cursor_file.empty() || ::access(args.cursor_file.c_str(), F_OK) != 0) return options;
  FJORD_TRY_ASSIGN(options.resume, read_cursor_file(args.cursor_file));
  return options;
}

/// Prints the changes of a subscription and keeps its cursor in a file.
class ChangePrinter {
 public:
  ChangePrinter(const SubscribeArgs& args, Subscription& changes, std::vector<std::string> names)
      : args_(args),
        changes_(changes),
        names_(std::move(names)),
        types_(changes.types()),
        lines_(types_, names_, true) {}

  /// Returns the exit code of the command.
  int run() {
    while (const Change* change = next()) {
      switch (change->kind) {
        case Change::Kind::Put:
        case Change::Kind::Remove:
          if (const Status status = print_change(*change); !status) return report(status);
          break;
        case Change::Kind::CaughtUp:
          if (const Status status = save(true); !status) return report(status);
          if (args_.once) return kOk;
          break;
        case Change::Kind::Resync:
          return tell_resync(change->version);
      }
    }
    return report(save_status_ ? changes_.status() : save_status_);
  }

 private:
  /// Returns the next change. Prints the lines so far before it waits. Returns null at the end.
  const Change* next() {
    const Change* change = changes_.next_within(Duration(0));
    if (change != nullptr || changes_.is_over()) return change;
    save_status_ = save(false);
    if (!save_status_) return nullptr;
    return changes_.next();
  }

  Status print_change(const Change& change) {
    if (changes_.types() != types_) {
      types_ = changes_.types();
      lines_ = DocumentLines(types_, names_, true);
    }
    FJORD_TRY(lines_.append_entry(*change.entry, text_));
    return text_.size() < kChangePrintBytes ? Status::ok() : save(false);
  }

  /// Prints the lines so far and saves the position behind them, at most once a second unless `at_once`.
  Status save(bool at_once) {
    print(text_);
    text_.clear();
    // Detects a closed standard output before the cursor counts these documents as given.
    FJORD_TRY(flush_output());
    const auto now = SteadyClock::now();
    const bool prints = args_.print_cursors || args_.print_tokens;
    const bool is_wanted = prints || !args_.cursor_file.empty();
    if (!is_wanted || (!at_once && now < next_save_)) return Status::ok();
    next_save_ = now + std::chrono::seconds(1);
    std::string text = changes_.cursor();
    if (text == saved_) return Status::ok();
    if (prints) {
      const char* const name = args_.print_cursors ? "cursor" : "token";
      print_line(JsonText().begin_object().key(name).text(text).end_object().str());
    }
    if (!args_.cursor_file.empty()) FJORD_TRY(replace_file(args_.cursor_file, text + '\n'));
    saved_ = std::move(text);
    return Status::ok();
  }

  int tell_resync(Timestamp horizon) {
    JsonText line;
    line.begin_object().key("resync").boolean(true).key("horizon_us").number(horizon.us).end_object();
    print(std::exchange(text_, {}));
    print_line(line.str());
    complain(
        "RESYNC: the cluster has forgotten removes that were not printed yet; remove the file of the cursor and your "
        "data, "
        "and subscribe again");
    return kRefused;
  }

  const SubscribeArgs& args_;
  Subscription& changes_;
  const std::vector<std::string> names_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  DocumentLines lines_;
  std::string text_;   ///< Lines to print.
  std::string saved_;  ///< Position saved last.
  SteadyClock::time_point next_save_{};
  Status save_status_;
};

}  // namespace

int run_subscribe(const SubscribeArgs& args) {
  auto options = options_of(args);
  if (!options) return report(options.error());
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  Subscription changes = client.subscribe(std::move(*options));
  if (!changes.status()) return report(name_cursor_file(changes.status(), args.cursor_file));
  auto query = DocumentQuery::make(args.type, args.selection, args.fields, *changes.types());
  if (!query) return report(query.error());
  return ChangePrinter(args, changes, std::move(query->names)).run();
}

}  // namespace fjord::cli
