#include <fmt/format.h>

#include "options/options.h"

namespace fjord::cli {
namespace {

void add_feed_options(CLI::App& app, FeedArgs& args) {
  app.add_option("--errors-shown", args.errors_shown,
                 "Messages about single records; the rest is counted (default: 100)")
      ->check(whole_number());
  app.add_option("--in-flight", args.in_flight, "Operations under way at once, at most (default: 2048)")
      ->check(whole_number(1));
  app.add_flag("--background", args.background, "Give way to the operations of others when there is too much to do");
  add_progress(app, args.progress);
  add_common(app, args.common);
}

void add_write_options(CLI::App& app, DocumentArgs& args, bool may_create) {
  app.add_option("--condition", args.condition, "Only if this holds for the document as it is stored, else exit code 4")
      ->type_name("CONDITION");
  app.add_option("--if-version", args.if_version,
                 "Only if the document has this version, which `get --versions` prints; 0: only if there is none; else "
                 "exit code 4 and the version that it has")
      ->check(whole_number())
      ->type_name("VERSION");
  if (may_create) {
    app.add_flag("--create", args.create, "Go on if there is no document, whatever the condition");
  }
  app.add_option(
         "--durability", args.durability,
         "process: survives the end of the processes; sync: a loss of power too (default: as the cluster is set)")
      ->check(CLI::IsMember({"default", "process", "sync"}))
      ->type_name("LEVEL");
  app.add_option("--idempotency-key,--token", args.token,
                 "Text of at most 64 bytes: a repetition with the same one is applied once (default: none for a put or "
                 "remove without a condition, else random)")
      ->type_name("KEY");
}

void add_type(CLI::App& app, DocumentArgs& args, bool may_be_bulk) {
  const std::string what = "Document type of an id that leaves it out, as in id:shop::1";
  app.add_option("--type", args.type, may_be_bulk ? what + "; with --selection: of the documents" : what)
      ->type_name("TYPE");
}

/// Adds --cursor, and its former names --progress FILE and --resume FILE as hidden options.
void add_cursor(CLI::App& app, CursorArgs& cursor, std::string& progress, const std::string& help) {
  app.add_option("--cursor", cursor.file, help)->type_name("FILE");
  app.add_option("--resume", cursor.resumed_file)->type_name("FILE")->group(kHidden);
  const auto take = [&cursor, &progress](const std::string& text) {
    if (text == "auto" || text == "always" || text == "never") {
      progress = text;
    } else {
      cursor.kept_file = text;
      complain(
          fmt::format("--progress {0}: --progress says when progress is shown (auto, always or never); {0} is taken "
                      "as the file of a cursor, for which there is --cursor {0}",
                      text));
    }
  };
  app.add_option_function<std::string>("--progress", take, kProgressHelp)->type_name("WHEN:{auto,always,never}");
}

/// Adds the options of update and remove with --selection.
void add_bulk_options(CLI::App& app, BulkArgs& args) {
  app.add_option("--selection,--where", args.selection,
                 "All documents of --type that this condition holds for, instead of one")
      ->type_name("CONDITION");
  app.add_flag("--dry-run", args.dry_run, "With --selection: only count them");
  app.add_flag("--yes", args.yes, "With --selection: do it; without, they are counted");
  add_cursor(app, args.cursor, args.progress,
             "With --selection: keep in this file how far it is, and go on from it if it is there; no document is "
             "changed twice");
  app.add_option("--in-flight", args.in_flight,
                 "With --selection: operations under way at once, at most (default: 2048)")
      ->check(whole_number(1));
}

/// Returns true if --selection is given. Checks the options that need or exclude it.
bool is_bulk(const CLI::App& app, const std::string& type) {
  if (app.count("--selection") == 0) {
    for (const char* other : {"--dry-run", "--yes", "--cursor", "--progress", "--resume", "--in-flight"}) {
      if (app.count(other) != 0) throw CLI::RequiresError(other, "--selection");
    }
    return false;
  }
  for (const char* other : {"--condition", "--if-version", "--create", "--durability", "--idempotency-key"}) {
    if (app.get_option_no_throw(other) != nullptr && app.count(other) != 0) {
      throw CLI::ExcludesError(other, "--selection");
    }
  }
  if (type.empty()) throw CLI::RequiresError("--selection", "--type");
  return true;
}

void add_visitor_options(CLI::App& app, std::uint32_t& visitors_per_node, std::uint32_t& buckets_per_visitor,
                         std::uint32_t& buckets_at_once, std::string& priority, const char* default_priority) {
  app.add_option("--visitors-per-node", visitors_per_node, "Visitors at once on each storage node (default: 4)")
      ->check(CLI::Range(1, 64));
  app.add_option("--buckets-per-visitor", buckets_per_visitor,
                 "Buckets that one visitor goes through (default: chosen by the system)")
      ->check(CLI::Range(0, 4096));
  app.add_option("--buckets-at-once", buckets_at_once, "Buckets that a visitor reads at the same time (default: 1)")
      ->check(CLI::Range(1, 64));
  app.add_option("--priority", priority,
                 std::string("Storage nodes give more of their time to visitors of high priority than to normal ones, "
                             "and to both more than to background (default: ") +
                     default_priority + ")")
      ->check(CLI::IsMember({"high", "normal", "background"}))
      ->type_name("CLASS");
}

}  // namespace

void add_feeds(CLI::App& app, FeedArgs& args, Action& action) {
  CLI::App* feed = command(
      app, "feed", "Puts, updates and removes documents: JSONL or a JSON array of operations, also in gzip format",
      "echo '{\"put\": \"id:shop:music::1\", \"fields\": {\"title\": \"Help!\"}}' | fjord feed -");
  feed->add_option("FILE", args.files, "Files, or - for standard input")->required();
  add_feed_options(*feed, args);
  feed->callback([&] { action = [&] { return run_feed(args); }; });

  CLI::App* rows = command(
      app, "import", "Stores the rows of a table, or what `fjord export` wrote: CSV with a header row, JSONL, Parquet",
      "fjord import --type car --id-field vin cars.csv\n  fjord import music.jsonl.gz");
  rows->add_option("FILE", args.files, "FILE.csv, FILE.jsonl or FILE.parquet, the first two also in gzip format")
      ->required();
  rows->add_option("--type", args.type, "Document type of the rows; without, they are what `fjord export` wrote")
      ->type_name("TYPE");
  CLI::Option* id_field =
      rows->add_option("--id-field", args.id_field, "Column whose value makes the id, id:NAMESPACE:TYPE::VALUE")
          ->type_name("FIELD");
  CLI::Option* id_row = rows->add_flag("--id-row", args.id_row, "Make the id of the number of the row, from 1");
  id_row->excludes(id_field);
  rows->add_flag("--ignore-unknown", args.ignore_unknown,
                 "Leave out columns of a CSV file that are not fields of the type, instead of refusing it");
  rows->add_flag(
      "--convert-values", args.convert_values,
      "In JSON, take texts with digits for numbers, and numbers for texts, as feeds of other systems have them");
  rows->add_flag("--create-only", args.create_only,
                 "Leave documents that exist as they are, and count them: existing in the summary");
  rows->add_option("--cursor,--resume", args.cursor_file,
                   "Keep in this file how far it is, and go on from it if it is there")
      ->type_name("FILE");
  rows->add_option("--namespace", args.namespace_, "Namespace of the ids (default: the type)")->type_name("NAME");
  add_feed_options(*rows, args);
  rows->callback([&, id_field, id_row] {
    const bool has_id = !id_field->empty() || !id_row->empty();
    if (args.type.empty() && has_id) throw CLI::RequiredError("--type");
    if (!args.type.empty() && !has_id) throw CLI::RequiredError("--id-field or --id-row");
    action = [&] { return run_import(args); };
  });
}

namespace {

void add_put(CLI::App& app, DocumentArgs& args, Action& action) {
  CLI::App* put = command(app, "put", "Stores one document: a JSON object of its fields, or a line that `get` printed",
                          "fjord put id:shop:music::1 '{\"title\": \"Help!\"}'");
  put->add_option("ID", args.id, "Document id")->required();
  put->add_option("FILE", args.json, "JSON file, - for standard input, or the JSON object itself")->required();
  add_type(*put, args, false);
  add_write_options(*put, args, true);
  add_common(*put, args.common);
  put->callback([&] { action = [&] { return run_put(args); }; });
}

void add_update(CLI::App& app, DocumentArgs& args, BulkArgs& bulk, Action& action) {
  CLI::App* update =
      command(app, "update", "Changes fields of one document, or of all that match: a JSON object of paths and actions",
              "fjord update id:shop:music::1 '{\"plays\": {\"increment\": 1}}' --condition 'music.year > 1965'\n"
              "  fjord update --selection 'music.year > 1965' --type music '{\"old\": {\"assign\": false}}' --yes");
  update->add_option("ID", args.id, "Document id; with --selection: the changes, as JSON, a file, or -")->required();
  update->add_option("FILE", args.json, "JSON file, - for standard input, or the JSON object itself");
  add_type(*update, args, true);
  add_write_options(*update, args, true);
  add_bulk_options(*update, bulk);
  add_common(*update, args.common);
  update->callback([&, update] {
    if (is_bulk(*update, args.type)) {
      bulk.type = args.type;
      if (!args.json.empty()) throw CLI::ExcludesError("--selection", "FILE");
      bulk.changes = args.id;
      bulk.common = args.common;
      action = [&] { return run_bulk_update(bulk); };
    } else {
      if (args.json.empty()) throw CLI::RequiredError("FILE");
      action = [&] { return run_update(args); };
    }
  });
}

void add_get(CLI::App& app, DocumentArgs& args, Action& action) {
  CLI::App* get = command(app, "get", "Prints documents, one line of JSON each",
                          "fjord get id:shop:music::1\n  fjord get id:shop:music::1 --node storage.2 --versions");
  get->add_option("ID", args.ids, "Document ids")->required();
  add_type(*get, args, false);
  get->add_option("--fields", args.fields, "Only these fields: a,b or [id], [none], [all], TYPE:[document]")
      ->type_name("FIELDS");
  get->add_option("--consistency", args.consistency,
                  "session: only what no crash can undo; waits for writes of the document under way")
      ->check(CLI::IsMember({"default", "session"}))
      ->type_name("WHAT");
  get->add_flag("--versions", args.versions, "Print each document's version too, for --if-version of a write");
  get->add_option("--node", args.node,
                  "Ask the replica on this storage node alone, as in storage.2, whatever the others hold")
      ->type_name("NODE");
  add_common(*get, args.common);
  get->callback([&] { action = [&] { return run_get(args); }; });
}

void add_remove(CLI::App& app, DocumentArgs& args, BulkArgs& bulk, Action& action) {
  CLI::App* remove =
      command(app, "remove", "Removes documents, or all that match; one that is not there is no error",
              "fjord remove id:shop:music::1\n  fjord remove --selection 'music.year < 1900' --type music --yes");
  remove->add_option("ID", args.ids, "Document ids");
  add_type(*remove, args, true);
  add_write_options(*remove, args, false);
  add_bulk_options(*remove, bulk);
  add_common(*remove, args.common);
  remove->callback([&, remove] {
    if (is_bulk(*remove, args.type)) {
      bulk.type = args.type;
      if (!args.ids.empty()) throw CLI::ExcludesError("--selection", "ID");
      bulk.common = args.common;
      action = [&] { return run_bulk_remove(bulk); };
    } else {
      if (args.ids.empty()) throw CLI::RequiredError("ID");
      if (args.if_version && args.ids.size() > 1) {
        throw CLI::ValidationError("--if-version", "is the version of one document; give one id");
      }
      action = [&] { return run_remove(args); };
    }
  });
}

}  // namespace

void add_documents(CLI::App& app, DocumentArgs& args, BulkArgs& bulk, Action& action) {
  add_put(app, args, action);
  add_update(app, args, bulk, action);
  add_get(app, args, action);
  add_remove(app, args, bulk, action);
}

void add_visit(CLI::App& app, VisitArgs& args, Action& action) {
  CLI::App* visit = command(app, "visit", "Prints all documents that match, as JSONL",
                            "fjord visit --type music --selection 'music.year > 1965' --fields title,year");
  visit->add_option("--type", args.type, "Only documents of this type")->type_name("TYPE");
  visit->add_option("--selection", args.selection, "Only documents that this condition holds for")
      ->type_name("CONDITION");
  visit
      ->add_option("--fields", args.fields,
                   "Only these fields: a,b or TYPE:a,b or [id], [none], [all], TYPE:[document]")
      ->type_name("FIELDS");
  visit
      ->add_option(
          "--from", args.from,
          "Only versions written since: 2026-11-21, 2026-11-21T19:00:00Z, 15m, 2h, 3d (ago), or seconds since 1970")
      ->type_name("TIME");
  visit->add_option("--to", args.to, "Only versions written until then")->type_name("TIME");
  visit->add_option("--visitor", args.visitor, "What runs on the storage nodes: dump (default), or one of a plugin")
      ->type_name("NAME");
  visit->add_option("--param", args.parameters, "A parameter of the visitor, k=v; may be given several times")
      ->type_name("K=V")
      ->allow_extra_args(false);
  visit->add_flag("--removes", args.removes, "Removed documents too, as {\"remove\": ID}");
  visit->add_flag("--snapshot", args.snapshot,
                  "Each bucket as it was at one moment; printed when all of it has come, and in memory until then");
  visit->add_option("--limit", args.limit, "Number of documents to end after, 1 or more (default: all)")
      ->check(whole_number(1))
      ->type_name("DOCUMENTS");
  visit->add_flag("--count", args.count,
                  "Only say how many there are; with --fields '[id]' their contents are not read");
  CLI::Option* slices =
      visit->add_option("--slices", args.slices, "Number of slices to visit at once")->check(CLI::Range(1, 1024));
  visit->add_option("--slice", args.slice, "Only one of several slices, 1/4 to 4/4, for clients that share the work")
      ->type_name("K/N")
      ->excludes(slices);
  add_cursor(
      *visit, args.cursor, args.progress,
      "Keep in this file how far the visit is, also when it ends with SIGINT, SIGTERM or --limit, and go on from "
      "it if it is there. Nothing comes twice, unless the process was killed: then what it printed in its last "
      "second does");
  visit->add_option("--show-progress", args.progress)
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->type_name("WHEN")
      ->group(kHidden);
  add_visitor_options(*visit, args.visitors_per_node, args.buckets_per_visitor, args.buckets_at_once, args.priority,
                      "normal with --limit, else background");
  visit->add_flag("--explain", args.explain, "Say at the end which buckets were read and skipped, and why");
  add_common(*visit, args.common);
  visit->callback([&] { action = [&] { return run_visit(args); }; });
}

void add_export(CLI::App& app, ExportArgs& args, Action& action) {
  CLI::App* to = command(app, "export", "Writes all documents that match to a file, which `fjord import` reads",
                         "fjord export music.jsonl.gz --type music --selection 'music.year > 1965'\n"
                         "  fjord export music.csv --type music --fields title,year");
  to->add_option("FILE", args.file, "FILE.jsonl, FILE.csv (with --type), both also with .gz, or FILE.parquet")
      ->required();
  to->add_option("--type", args.type, "Only documents of this type")->type_name("TYPE");
  to->add_option("--selection", args.selection, "Only documents that this condition holds for")->type_name("CONDITION");
  to->add_option("--fields", args.fields, "Only these fields: a,b or TYPE:a,b")->type_name("FIELDS");
  to->add_option("--from", args.from, "Only versions written since, as in `fjord visit`")->type_name("TIME");
  to->add_option("--to", args.to, "Only versions written until then")->type_name("TIME");
  to->add_option("--slice", args.slice, "Only one of several slices, 1/4 to 4/4")->type_name("K/N");
  CLI::Option* resume = to->add_flag("--resume", args.resume, "Go on with a file that was interrupted");
  to->add_flag("--overwrite", args.overwrite, "Whatever is there")->excludes(resume);
  to->add_flag("--snapshot", args.snapshot, "Each bucket as it was at one moment");
  add_visitor_options(*to, args.visitors_per_node, args.buckets_per_visitor, args.buckets_at_once, args.priority,
                      "background");
  add_progress(*to, args.progress);
  add_common(*to, args.common);
  to->callback([&] { action = [&] { return run_export(args); }; });
}

void add_subscribe(CLI::App& app, SubscribeArgs& args, Action& action) {
  CLI::App* subscribe =
      command(app, "subscribe", "Prints documents that match, and from then on all that changes, as JSONL",
              "fjord subscribe --type music --cursor music.cursor >> music.changes.jsonl");
  subscribe->add_option("--type", args.type, "Only documents of this type")->type_name("TYPE");
  subscribe
      ->add_option("--selection", args.selection,
                   "Only documents that this condition holds for; one that it no longer holds for is given as removed")
      ->type_name("CONDITION");
  subscribe->add_option("--fields", args.fields, "Only these fields: a,b or TYPE:a,b")->type_name("FIELDS");
  subscribe
      ->add_option("--cursor,--token", args.cursor_file,
                   "Keep in this file what was printed, and go on from it if it is there")
      ->type_name("FILE");
  subscribe->add_option("--from", args.from, "Without a cursor: start, all documents first (default), or now")
      ->check(CLI::IsMember({"start", "now"}))
      ->type_name("WHERE");
  subscribe->add_option("--interval", args.interval_s, "Time between two looks at the cluster (default: 500ms)")
      ->transform(duration(0.01, 3600.0))
      ->type_name("DURATION");
  subscribe->add_flag("--print-cursors", args.print_cursors,
                      "Print {\"cursor\": TEXT} now and then: a subscriber that has all lines before it may keep it");
  subscribe->add_flag("--print-tokens", args.print_tokens)->group(kHidden);
  subscribe->add_flag("--once", args.once, "End when everything up to now was printed");
  add_common(*subscribe, args.common);
  subscribe->callback([&] { action = [&] { return run_subscribe(args); }; });
}

}  // namespace fjord::cli
