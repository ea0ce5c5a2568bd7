// Uses a running cluster through the library alone, and reports errors: fjord-library-check HOST:PORT FOLDER. Files go
// into FOLDER. test/integration/library_test.py runs it.

#include "library_check.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/detached.h"

int failures = 0;

namespace {

using namespace fjord;

/// Writes and reads one document in a coroutine, on the client's thread.
Detached write_and_read(Client& client, std::string id, std::shared_ptr<detail::PendingState<std::string>> name) {
  const WriteResult put = co_await client.put_json(id, R"({"name": "coroutine", "price": 1})");
  const ReadResult read = co_await client.get(id);
  name->set(put && read ? std::string(*read->text("name")) : read.status.to_string());
}

/// Counts the documents of a visit in a coroutine. Reports the number, or the negated number if the visit failed.
Detached count_visit(Visit& visit, std::shared_ptr<detail::PendingState<int>> result) {
  int count = 0;
  while (!visit.is_over()) {
    while (visit.try_next() != nullptr) ++count;
    if (const Status ready = co_await visit.ready(); !ready) break;
  }
  result->set(visit.status() ? count : -count);
}

/// Counts up to `most` documents of a visit that the coroutine opens, and destroys on the client's thread. Reports the
/// visit's cursor if it ended early.
Detached count_some(Client& client, VisitOptions options, int most,
                    std::shared_ptr<detail::PendingState<std::pair<int, std::string>>> result) {
  int count = 0;
  std::string cursor;
  {
    Visit visit = client.visit(std::move(options));
    while (count < most) {
      const Document* document = co_await visit.next();
      if (document == nullptr) break;
      ++count;
    }
    CHECK_OK(visit.status());
    if (count == most) cursor = visit.cursor();
  }
  result->set({count, cursor});
}

/// Takes changes until there are no more. Reports the number of events and the status.
Detached count_changes(Subscription& changes, std::atomic<int>& caught_up,
                       std::shared_ptr<detail::PendingState<Status>> result) {
  while (const Change* change = co_await changes.next()) {
    if (change->kind == Change::Kind::CaughtUp) ++caught_up;
  }
  result->set(changes.status());
}

/// Copies documents in a coroutine until the subscription has caught up, and then reports the ids.
Detached copy_changes(Subscription& changes, std::shared_ptr<detail::PendingState<std::set<std::string>>> result) {
  std::set<std::string> copy;
  for (bool is_caught_up = false; !is_caught_up && !changes.is_over();) {
    while (const Change* change = changes.try_next()) {
      if (change->kind == Change::Kind::Put) copy.insert(change->id);
      if (change->kind == Change::Kind::Remove) copy.erase(change->id);
      if (change->kind == Change::Kind::CaughtUp) is_caught_up = true;
    }
    if (is_caught_up) break;
    if (const Status ready = co_await changes.ready(); !ready) break;
  }
  result->set(std::move(copy));
}

/// Documents and updates from JSON, which are checked before anything is sent.
void check_from_json(Client& client) {
  const auto document = client.new_document(id_of(2), R"({"name": "json", "price": 6})");
  CHECK(document && document->text("name") == "json" && document->integer("price") == 6);
  if (document) CHECK_OK(client.put(*document).wait().status);
  const auto update = client.new_update(id_of(2), R"({"price": {"increment": 2}})");
  CHECK_OK(update.status());
  if (update) CHECK_OK(client.update(*update).wait().status);
  const ReadResult read = client.get(id_of(2));
  CHECK(read && read->text("name") == "json" && read->integer("price") == 8);
  CHECK(client.new_document(id_of(2), R"({"colour": 1})").status().code() == StatusCode::InvalidField);
  CHECK(client.new_document(id_of(2), R"({"name": )").status().code() == StatusCode::InvalidArgument);
  CHECK(client.new_document("id:shop:nothing::1", "{}").status().code() == StatusCode::UnknownType);
  CHECK(client.new_update(id_of(2), R"({"colour": {"assign": 1}})").status().code() == StatusCode::InvalidField);
  // A read from one node: each replica has the document, and there is no node 99.
  ReadOptions options;
  options.node = 99;
  CHECK(client.get(id_of(2), options).wait().status.code() == StatusCode::NotFound);
  CHECK(client.get_json(id_of(2), options).wait().status.to_string().find("storage.99") != std::string::npos);
  CHECK(to_string(client.remove(id_of(2)).wait().outcome) == "applied");
}

void check_documents(Client& client) {
  auto item = client.new_document(id_of(0));
  CHECK_OK(item.status());
  if (!item) return;
  CHECK_OK(item->set("name", "tea"));
  CHECK_OK(item->set("price", 3));
  const WriteResult put = client.put(*item, {.durability = WriteDurability::Sync});
  CHECK_OK(put.status);
  CHECK(put.outcome == WriteOutcome::Applied);

  const ReadResult read = client.get(id_of(0));
  CHECK_OK(read.status);
  CHECK(read && read->text("name") == "tea" && read->integer("price") == 3 && read->number("price") == 3.0);
  CHECK(read.version == put.version);
  const ReadResult names = client.get(id_of(0), {.fields = "name"});
  CHECK(names && names->has("name") && !names->has("price"));
  const JsonResult json = client.get_json(id_of(0));
  CHECK(json && json.json.find("\"tea\"") != std::string::npos);
  const JsonResult fields = client.get_fields_json(id_of(0), {.fields = "name"});
  CHECK(fields && fields.json == R"({"name":"tea"})" && fields.version == put.version);
  CHECK(client.get_fields_json(id_of(-1), {}).wait().status.code() == StatusCode::NotFound);
  CHECK(client.get(id_of(-1)).wait().status.code() == StatusCode::NotFound);

  // A write that requires another version is refused, and returns the current version.
  const WriteResult refused = client.put_json(id_of(0), R"({"price": 4})", {.required_version = Timestamp{1}});
  CHECK(refused.status.code() == StatusCode::TestAndSetFailed);
  CHECK(refused.current_version == put.version);
  CHECK_OK(client.put_json(id_of(0), R"({"price": 4})", {.required_version = put.version}).wait().status);
  const WriteResult unmet = client.remove(id_of(0), {.condition = "item.price == 3"});
  CHECK(unmet.status.code() == StatusCode::TestAndSetFailed);

  auto update = client.new_update(id_of(0));
  CHECK_OK(update.status());
  if (update) {
    CHECK_OK(update->add("price", UpdateAction::Increment, 5));
    const WriteResult updated = client.update(*update);
    CHECK_OK(updated.status);
    // A write with the same idempotency key is the same write.
    const WriteResult again = client.update(*update, {.idempotency_key = updated.idempotency_key});
    CHECK_OK(again.status);
    const ReadResult after = client.get(id_of(0), {.consistency = ReadConsistency::Linearizable});
    CHECK(after && after->integer("price") == 9);
  }
  CHECK(client.put_json(id_of(0), R"({"colour": 4})").wait().status.code() == StatusCode::InvalidField);
  check_from_json(client);

  const auto name = std::make_shared<detail::PendingState<std::string>>(nullptr);
  write_and_read(client, id_of(1), name);
  CHECK(name->wait() == "coroutine");
  Document kept = *client.get(id_of(1)).wait().document;
  CHECK(kept.type().name() == "item");
}

void feed(Client& client) {
  std::vector<Pending<WriteResult>> puts;
  for (int n = 0; n < kDocuments; ++n) {
    puts.push_back(client.put_json(id_of(n), fmt::format(R"({{"name": "n{}", "price": {}}})", n, n % 10)));
  }
  for (auto& put : puts) CHECK_OK(std::move(put).wait().status);
}

/// Coroutines that own their visits take some documents, end the visits on the client's thread and go on later.
void check_awaited_visits(Client& client) {
  for (const std::uint64_t slices : {1U, 3U}) {
    int count = 0;
    int runs = 0;
    std::string cursor;
    do {
      const auto result = std::make_shared<detail::PendingState<std::pair<int, std::string>>>(nullptr);
      count_some(client, {.type = "item", .slices = slices, .resume = cursor, .buffer_bytes = 1000}, 700, result);
      const auto [taken, reached] = result->wait();
      count += taken;
      cursor = reached;
      ++runs;
    } while (!cursor.empty());
    CHECK(count == kDocuments);
    CHECK(runs == kDocuments / 700 + 1);
  }
}

/// Waits for subscriptions that deliver nothing any more: one is stopped, one is destroyed.
void check_awaited_changes(Client& client) {
  std::atomic<int> caught_up = 0;
  std::vector<std::shared_ptr<detail::PendingState<Status>>> ends;
  std::vector<std::unique_ptr<Subscription>> several;
  for (int n = 0; n < 2; ++n) {
    several.push_back(std::make_unique<Subscription>(client.subscribe({.type = "item", .buffer_bytes = 2000})));
    ends.push_back(std::make_shared<detail::PendingState<Status>>(nullptr));
    count_changes(*several.back(), caught_up, ends.back());
  }
  while (caught_up < 4) std::this_thread::yield();
  CHECK(!ends[0]->is_set() && !ends[1]->is_set());
  several[0]->stop();
  several[1].reset();
  for (auto& end : ends) CHECK(end->wait().code() == StatusCode::Cancelled);
}

/// A visit that is stopped and resumed repeatedly gives each document once; a slice gives a part of them.
void check_slices(Client& client) {
  for (const std::uint64_t slices : {1U, 3U}) {
    std::map<std::string, int> seen;
    std::string cursor;
    for (bool is_over = false; !is_over;) {
      Visit visit =
          client.visit({.selection = "item.price < 5", .slices = slices, .resume = cursor, .buffer_bytes = 1000});
      int left = 700;
      const Document* document = nullptr;
      while (left-- > 0 && (document = visit.next()) != nullptr) ++seen[document->id().str()];
      is_over = document == nullptr;
      CHECK_OK(visit.status());
      cursor = visit.cursor();
      const std::function<std::string()> cursor_before = visit.cursor_of_now();
      CHECK(visit.next() == nullptr || !is_over);  // Behind the cursor, so the next visit gives it again.
      CHECK(cursor_before() == cursor);
    }
    CHECK(seen.size() == kDocuments / 2);
    for (const auto& [id, times] : seen) CHECK(times == 1);
  }
  Visit slice = client.visit({.type = "item", .fields = {"name"}, .slice = VisitSlice{0, 2}});
  std::size_t in_slice = 0;
  for (const Document& document : slice) {
    CHECK(document.has("name") && !document.has("price"));
    ++in_slice;
  }
  CHECK_OK(slice.status());
  CHECK(in_slice > 0 && in_slice < kDocuments);
  CHECK(slice.statistics().buckets_done > 0);
}

void check_stopped_visits(Client& client) {
  Visit stopped = client.visit({.type = "item"});
  CHECK(stopped.next() != nullptr);
  std::thread([&] { stopped.stop(); }).join();
  while (stopped.next() != nullptr) {
  }
  CHECK(stopped.status().code() == StatusCode::Cancelled);
  // The visit is stopped when all documents have arrived, but few were taken. Resuming it gives the rest.
  Visit early = client.visit({.type = "item"});
  std::size_t taken = early.next() != nullptr ? 1 : 0;
  while (early.statistics().fraction_done() < 1) std::this_thread::yield();
  CHECK_OK(client.get(id_of(0)).wait().status);  // The client's thread handled the end of the visit before this answer.
  early.stop();
  while (early.next() != nullptr) ++taken;
  CHECK(early.status().code() == StatusCode::Cancelled);
  Visit late = client.visit({.type = "item", .resume = early.cursor()});
  while (late.next() != nullptr) ++taken;
  CHECK_OK(late.status());
  CHECK(taken == kDocuments);
}

/// Several visits are read without blocking. They take turns on the client's thread, with small buffers.
void check_visits_without_blocking(Client& client) {
  std::vector<Visit> several;
  std::vector<std::shared_ptr<detail::PendingState<int>>> counts;
  for (int n = 0; n < 4; ++n) {
    several.push_back(client.visit({.type = "item", .snapshot = n % 2 == 1, .slices = 1U + n, .buffer_bytes = 2000}));
    counts.push_back(std::make_shared<detail::PendingState<int>>(nullptr));
  }
  for (std::size_t n = 0; n < several.size(); ++n) count_visit(several[n], counts[n]);
  for (auto& count : counts) CHECK(count->wait() == kDocuments);
  const auto dropped = std::make_shared<detail::PendingState<Status>>(nullptr);
  {
    Visit never = client.visit({.selection = "item.price > 100"});
    while (never.try_next() == nullptr && !never.is_over() && !never.would_wait()) {
    }
    never.ready().then([dropped](Status status) { dropped->set(std::move(status)); });
  }
  const Status ended = dropped->wait();
  CHECK(ended || ended.code() == StatusCode::Cancelled);
}

void check_visits(Client& client) {
  check_slices(client);
  check_stopped_visits(client);
  check_visits_without_blocking(client);
  check_awaited_visits(client);
  Visit wrong = client.visit({.selection = "item.colour == 1"});
  CHECK(wrong.next() == nullptr && !wrong.status());
  Visit snapshot = client.visit({.type = "item", .ids_only = true, .snapshot = true});
  std::size_t ids = 0;
  while (const auto entry = snapshot.next_entry()) ids += entry->removed ? 0 : 1;
  CHECK_OK(snapshot.status());
  CHECK(ids == kDocuments);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(std::move(line));
  return lines;
}

/// Exports to a file, and stops and resumes on the way.
void check_export(Client& client, const std::string& folder) {
  const std::string path = folder + "/items.jsonl";
  ExportSummary exported;
  int stops = 0;
  for (ExportMode mode = ExportMode::New;; mode = ExportMode::Resume) {
    std::stop_source stop;
    exported = client.export_to(path, {.type = "item",
                                       .mode = mode,
                                       .on_progress =
                                           [&](const ExportProgress& now) {
                                             if (now.documents > 500U * (stops + 1)) stop.request_stop();
                                           },
                                       .stop = stop.get_token()});
    if (exported.status.code() != StatusCode::Cancelled || ++stops > 20) break;
  }
  CHECK_OK(exported.status);
  CHECK(stops > 1);
  CHECK(exported.documents == kDocuments);
  CHECK(exported.bytes == std::filesystem::file_size(path));
  CHECK(exported.buckets_done_before > 0);
  const std::vector<std::string> lines = lines_of(path);
  CHECK(lines.size() == kDocuments);
  CHECK(std::set<std::string>(lines.begin(), lines.end()).size() == kDocuments);
  CHECK(client.export_to(path, {}).status.code() == StatusCode::AlreadyExists);
  CHECK(client.export_to(path, {.mode = ExportMode::Resume}).status.code() == StatusCode::AlreadyExists);
  CHECK(client.export_to(folder + "/items.txt", {}).status.code() == StatusCode::InvalidArgument);
  CHECK(client.export_to(folder + "/items.csv", {}).status.code() == StatusCode::InvalidArgument);
  CHECK_OK(client.import_from({path}, {}).status);  // Importing the same documents again succeeds.
}

/// Imports a table with two faulty rows under another namespace, and stops and continues on the way.
void check_import(Client& client, const std::string& folder) {
  const std::string table = folder + "/copy.csv";
  {
    std::ofstream file(table);
    file << "key,name,price,colour\n";
    for (int n = 0; n < 5000; ++n) file << fmt::format("{},n{},{},red\n", n, n, n == 17 ? "dear" : "11");
    file << "5000,too,many,cells,here\n";
  }
  std::vector<std::string> failures_seen;
  std::vector<std::string> warnings;
  std::stop_source stop;
  ImportOptions options{.type = "item", .id_field = "key", .id_namespace = "copy", .progress_file = table + ".done"};
  const ImportSummary refused = client.import_from({table}, options);
  CHECK(refused.stored == 0 && refused.unreadable_files.size() == 1);
  CHECK(refused.unreadable_files.size() == 1 &&
        refused.unreadable_files[0].message().find("colour") != std::string::npos);
  options.ignore_unknown = true;
  options.on_failure = [&](const ImportFailure& failure) { failures_seen.push_back(failure.to_string()); };
  options.on_warning = [&](const std::string& warning) { warnings.push_back(warning); };
  options.on_progress = [&](const ImportProgress&) { stop.request_stop(); };
  options.stop = stop.get_token();
  const ImportSummary half = client.import_from({table}, options);
  CHECK(half.status.code() == StatusCode::Cancelled);
  CHECK(half.stored > 0 && half.stored < 5000);
  options.stop = {};
  const ImportSummary rest = client.import_from({table}, options);
  CHECK_OK(rest.status);
  CHECK(!rest);
  CHECK(half.stored + rest.stored == 4999);
  CHECK(half.failed_total() + rest.failed_total() == 2);
  CHECK(!std::filesystem::exists(options.progress_file));
  CHECK(failures_seen.size() == 2 && failures_seen[0].starts_with(table + ":19: "));
  CHECK(failures_seen.size() == 2 && failures_seen[1].starts_with(table + ":5002: "));
  CHECK(!warnings.empty() && warnings[0].find("colour") != std::string::npos);
  const ImportSummary missing = client.import_from({folder + "/none.jsonl"}, {});
  CHECK(missing.status && missing.unreadable_files.size() == 1 && missing.failed.contains(StatusCode::NotFound));
  CHECK(client.import_from({table, table}, options).status.code() == StatusCode::InvalidArgument);
  const BulkSummary removed = client.remove_where("item.price == 11", {.type = "item"});
  CHECK(removed && removed.applied == 4999);
}

void check_aggregation_and_jobs(Client& client) {
  const AggregateResult rows = client.aggregate({.type = "item",
                                                 .group_by = {"price"},
                                                 .aggregates = {"count()", "avg(price) as mean", "min(name) as first"},
                                                 .order_by = {"price"}});
  CHECK_OK(rows.status);
  CHECK((rows.columns == std::vector<std::string>{"price", "count", "mean", "first"}));
  CHECK(rows.rows.size() == 10);
  for (std::size_t n = 0; n < rows.rows.size(); ++n) {
    CHECK(rows.rows[n][0] == Cell(static_cast<std::int64_t>(n)));
    CHECK(rows.rows[n][1] == Cell(std::int64_t{kDocuments / 10}));
    CHECK(rows.rows[n][2] == Cell(static_cast<double>(n)));
    CHECK(std::holds_alternative<std::string>(rows.rows[n][3]));
  }
  CHECK(client.aggregate({.type = "nothing"}).wait().status.code() == StatusCode::UnknownType);

  Jobs jobs = client.jobs();
  const auto id =
      jobs.submit({.passes = {{.application = "citycount", .type = "item", .parameters = {{"field", "name"}}}}});
  CHECK_OK(id.status());
  if (!id) return;
  int told = 0;
  const auto ended = jobs.wait(*id, [&](const JobInfo&) { ++told; });
  CHECK_OK(ended.status());
  if (!ended) return;
  CHECK(told > 0);
  CHECK(ended->state == JobState::Done);
  CHECK(ended->documents_read() == kDocuments);
  CHECK(ended->current().documents_read == kDocuments);
  CHECK(ended->fraction_done == 1);
  std::vector<std::string> keys;
  JobRows rows_of_job = jobs.results(*id);
  for (const JobRow& row : rows_of_job) keys.push_back(row.key);
  CHECK_OK(rows_of_job.status());
  CHECK(keys.size() == kDocuments && std::is_sorted(keys.begin(), keys.end()));
  const auto list = jobs.list();
  CHECK(list && !list->empty());
  CHECK(!jobs.cancel("job-none").is_ok());
  CHECK(jobs.wait("job-none").status().code() == StatusCode::NotFound);
  const Status wrong = jobs.set(*id, {{"weight", "0"}});
  CHECK(!wrong);
  CHECK_OK(jobs.remove_results(*id));
  JobRows removed = jobs.results(*id);
  CHECK(removed.next() == nullptr && removed.status().code() == StatusCode::NotFound);
  CHECK_OK(jobs.remove(*id));
  CHECK(jobs.submit({}).status().code() == StatusCode::InvalidArgument);
}

constexpr const char* kScript = R"(
function map(doc, emit)
  if doc.fields.price == 3 then error("three") end
  emit(tostring(doc.fields.price), 1)
end
function reduce(key, values)
  local sum = 0
  for _, value in ipairs(values) do sum = sum + value end
  return sum
end
)";

/// Runs a script job. The documents on which the script fails become dead letters.
void check_script(Jobs jobs) {
  std::string id;
  const auto script =
      jobs.run({.passes = {JobPassRequest::of_script(kScript, "item")}, .settings = {{"dead_letters_max", "1000"}}},
               {.on_submitted = [&](const std::string& made) { id = made; }});
  CHECK_OK(script.status());
  if (script) {
    CHECK_OK(script->error);
    CHECK(script->state == JobState::Done && script->id == id);
    CHECK(script->dead_letters == kDocuments / 10);
    JobRows rows = jobs.results(id);
    std::map<std::string, std::string> counts;
    for (const auto& [key, value] : rows) counts[key] = value;
    CHECK_OK(rows.status());
    CHECK(counts.size() == 9 && counts["4"] == std::to_string(kDocuments / 10));
    const auto letters = jobs.dead_letters(id);
    CHECK(letters && letters->size() == kDocuments / 10 && letters->front().error.find("three") != std::string::npos);
  }
}

/// Runs a chain of passes, and an incremental job twice.
void check_job_forms(Jobs jobs, const std::string& folder) {
  const std::string path = folder + "/job.lua";
  std::ofstream(path) << "function map(doc, emit) emit(doc.fields.name, doc.fields.price) end\n"
                         "function reduce(name, values) return values[1] end\n";
  const auto from_file = JobPassRequest::of_script_file(path, "item", "item.price == 5");
  CHECK_OK(from_file.status());
  CHECK(JobPassRequest::of_script_file(folder + "/none.lua").status().code() == StatusCode::NotFound);
  // The first pass is a script, and the second one aggregates its rows.
  if (from_file) {
    const auto chain =
        jobs.run({.passes = {*from_file, JobPassRequest::of_aggregation({.aggregates = {"count() as names"}})}});
    CHECK_OK(chain.status());
    if (chain) {
      CHECK(chain->state == JobState::Done && chain->is_chain && chain->passes.size() == 2);
      JobRows rows = jobs.results(chain->id);
      const JobRow* row = rows.next();
      CHECK(row != nullptr && row->value.find(std::to_string(kDocuments / 10)) != std::string::npos);
      CHECK(rows.next() == nullptr);
    }
  }
  // The incremental job runs twice. The second run reads no document again.
  const JobRequest counted{.passes = {JobPassRequest::of_application("citycount", "item")}, .incremental = true};
  JobRequest request = counted;
  request.passes[0].parameters["field"] = "name";
  CHECK_OK(jobs.run(request).status());
  const auto again = jobs.run(request);
  CHECK_OK(again.status());
  if (again) {
    CHECK_OK(again->error);
    CHECK(again->current().documents_reused == kDocuments);
  }
}

/// A paused job stays paused, and goes on when it is resumed.
void check_job_control(Jobs jobs) {
  JobRequest request{.passes = {JobPassRequest::of_application("citycount", "item")}};
  request.passes[0].parameters["field"] = "name";
  request.settings["throttle"] = "1000";
  const auto slow = jobs.submit(request);
  CHECK_OK(slow.status());
  if (!slow) return;
  CHECK_OK(jobs.pause(*slow));
  const auto paused = jobs.status(*slow);
  CHECK(paused && paused->state == JobState::Paused && paused->settings.at("throttle") == "1000");
  const Status refused = jobs.set(*slow, {{"weight", "0"}});
  CHECK(refused.code() == StatusCode::InvalidArgument);
  CHECK(refused.setting() == "weight" && refused.limit() == "1 to 1000");
  CHECK_OK(jobs.set(*slow, {{"throttle", "1GB/s"}}));
  CHECK_OK(jobs.resume(*slow));
  const auto resumed = jobs.wait(*slow);
  CHECK(resumed && resumed->state == JobState::Done);
  const auto dropped = jobs.submit(request);
  CHECK_OK(dropped.status());
  if (!dropped) return;
  CHECK_OK(jobs.cancel(*dropped));
  const auto cancelled = jobs.wait(*dropped);
  CHECK(cancelled && cancelled->state == JobState::Cancelled);
}

void check_bulk_changes(Client& client) {
  const BulkSummary would = client.remove_where("item.price == 7", {.type = "item", .dry_run = true});
  CHECK_OK(would.status);
  CHECK(would.matched == kDocuments / 10 && would.applied == 0);
  std::string half;
  const BulkSummary updated = client.update_where("item.price == 8", R"({"price": {"assign": 7}})",
                                                  {.type = "item", .on_cursor = [&](const std::string& now) {
                                                     half = now;
                                                     return Status::ok();
                                                   }});
  CHECK(updated && updated.applied == kDocuments / 10);
  CHECK(half == updated.cursor);
  const BulkSummary again =
      client.update_where("item.price == 8", R"({"price": {"assign": 7}})", {.type = "item", .resume = updated.cursor});
  CHECK(again && again.matched == 0);
  CHECK(!client.remove_where("item.price == 8", {.type = "item", .resume = updated.cursor}).status.is_ok());
  const BulkSummary removed = client.remove_where("item.price == 7 and item.name == \"n7\"", {.type = "item"});
  CHECK(removed && removed.applied == 1);
  CHECK(client.update_where("item.price == 8", R"({"colour": {"assign": 7}})", {.type = "item"}).status.code() ==
        StatusCode::InvalidField);
}

/// Several subscriptions are read without blocking. They take turns on the client's thread. Each gives the documents of
/// `copy`.
void check_changes_without_blocking(Client& client, const std::set<std::string>& copy) {
  std::vector<Subscription> several;
  std::vector<std::shared_ptr<detail::PendingState<std::set<std::string>>>> copies;
  for (int n = 0; n < 3; ++n) {
    several.push_back(client.subscribe({.selection = "item.price == 7", .buffer_bytes = 2000}));
    copies.push_back(std::make_shared<detail::PendingState<std::set<std::string>>>(nullptr));
  }
  for (std::size_t n = 0; n < several.size(); ++n) copy_changes(several[n], copies[n]);
  for (auto& made : copies) CHECK(made->wait() == copy);
  const auto dropped = std::make_shared<detail::PendingState<Status>>(nullptr);
  {
    Subscription never = client.subscribe({.selection = "item.price > 100", .from_now = true});
    while (never.try_next() != nullptr) {
    }
    never.ready().then([dropped](Status status) { dropped->set(std::move(status)); });
  }
  const Status ended = dropped->wait();
  CHECK(ended || ended.code() == StatusCode::Cancelled);
}

void check_changes(Client& client) {
  std::string cursor;
  std::set<std::string> copy;
  {
    Subscription all = client.subscribe({.selection = "item.price == 7"});
    for (const Change& change : all) {
      if (change.kind == Change::Kind::CaughtUp) break;
      if (change.kind != Change::Kind::Put) continue;  // The change is of a document that is not selected, or a remove.
      CHECK(change.document->integer("price") == 7);
      copy.insert(change.id);
    }
    CHECK_OK(all.status());
    cursor = all.cursor();
  }
  CHECK(copy.size() == kDocuments / 10);

  check_bulk_changes(client);
  Subscription later = client.subscribe({.selection = "item.price == 7", .resume = cursor});
  for (const Change& change : later) {
    if (change.kind == Change::Kind::CaughtUp) break;
    if (change.kind == Change::Kind::Put) copy.insert(change.id);
    if (change.kind == Change::Kind::Remove) copy.erase(change.id);
  }
  CHECK(copy.size() == 2 * kDocuments / 10 - 1);
  CHECK(!copy.contains(id_of(7)));
  CHECK(later.next_within(milliseconds(1)) == nullptr || !later.is_over());

  check_changes_without_blocking(client, copy);
  check_awaited_changes(client);
}

void check_status(Admin admin) {
  const auto status = admin.status();
  CHECK_OK(status.status());
  if (!status) return;
  CHECK(status->nodes.size() >= 3);
  CHECK(status->buckets > 0);
  // On a busy machine a node may seem slow for a moment. Then the status gives a reason.
  CHECK(status->health != Health::Unavailable);
  CHECK((status->health == Health::Healthy) == status->reasons.empty());
  CHECK(status->buckets_in_sync + status->buckets_out_of_sync + status->buckets_unavailable == status->buckets);
  const auto state = admin.state();
  CHECK(state && state->state.find("storage:3") != std::string::npos && !state->leader.empty());
}

/// Changes settings, checks that a change which names an older version is refused, and reverts.
void check_settings(Admin admin) {
  const auto before = admin.configuration();
  CHECK_OK(before.status());
  if (!before) return;
  CHECK(before->settings.size() > 20);
  CHECK(before->find("no.such") == nullptr);
  const auto changed = admin.set({{"storage.visitors_max", "64"}}, {.if_version = before->version, .reason = "check"});
  CHECK_OK(changed.status());
  CHECK(changed && changed->changes.size() == 1 && changed->version > before->version);
  const auto late = admin.set({{"storage.visitors_max", "32"}}, {.if_version = before->version});
  CHECK(late.status().code() == StatusCode::TestAndSetFailed);
  const auto malformed = admin.set({{"storage.visitors_max", "no"}});
  CHECK(malformed.status().code() == StatusCode::InvalidArgument);
  CHECK(malformed.status().setting() == "storage.visitors_max");
  CHECK(malformed.status().limit().find("integer from 1") != std::string::npos);
  const auto unknown = admin.set({{"no.such", "1"}});
  CHECK(unknown.status().code() == StatusCode::NotFound && unknown.status().setting() == "no.such");
  const auto now = admin.configuration();
  CHECK(now && now->find("storage.visitors_max")->live_value == "64");
  CHECK(now && now->history.back().who.ends_with(": check"));
  const auto reverted = admin.revert();
  CHECK(reverted && reverted->changes.size() == 1);
}

/// Asks for advice without the metrics of the cluster, and makes and reverts a change by its id.
void check_tuning(Tuning tuning) {
  const auto plan_of_tuner = tuning.plan({});
  CHECK_OK(plan_of_tuner.status());
  if (plan_of_tuner) {
    CHECK(plan_of_tuner->advice.workload.nodes == 3);
    CHECK(plan_of_tuner->advice.workload.documents > kDocuments * 0.9);
    CHECK(plan_of_tuner->changes.size() == plan_of_tuner->advice.report.advice.size());
  }
  CHECK(tuning.plan({}, {"no.such"}).status().code() == StatusCode::NotFound);
  const auto applied = tuning.apply({{"storage.visitors_max", "32"}}, "check");
  CHECK_OK(applied.status());
  if (applied) {
    const auto made = tuning.history();
    CHECK(made && !made->empty() && made->back().id == applied->id && made->back().values[0].after == "32");
    CHECK_OK(tuning.revert(applied->id).status());
    CHECK(tuning.revert(applied->id).status().code() == StatusCode::InvalidArgument);
  }
  CHECK(tuning.revert("tune-00000000").status().code() == StatusCode::NotFound);
  CHECK(tuning.apply_and_watch({{"storage.visitors_max", "32"}}, "", {}).status().code() ==
        StatusCode::InvalidArgument);
  CHECK(tuning.run({}).code() == StatusCode::InvalidArgument);
}

void check_nodes(Admin admin) {
  const auto history = admin.history(5);
  CHECK(history && !history->empty());
  const auto plan = admin.change_nodes({.action = NodeAction::Retire, .nodes = {"storage.0"}, .force = true});
  CHECK_OK(plan.status());
  CHECK(plan && !plan->done && plan->replicas_moved > 0);
  const NodeChange up{.action = NodeAction::Maintenance, .nodes = {"storage.0"}, .dry_run = false};
  const auto away = admin.change_nodes(up);
  CHECK_OK(away.status());
  if (away && away->done) {
    int told = 0;
    const auto back = admin.change_nodes({.action = NodeAction::Up, .nodes = {"storage.0"}, .dry_run = false});
    CHECK_OK(back.status());
    if (back) {
      CHECK_OK(admin.wait_for({.action = NodeAction::Up}, *back, seconds(60),
                              [&](const NodeChangeProgress& left) { told += left.is_known ? 1 : 0; }));
    }
  }
  const auto plugins = admin.plugins();
  CHECK(plugins && plugins->storage_nodes == 3 && plugins->distributors > 0 && plugins->problems.empty());
  CHECK(!admin.change_nodes({.action = NodeAction::Retire, .nodes = {"storage.99"}}));
  const auto schemas = admin.schemas();
  CHECK(schemas && !schemas->empty());
  CHECK(admin.deploy_schemas({"nonsense"}).status().code() == StatusCode::InvalidArgument);
}

void check_buckets(Admin admin) {
  const auto buckets = admin.bucket_of(id_of(3));
  CHECK_OK(buckets.status());
  CHECK(buckets && buckets->size() == 1);
  if (buckets && !buckets->empty()) {
    std::set<std::uint64_t> versions;
    for (const ReplicaInfo& replica : buckets->front().replicas)
      versions.insert(replica.document_version_us.value_or(0));
    CHECK(versions.size() == 1 && !versions.contains(0));
    CHECK(!buckets->front().replica_set.empty());
    const auto named = admin.bucket(buckets->front().bucket);
    CHECK(named && named->size() == 1 && named->front().bucket == buckets->front().bucket);
  }
  CHECK(admin.bucket("x").status().code() == StatusCode::InvalidArgument);
  const auto unhealthy = admin.unhealthy_buckets(10);
  CHECK(unhealthy && unhealthy->silent.empty());
  const auto lost = admin.lost_buckets();
  CHECK(lost && lost->buckets.empty());
  if (buckets && !buckets->empty()) {
    CHECK(admin.accept_loss({buckets->front().bucket}, seconds(5)).code() == StatusCode::NotFound);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: fjord-library-check HOST:PORT FOLDER\n");
    return 2;
  }
  Client client = connect(argv[1]);
  CHECK_OK(client.ping());
  const auto deployed = client.admin().deploy_schemas(
      {"document item { field name type string { header } field price type int { header } }"});
  CHECK_OK(deployed.status());
  check_documents(client);
  feed(client);
  check_visits(client);
  check_blocks(client);
  check_executor(argv[1]);
  check_ended_aggregations(client);
  check_export(client, argv[2]);
  check_import(client, argv[2]);
  check_aggregation_and_jobs(client);
  check_script(client.jobs());
  check_job_forms(client.jobs(), argv[2]);
  check_job_control(client.jobs());
  check_changes(client);
  check_status(client.admin());
  check_settings(client.admin());
  check_tuning(client.admin().tuning());
  check_nodes(client.admin());
  check_buckets(client.admin());
  std::printf("%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
