#include <condition_variable>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "benchmarks.h"
#include "fjord/client/connect.h"
#include "fjord/common/random.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/document/docblock.h"
#include "fjord/visitors/visitor_session.h"
#include "report.h"

namespace fjord::bench {
namespace {

/// Collects the documents of a visit. Threading: one thread at a time.
class VisitedDocuments {
 public:
  VisitedDocuments(const DocumentTypeRepo& types, const std::vector<std::uint64_t>& expected)
      : types_(types), expected_(expected), seen_(expected.size()) {}

  /// Takes a block of documents. Returns an empty string, or the error in the block.
  std::string take(std::string_view block) {
    DocBlockReader reader(block);
    while (const auto entry = reader.next()) {
      if (std::string error = take_entry(*entry); !error.empty()) return error;
    }
    return reader.ok() ? std::string() : "a docblock is malformed";
  }
  std::uint64_t count() const { return count_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::string take_entry(const EntryView& entry) {
    if (entry.removed) return "a removed document was visited";
    const auto view = DocumentView::open(types_, entry.header, entry.body);
    if (!view) return view.error().to_string();
    const auto number = ListingGenerator::number_of(view->id());
    if (!number || *number >= expected_.size()) return fmt::format("{} was never fed", view->id());
    if (seen_[*number]) return fmt::format("{} was visited twice", view->id());
    if (fingerprint(entry.header, entry.body) != expected_[*number]) {
      return fmt::format("{} is not the document that was fed", view->id());
    }
    seen_[*number] = true;
    ++count_;
    bytes_ += entry.header.size() + entry.body.size();
    return {};
  }

  const DocumentTypeRepo& types_;
  const std::vector<std::uint64_t>& expected_;
  std::vector<bool> seen_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Runs one visit; passes the documents to `visited` on the connection's executor. Returns when the visit has ended.
Status visit(Connection& connection, rpc::SnapshotHolder& holder, VisitedDocuments& visited) {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> end;
  const auto finish = [&](Status status) {
    const std::lock_guard lock(mutex);
    if (!end) end = std::move(status);
    changed.notify_one();
  };
  std::unique_ptr<visitors::VisitorSession> session;
  visitors::VisitorSessionOptions options;
  options.selection = "listing";
  visitors::VisitorSessionCallbacks callbacks;
  callbacks.on_docblock = [&](BucketId, const std::string& block) {
    std::string error = visited.take(block);
    if (error.empty()) return;
    session->cancel();
    finish(Status(StatusCode::Corruption, "visit: " + error));
  };
  callbacks.on_finished = [&](Status status) { finish(std::move(status)); };
  Executor& executor = connection.executor();
  executor.post([&] {
    session = std::make_unique<visitors::VisitorSession>(options, std::move(callbacks), connection.transport(), holder,
                                                         connection.runtime().clock, Random::from_system(), executor);
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
  return status;
}

}  // namespace

int run_visit(Connection& connection, const ListingGenerator& generator, const BenchOptions& options) {
  std::vector<std::uint64_t> expected;
  prepare([&] { expected = fingerprints(generator, options.documents); });
  const auto snapshot = connection.client().snapshot();
  rpc::SnapshotHolder holder;
  if (const auto updated = holder.update(snapshot->info()); !updated) return fail(updated.error());
  const CpuStopwatch cpu;
  std::vector<double> times;
  double megabytes = 0;
  for (unsigned run = 0; run < options.repeat; ++run) {
    VisitedDocuments visited(*snapshot->types(), expected);
    const Stopwatch watch;
    if (Status status = visit(connection, holder, visited); !status) return fail(status);
    times.push_back(watch.seconds());
    if (visited.count() != options.documents) {
      return fail(fmt::format("visit: {} documents were visited, {} were fed", visited.count(), options.documents));
    }
    megabytes = static_cast<double>(visited.bytes()) / 1e6;
    say(fmt::format("visit: {} documents, {:.1f} MB in {:.3f} s", visited.count(), megabytes, times.back()));
  }
  const double seconds = quantile(times, 0.5);
  print_metric("visit", "MB_per_s", megabytes / seconds, "MB/s");
  print_metric("visit", "docs_per_s", static_cast<double>(options.documents) / seconds, "1/s");
  print_metric("visit", "time_s", seconds, "s");
  print_metric("visit", "client_cpu_s", cpu.seconds(), "s");
  return 0;
}

}  // namespace fjord::bench
