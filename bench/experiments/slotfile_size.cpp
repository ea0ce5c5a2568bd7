// The experiments of [VDS 2007, 5.3] and its table 5.1: the effect of the maximum slotfile size on putting and
// visiting, on the number of slotfiles, and on memory and disk. `./run experiment slotfile-size` runs it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fmt/core.h>
#include <fstream>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/coding.h"
#include "fjord/common/env.h"
#include "fjord/common/hash.h"
#include "fjord/common/random.h"
#include "fjord/common/scheduler.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "gid_in.h"

namespace fjord {

namespace {

constexpr unsigned kBuckets = 10;
constexpr unsigned kBucketBits = 4;
constexpr std::size_t kBatch = 64;
constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = 1024 * kKib;

struct Series {
  std::uint64_t documents;
  std::uint64_t document_bytes;
  std::vector<std::uint64_t> file_sizes;
};

/// Returns the series of [VDS 2007, 5.3].
std::vector<Series> all_series() {
  const std::vector<std::uint64_t> small = {128 * kKib, 512 * kKib, kMib, 2 * kMib};
  const std::vector<std::uint64_t> large = {4 * kMib, 8 * kMib, 16 * kMib, 64 * kMib, 128 * kMib, 256 * kMib};
  return {{300'000, 800, small}, {300'000, 1200, small}, {20'000, 155'000, large}, {20'000, 215'000, large}};
}

/// [VDS 2007, 5.5]: 2^ceil(log2(d * |D| / (|B| * slotfilesize))), and one more split as the margin.
std::uint64_t estimate_of_slotfiles(const Series& series, std::uint64_t file_bytes) {
  const std::uint64_t bucket_bytes = series.documents * series.document_bytes / kBuckets;
  const std::uint64_t files = std::max<std::uint64_t>(1, (bucket_bytes + file_bytes - 1) / file_bytes);
  return 2 * std::bit_ceil(files);
}

std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

class Experiment {
 public:
  Experiment(std::string directory, std::FILE* summary, std::FILE* samples)
      : directory_(std::move(directory)), summary_(summary), samples_(samples) {
    pool_.resize(kMib);
    for (char& c : pool_) c = static_cast<char>(random_.next());
    fmt::print(summary_,
               "documents,document_bytes,file_bytes,put_s,settle_s,visit_s,slotfiles_estimate,slotfiles_max,"
               "slowest_batch_ms,splits,rewritten_bytes,index_bytes,resident_bytes,disk_bytes\n");
    fmt::print(samples_,
               "documents,document_bytes,file_bytes,second,put,index_bytes,held_bytes,resident_bytes,"
               "slotfile_bytes,journal_bytes,slots_max\n");
  }

  Status run(const Series& series, std::uint64_t file_bytes) {
    FJORD_TRY(env_->remove_all(directory_));
    SlotfileOptions options;
    options.directory = directory_;
    options.background = background_.get();
    options.limits.file_bytes_max = file_bytes;
    options.limits.entries_max = 1 << 24;  // No limit by entries: only bytes limit a slotfile, as in [VDS 2007].
    options.limits.scrub_bytes_per_second = 0;
    FJORD_TRY_ASSIGN(provider_, SlotfileProvider::open(*env_, options));
    for (unsigned b = 0; b < kBuckets; ++b) FJORD_TRY(provider_->create_bucket(BucketId(kBucketBits, b)));
    row_ = fmt::format("{},{},{}", series.documents, series.document_bytes, file_bytes);
    const MonotonicTime begin = clock_.now();
    FJORD_TRY(put_all(series));
    const MonotonicTime put = clock_.now();
    FJORD_TRY(settle());
    const MonotonicTime settled = clock_.now();
    const std::uint64_t resident = resident_bytes();
    FJORD_TRY(visit_all(series));
    const MonotonicTime visited = clock_.now();
    const SlotfileStats stats = provider_->stats();
    fmt::print(summary_, "{},{:.3f},{:.3f},{:.3f},{},{},{:.2f},{},{},{},{},{}\n", row_, seconds(put - begin),
               seconds(settled - put), seconds(visited - settled), estimate_of_slotfiles(series, file_bytes),
               slots_max(), seconds(slowest_) * 1e3, stats.splits, stats.rewritten_bytes, stats.index_bytes, resident,
               stats.file_bytes + stats.journal_bytes);
    std::fflush(summary_);
    fmt::print(stderr, "{} documents of {} bytes, slotfiles of {} KiB: put {:.2f} s, visit {:.2f} s, {} slotfiles\n",
               series.documents, series.document_bytes, file_bytes / kKib, seconds(put - begin),
               seconds(visited - settled), slots_max());
    provider_.reset();
    return env_->remove_all(directory_);
  }

 private:
  Status put_all(const Series& series) {
    slowest_ = Duration(0);
    begin_ = sampled_ = clock_.now();
    std::vector<spi::Write> writes;
    std::vector<spi::WriteResult> results;
    std::string header;
    header.push_back('\1');
    put_fixed<std::uint32_t>(header, 42);
    put_string(header, "id:experiment:item::0000000000");
    header.resize(std::min<std::uint64_t>(200, series.document_bytes / 4), 'h');
    for (std::uint64_t n = 0; n < series.documents; n += kBatch) {
      writes.clear();
      for (std::uint64_t i = n; i < std::min(n + kBatch, series.documents); ++i) {
        const std::uint64_t body = series.document_bytes - header.size();
        const std::uint64_t from = mix64(i, 7) % (pool_.size() - body);
        writes.push_back({.bucket = BucketId(kBucketBits, i % kBuckets),
                          .gid = gid(i),
                          .timestamp = Timestamp{i + 1},
                          .remove = false,
                          .id = {},
                          .header = header,
                          .body = std::string_view(pool_).substr(from, body)});
      }
      results.assign(writes.size(), {});
      const MonotonicTime before = clock_.now();
      provider_->apply(writes, results, Durability::Process);
      for (const spi::WriteResult& result : results) FJORD_TRY(result.status);
      provider_->maintain(clock_.now());
      slowest_ = std::max(slowest_, clock_.now() - before);
      sample(n + writes.size());
    }
    return Status::ok();
  }

  /// Returns a global id as if `number` were the location, which determines the bucket.
  static GlobalId gid(std::uint64_t number) { return gid_in(BucketId(kBucketBits, number % kBuckets), number); }

  void sample(std::uint64_t put) {
    constexpr Duration kEach = std::chrono::milliseconds(200);
    const MonotonicTime now = clock_.now();
    if (now - sampled_ < kEach) return;
    sampled_ = now;
    const SlotfileStats stats = provider_->stats();
    fmt::print(samples_, "{},{:.2f},{},{},{},{},{},{},{}\n", row_, seconds(now - begin_), put, stats.index_bytes,
               stats.held_bytes, resident_bytes(), stats.file_bytes, stats.journal_bytes, slots_max());
  }

  unsigned slots_max() const {
    unsigned most = 0;
    for (const BucketId bucket : provider_->list_buckets()) most = std::max(most, provider_->slots_of(bucket).value());
    return most;
  }

  Status settle() {
    constexpr Duration kIdle = std::chrono::milliseconds(100);
    FJORD_TRY(provider_->checkpoint());
    for (spi::Maintenance left{.more = true, .next_in = {}}; left.more || left.next_in < kIdle;) {
      left = provider_->maintain(clock_.now());
    }
    return provider_->health();
  }

  /// Visits as the map function of [VDS 2007, 5.3] with an empty body does.
  Status visit_all(const Series& series) {
    std::uint64_t bytes = 0;
    for (const BucketId bucket : provider_->list_buckets()) {
      FJORD_TRY_ASSIGN(const auto at, provider_->iterate(bucket, {.types = nullptr, .selection = nullptr}));
      FJORD_TRY(at->visit([&](const EntryView& entry) {
                    bytes += entry.header.size() + entry.body.size();
                    return true;
                  }).status());
    }
    if (bytes == series.documents * series.document_bytes) return Status::ok();
    return Status(StatusCode::Corruption, "the visit did not give every document once");
  }

  const std::string directory_;
  std::FILE* const summary_;
  std::FILE* const samples_;
  const std::unique_ptr<Env> env_ = make_posix_env();
  const SystemClock clock_;
  ThreadScheduler scheduler_;
  const std::unique_ptr<Executor> background_ = scheduler_.make_executor("sync");
  std::unique_ptr<SlotfileProvider> provider_;
  Random random_{1};
  std::string pool_;
  std::string row_;
  MonotonicTime begin_;
  MonotonicTime sampled_;
  Duration slowest_{0};
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

int run(const std::string& directory, const std::string& output, bool quick) {
  std::filesystem::create_directories(output);
  const std::unique_ptr<std::FILE, CloseFile> summary(std::fopen((output + "/summary.csv").c_str(), "w"));
  const std::unique_ptr<std::FILE, CloseFile> samples(std::fopen((output + "/samples.csv").c_str(), "w"));
  if (summary == nullptr || samples == nullptr) {
    fmt::print(stderr, "fjord-experiment-slotfile-size: cannot write into {}\n", output);
    return 1;
  }
  Experiment experiment(directory + "/slotfile-size", summary.get(), samples.get());
  for (Series series : all_series()) {
    if (quick) series.documents /= 20;
    for (const std::uint64_t file_bytes : series.file_sizes) {
      if (const Status status = experiment.run(series, file_bytes); !status) {
        fmt::print(stderr, "fjord-experiment-slotfile-size: {}\n", status.to_string());
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace

}  // namespace fjord

int main(int argc, char** argv) {
  CLI::App app("Puts and visits documents with different maximum sizes of slotfiles, as [VDS 2007, 5.3] does.",
               "fjord-experiment-slotfile-size");
  std::string directory = "/tmp";
  std::string output = ".";
  bool quick = false;
  app.add_option("--directory", directory, "Folder for the data, which is removed afterwards")->capture_default_str();
  app.add_option("--output", output, "Folder for summary.csv and samples.csv")->capture_default_str();
  app.add_flag("--quick", quick, "A twentieth of the documents, to see that it works");
  CLI11_PARSE(app, argc, argv);
  return fjord::run(directory, output, quick);
}
