// Start-up time and memory of the engine with many small documents, and with a long journal to be replayed. `./run
// experiment many-documents`.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <malloc.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/coding.h"
#include "fjord/common/env.h"
#include "fjord/common/hash.h"
#include "fjord/common/scheduler.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "gid_in.h"

namespace fjord {

namespace {

constexpr unsigned kBucketBits = 6;
constexpr unsigned kBuckets = 1U << kBucketBits;
constexpr std::size_t kBatch = 256;
constexpr double kMib = 1 << 20;

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

/// Returns the resident memory of this process without mapped files, in MiB.
double anonymous_mib() {
  ::malloc_trim(0);
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib / 1024;
  }
  return 0;
}

class Experiment {
 public:
  explicit Experiment(std::string directory) {
    options_.directory = std::move(directory);
    options_.background = background_.get();
  }

  Status many_documents(std::uint64_t documents, std::size_t document_bytes) {
    FJORD_TRY(env_->remove_all(options_.directory));
    options_.limits = {};
    FJORD_TRY(open().status());
    FJORD_TRY(put(documents, document_bytes, true));
    FJORD_TRY(provider_->checkpoint());
    provider_.reset();
    const double memory_before = anonymous_mib();
    fmt::print("{} documents of {} bytes in {} buckets, index_bytes_max {:.0f} MiB.\n\n", documents, document_bytes,
               kBuckets, static_cast<double>(options_.limits.index_bytes_max) / kMib);
    fmt::print("| what | s | indexes MiB | memory of the process MiB |\n|---|---:|---:|---:|\n");
    const auto row = [&](const char* what, Duration spent) {
      fmt::print("| {} | {:.3f} | {:.1f} | {:.1f} |\n", what, seconds(spent),
                 static_cast<double>(provider_->stats().index_bytes) / kMib, anonymous_mib() - memory_before);
    };
    FJORD_TRY(drop_from_cache());
    FJORD_TRY_ASSIGN(const Duration opened, open());
    row("open, nothing in the page cache", opened);
    MonotonicTime begin = clock_.now();
    for (unsigned b = 0; b < kBuckets; ++b) FJORD_TRY(provider_->get(bucket(b), gid(b)).status());
    row("get of one document of each bucket", clock_.now() - begin);
    begin = clock_.now();
    FJORD_TRY(visit_all(documents));
    row("visit of all ids", clock_.now() - begin);
    provider_.reset();

    options_.limits.index_bytes_max = 100 << 20;
    FJORD_TRY(open().status());
    begin = clock_.now();
    FJORD_TRY(visit_all(documents));
    row("the same with 100 MiB for indexes", clock_.now() - begin);
    provider_.reset();
    return env_->remove_all(options_.directory);
  }

  Status long_journal(std::uint64_t documents, std::size_t document_bytes) {
    FJORD_TRY(env_->remove_all(options_.directory));
    options_.limits = {};
    options_.limits.journal_bytes_max = std::uint64_t{8} << 30;  // No checkpoint is due, so everything is replayed.
    FJORD_TRY(open().status());
    FJORD_TRY(put(documents, document_bytes, false));
    provider_.reset();  // Ends without a checkpoint, as a killed process does.
    FJORD_TRY(drop_from_cache());
    FJORD_TRY_ASSIGN(const Duration opened, open());
    const double bytes = static_cast<double>(provider_->stats().replayed_bytes);
    fmt::print("| {} documents of {} bytes | {:.2f} | {:.2f} | {:.2f} |\n", documents, document_bytes, bytes / 1e9,
               seconds(opened), seconds(opened) / bytes * 1e9);
    FJORD_TRY(visit_all(documents));
    provider_.reset();
    return env_->remove_all(options_.directory);
  }

 private:
  Result<Duration> open() {
    const MonotonicTime begin = clock_.now();
    FJORD_TRY_ASSIGN(provider_, SlotfileProvider::open(*env_, options_));
    const Duration spent = clock_.now() - begin;
    for (unsigned b = 0; b < kBuckets; ++b) FJORD_TRY(provider_->create_bucket(bucket(b)));
    return spent;
  }

  static BucketId bucket(std::uint64_t number) { return BucketId(kBucketBits, number % kBuckets); }
  static GlobalId gid(std::uint64_t number) { return gid_in(bucket(number), number); }

  Status put(std::uint64_t documents, std::size_t document_bytes, bool maintain) {
    std::string header;
    put_fixed<std::uint8_t>(header, 1);
    put_fixed<std::uint32_t>(header, 42);
    put_string(header, "id:experiment:item::0000000000");
    const std::string body(document_bytes - header.size(), 'b');
    std::vector<spi::Write> writes;
    std::vector<spi::WriteResult> results;
    for (std::uint64_t n = 0; n < documents; n += kBatch) {
      writes.clear();
      for (std::uint64_t i = n; i < std::min(n + kBatch, documents); ++i) {
        writes.push_back({.bucket = bucket(i),
                          .gid = gid(i),
                          .timestamp = Timestamp{i + 1},
                          .remove = false,
                          .id = {},
                          .header = header,
                          .body = body});
      }
      results.assign(writes.size(), {});
      provider_->apply(writes, results, Durability::Process);
      for (const spi::WriteResult& result : results) FJORD_TRY(result.status);
      if (maintain) provider_->maintain(clock_.now());
    }
    return provider_->health();
  }

  Status visit_all(std::uint64_t documents) {
    std::uint64_t seen = 0;
    spi::IterateOptions options;
    options.parts = spi::Parts::IdOnly;
    for (const BucketId id : provider_->list_buckets()) {
      FJORD_TRY_ASSIGN(const auto at, provider_->iterate(id, options));
      FJORD_TRY(at->visit([&](const EntryView&) {
                    ++seen;
                    return true;
                  }).status());
    }
    if (seen == documents) return Status::ok();
    return Status(StatusCode::Corruption, fmt::format("{} of {} documents are there", seen, documents));
  }

  Status drop_from_cache() {
    for (const auto& entry : std::filesystem::directory_iterator(options_.directory)) {
      const int fd = ::open(entry.path().c_str(), O_RDONLY);
      if (fd < 0) return Status(StatusCode::IoError, "cannot open " + entry.path().string());
      ::fsync(fd);
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      ::close(fd);
    }
    return Status::ok();
  }

  const std::unique_ptr<Env> env_ = make_posix_env();
  const SystemClock clock_;
  ThreadScheduler scheduler_;
  const std::unique_ptr<Executor> background_ = scheduler_.make_executor("sync");
  SlotfileOptions options_;
  std::unique_ptr<SlotfileProvider> provider_;
};

Status run(const std::string& directory, bool quick) {
  const std::uint64_t part = quick ? 20 : 1;
  Experiment experiment(directory + "/many-documents");
  FJORD_TRY(experiment.many_documents(10'000'000 / part, 100));
  fmt::print("\nA journal of that length, replayed after the process was killed; nothing in the page cache:\n\n");
  fmt::print("| written | journal GB | open s | s per GB |\n|---|---:|---:|---:|\n");
  FJORD_TRY(experiment.long_journal(5'000'000 / part, 100));
  FJORD_TRY(experiment.long_journal(1'000'000 / part, 1000));
  return experiment.long_journal(10'000 / part, 155'000);
}

}  // namespace

}  // namespace fjord

int main(int argc, char** argv) {
  CLI::App app("Opens a store with ten million documents, and stores with long journals.",
               "fjord-experiment-many-documents");
  std::string directory = "/tmp";
  bool quick = false;
  app.add_option("--directory", directory, "Folder for the data, which is removed afterwards")->capture_default_str();
  app.add_flag("--quick", quick, "A twentieth of the documents, to see that it works");
  CLI11_PARSE(app, argc, argv);
  if (const fjord::Status status = fjord::run(directory, quick); !status) {
    fmt::print(stderr, "fjord-experiment-many-documents: {}\n", status.to_string());
    return 1;
  }
  return 0;
}
