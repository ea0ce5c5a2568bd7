#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <map>
#include <mutex>

#include "commands.h"
#include "fjord/client/connect.h"
#include "fjord/document/docblock.h"
#include "fjord/document/field_set.h"
#include "fjord/document/json.h"
#include "fjord/visitors/visitor_session.h"
#include "progress.h"

namespace fjord::cli {
namespace {

/// Prints docblocks as lines of JSON.
class Printer {
 public:
  /// `fields` are cut out here; empty: all that came.
  Printer(std::shared_ptr<const DocumentTypeRepo> types, std::vector<std::string> fields)
      : types_(std::move(types)), fields_(std::move(fields)) {}

  Status print_block(const std::string& block) {
    DocBlockReader reader(block);
    lines_.clear();
    while (const auto entry = reader.next()) {
      if (entry->removed) continue;
      if (entry->header.empty()) {  // The field set [none].
        ++count_;
        continue;
      }
      FJORD_TRY_ASSIGN(const DocumentView view, DocumentView::open(*types_, entry->header, entry->body));
      if (view.type() == nullptr) {
        return Status(StatusCode::UnknownType, fmt::format("the schema of {} is not known here", view.id()));
      }
      FJORD_TRY_ASSIGN(const std::string json, to_json_document(view, fields_of(*view.type())));
      lines_ += json;
      lines_ += '\n';
      ++count_;
    }
    if (!reader.ok()) return Status(StatusCode::Corruption, "a block of documents is malformed");
    print(lines_);
    return Status::ok();
  }

  std::uint64_t count() const { return count_; }

 private:
  std::span<const Field* const> fields_of(const DocumentType& type) {
    auto [at, is_new] = by_type_.try_emplace(&type);
    if (is_new) {
      for (const std::string& name : fields_) {
        if (const Field* field = type.field(name)) at->second.push_back(field);
      }
    }
    return at->second;
  }

  std::shared_ptr<const DocumentTypeRepo> types_;
  std::vector<std::string> fields_;
  std::map<const DocumentType*, std::vector<const Field*>> by_type_;
  std::string lines_;
  std::uint64_t count_ = 0;
};

/// What of --fields the servers can do: they need to know the type. Empty: nothing.
std::string field_set_of(const VisitArgs& args) {
  if (args.fields.starts_with('[') || args.fields.find(':') != std::string::npos) return args.fields;
  return args.fields.empty() || args.type.empty() ? std::string() : fmt::format("{}:{}", args.type, args.fields);
}

/// The names in "a,b", without a type: fields of whatever type has them.
std::vector<std::string> names_of(const std::string& fields) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < fields.size();) {
    const std::size_t end = std::min(fields.find(',', at), fields.size());
    if (end > at) names.push_back(fields.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

Status check_fields(const VisitArgs& args, const std::vector<std::string>& names, const DocumentTypeRepo& types) {
  if (!args.type.empty() && types.find(args.type) == nullptr) {
    return Status(StatusCode::UnknownType, fmt::format("there is no document type \"{}\"", args.type));
  }
  for (const std::string& name : names) {
    bool known = false;
    for (const auto& type : types.types()) {
      known = known || ((args.type.empty() || type->is_a(args.type)) && type->field(name) != nullptr);
    }
    if (!known) {
      return Status(StatusCode::InvalidField,
                    fmt::format("no field \"{}\" in {}", name, args.type.empty() ? "any type" : args.type));
    }
  }
  return Status::ok();
}

/// Without a type, the documents that jobs keep for themselves are left out. Documents that have none of the fields are
/// not.
std::string selection_of(const VisitArgs& args) {
  const std::string type = args.type.empty() ? "not fjord_tuples" : args.type;
  return args.selection.empty() ? type : fmt::format("({}) and ({})", type, args.selection);
}

}  // namespace

int run_visit(const VisitArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  if (Status status = (*connection)->sync().refresh_schemas(); !status) return report(status);
  const auto snapshot = (*connection)->client().snapshot();
  const std::string field_set = field_set_of(args);
  const std::vector<std::string> names = field_set.empty() ? names_of(args.fields) : std::vector<std::string>();
  if (Status status = check_fields(args, names, *snapshot->types()); !status) return report(status);
  if (!field_set.empty()) {
    if (const auto parsed = FieldSet::parse(*snapshot->types(), field_set); !parsed) return report(parsed.error());
  }

  visitors::VisitorSessionOptions options;
  options.selection = selection_of(args);
  options.field_set = field_set;
  options.no_progress_limit = args.common.timeout();
  rpc::SnapshotHolder holder;
  if (const auto updated = holder.update(snapshot->info()); !updated) return report(updated.error());

  Printer printer(snapshot->types(), names);
  Progress progress("visit", "docs");
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> end;
  const auto finish = [&](Status status) {
    const std::lock_guard lock(mutex);
    if (!end) end = std::move(status);
    changed.notify_one();
  };
  Executor& executor = (*connection)->executor();
  std::unique_ptr<visitors::VisitorSession> session;
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_docblock = [&](BucketId, const std::string& block) {
    if (Status status = printer.print_block(block); !status) {
      session->cancel();
      return finish(status);
    }
    const visitors::VisitProgress done = session->progress();
    progress.update(
        done.buckets_total == 0 ? -1 : static_cast<double>(done.buckets_done) / static_cast<double>(done.buckets_total),
        printer.count());
  };
  callbacks.on_finished = [&](Status status) { finish(std::move(status)); };
  executor.post([&] {
    session =
        std::make_unique<visitors::VisitorSession>(options, std::move(callbacks), (*connection)->transport(), holder,
                                                   (*connection)->runtime().clock, Random::from_system(), executor);
    session->start();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return end.has_value(); });
  const Status status = *end;
  end.reset();
  executor.post([&] {
    session.reset();
    finish(Status::ok());
  });
  changed.wait(lock, [&] { return end.has_value(); });
  std::fflush(stdout);
  return status ? static_cast<int>(kOk) : report(status);
}

}  // namespace fjord::cli
