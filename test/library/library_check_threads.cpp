// Part of fjord-library-check: blocks that other threads decode, callbacks in an executor of the program, and
// aggregations that are awaited, stopped or too slow.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "library_check.h"
#include "support/detached.h"

namespace {

using namespace fjord;

/// One thread that runs tasks in order: the executor of a program.
class Loop {
 public:
  ~Loop() {
    post({});
    thread_.join();
  }
  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }
  bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  void run() {
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      if (!task) return;
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_{[this] { run(); }};
};

/// Visits in a coroutine that is resumed in the loop, and uses the client there without awaiting. Reports the number of
/// documents, negative if it was resumed elsewhere.
Detached count_in(Client& client, Loop& loop, std::shared_ptr<detail::PendingState<int>> result) {
  int count = 0;
  bool is_here = true;
  const ReadResult read = co_await client.get(id_of(1));
  CHECK_OK(read.status);
  is_here = is_here && loop.is_current();
  // The client's own thread must not wait; this one may.
  CHECK_OK(client.get(id_of(2)).wait().status);
  {
    Visit visit = client.visit({.type = "item", .buffer_bytes = 1000});
    while (true) {
      const Document* document = co_await visit.next();
      if (document == nullptr) break;
      is_here = is_here && loop.is_current();
      ++count;
    }
    CHECK_OK(visit.status());
  }
  result->set(is_here ? count : -count);
}

/// Follows changes in the loop until the subscription ends. Reports the number of changes.
Detached follow_in(Subscription& changes, std::atomic<int>& seen,
                   std::shared_ptr<detail::PendingState<Status>> result) {
  while (const Change* change = co_await changes.next()) seen += change->kind == Change::Kind::CaughtUp ? 1 : 0;
  result->set(changes.status());
}

Detached aggregate_in(Client& client, std::shared_ptr<detail::PendingState<AggregateResult>> result) {
  AggregateRequest request{.type = "item", .aggregates = {"count()"}};
  AggregateResult rows = co_await client.aggregate(std::move(request));
  result->set(std::move(rows));
}

/// An aggregation that lasts for minutes if nothing ends it.
AggregateRequest slow_aggregation() {
  return {.type = "item", .group_by = {"name"}, .aggregates = {"count()"}, .settings = {{"throttle", "1kB"}}};
}

/// Waits for the jobs that run, and checks that they were cancelled. Without that they would go on for minutes.
void check_jobs_are_cancelled(Client& client) {
  const auto jobs = client.jobs().list();
  CHECK_OK(jobs.status());
  for (const JobInfo& job : jobs.value()) {
    if (job.has_ended()) continue;
    const Result<JobInfo> ended = client.jobs().wait(job.id);
    CHECK_OK(ended.status());
    CHECK(ended->state == JobState::Cancelled);
  }
}

/// Takes blocks that have arrived. They have remove entries if the visit has.
void check_removes_in_blocks(Client& client) {
  CHECK_OK(client.put_json(id_of(kDocuments), R"({"name": "gone"})").wait().status);
  CHECK_OK(client.remove(id_of(kDocuments)).wait().status);
  Visit visit = client.visit({.type = "item", .include_removed = true});
  std::size_t documents = 0;
  std::size_t removes = 0;
  while (!visit.is_over()) {
    const std::optional<DocumentBlock> block = visit.try_next_block();
    if (!block) {
      CHECK_OK(visit.ready().wait());
      continue;
    }
    CHECK(!block->bytes().empty());
    DocBlockReader entries = block->entries();
    while (const auto entry = entries.next()) {
      ++(entry->removed ? removes : documents);
      CHECK(block->decode(*entry).status().code() == (entry->removed ? StatusCode::InvalidArgument : StatusCode::Ok));
    }
  }
  CHECK_OK(visit.status());
  CHECK(documents == kDocuments && removes > 0);
}

}  // namespace

void check_blocks(Client& client) {
  // Other threads decode the blocks, and outlive the visit. A part of the documents is taken one by one, and by resumed
  // visits with blocks of which a part was given before.
  std::map<std::string, int> seen;
  std::mutex mutex;
  std::vector<std::thread> decoders;
  const auto decode = [&](const DocumentBlock& block) {
    DocBlockReader entries = block.entries();
    std::size_t count = 0;
    while (const std::optional<EntryView> entry = entries.next()) {
      const Result<Document> document = block.decode(*entry);
      CHECK(document && document->has("name") && !document->has("price"));
      const std::lock_guard lock(mutex);
      if (document) ++seen[document->id().str()];
      ++count;
    }
    CHECK(count == block.size() && count > 0);
  };
  std::string cursor;
  int visits = 0;
  for (bool is_over = false; !is_over; ++visits) {
    Visit visit = client.visit({.selection = "item.price < 9", .fields = {"name"}, .slices = 2, .resume = cursor});
    for (int n = 0; n < 3; ++n) {
      if (const Document* document = visit.next(); document != nullptr) {
        const std::lock_guard lock(mutex);
        ++seen[document->id().str()];
      }
    }
    std::optional<DocumentBlock> block = visit.next_block();
    is_over = !block;
    if (block) {
      decoders.emplace_back([&decode, block = std::move(*block)] { decode(block); });
      for (int n = 0; n < 2; ++n) {
        if (const auto entry = visit.next_entry()) {
          const auto document = visit.types()->find("item");
          CHECK(document != nullptr && !entry->removed);
          const auto view = DocumentView::open(*visit.types(), entry->header, entry->body);
          CHECK_OK(view.status());
          const std::lock_guard lock(mutex);
          if (view) ++seen[std::string(view->id())];
        }
      }
    }
    CHECK_OK(visit.status());
    cursor = visit.cursor();
  }
  for (std::thread& decoder : decoders) decoder.join();
  CHECK(visits > 1);
  CHECK(seen.size() == kDocuments / 10 * 9);
  for (const auto& [id, times] : seen) CHECK(times == 1);
  check_removes_in_blocks(client);
}

void check_executor(const char* addresses) {
  Loop loop;
  Client client = connect(addresses, {.executor = [&loop](std::function<void()> task) { loop.post(std::move(task)); }});
  const auto called = std::make_shared<detail::PendingState<bool>>(nullptr);
  const std::thread::id here = std::this_thread::get_id();  // The callback is called here if the result is there.
  client.get(id_of(0)).then(
      [&](const ReadResult& read) { called->set(read && (loop.is_current() || std::this_thread::get_id() == here)); });
  CHECK(called->wait());
  const auto counted = std::make_shared<detail::PendingState<int>>(nullptr);
  loop.post([&] { count_in(client, loop, counted); });
  CHECK(counted->wait() == kDocuments);

  // A subscription that waits in the loop is destroyed: the coroutine ends before the destructor returns.
  std::atomic<int> caught_up = 0;
  const auto ended = std::make_shared<detail::PendingState<Status>>(nullptr);
  auto changes = std::make_unique<Subscription>(client.subscribe({.type = "item", .buffer_bytes = 2000}));
  loop.post([&] { follow_in(*changes, caught_up, ended); });
  while (caught_up < 2) std::this_thread::yield();
  const auto destroyed = std::make_shared<detail::PendingState<bool>>(nullptr);
  loop.post([&] {
    changes.reset();
    destroyed->set(ended->is_set());
  });
  CHECK(destroyed->wait());
  CHECK(ended->wait().code() == StatusCode::Cancelled);
}

void check_ended_aggregations(Client& client) {
  const auto awaited = std::make_shared<detail::PendingState<AggregateResult>>(nullptr);
  aggregate_in(client, awaited);
  const AggregateResult rows = awaited->wait();
  CHECK_OK(rows.status);
  CHECK(rows.rows.size() == 1 && rows.rows[0][0] == Cell(std::int64_t{kDocuments}));
  const auto called = std::make_shared<detail::PendingState<std::size_t>>(nullptr);
  client.aggregate({.type = "item", .group_by = {"price"}}).then([called](const AggregateResult& result) {
    called->set(result.rows.size());
  });
  CHECK(called->wait() == 10);

  // A time limit, a stop request and the end of the client cancel the job.
  AggregateRequest late = slow_aggregation();
  late.time_limit = milliseconds(300);
  CHECK(client.aggregate(late).wait().status.code() == StatusCode::Timeout);
  std::stop_source stop;
  AggregateRequest stopped = slow_aggregation();
  stopped.stop = stop.get_token();
  stopped.on_progress = [&stop](const JobInfo&) { stop.request_stop(); };
  CHECK(client.aggregate(stopped).wait().status.code() == StatusCode::Cancelled);
  check_jobs_are_cancelled(client);
}
