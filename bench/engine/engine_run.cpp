#include "engine_run.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <malloc.h>
#include <sys/resource.h>

#include "fjord/common/check.h"

namespace fjord::bench {
namespace {

constexpr std::size_t kBatch = 64;
constexpr double kMega = 1e6;
constexpr double kMebi = 1048576;

class Stopwatch {
 public:
  Stopwatch() : start_(std::chrono::steady_clock::now()), cpu_start_(cpu_now()) {}
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  /// CPU time of all threads.
  double cpu_seconds() const { return cpu_now() - cpu_start_; }

 private:
  static double cpu_now() {
    rusage usage = {};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  std::chrono::steady_clock::time_point start_;
  double cpu_start_;
};

/// Returns the resident memory of this process without mapped files, in MiB.
double anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib / 1024;
  }
  return 0;
}

std::span<const std::uint32_t> batch_at(const std::vector<std::uint32_t>& numbers, std::size_t begin) {
  return std::span(numbers).subspan(begin, std::min(kBatch, numbers.size() - begin));
}

Status wrong(std::string_view what) { return Status(StatusCode::Corruption, fmt::format("wrong answer: {}", what)); }

}  // namespace

Status EngineRun::run() {
  for (const EngineDurability durability : {EngineDurability::Process, EngineDurability::Sync}) {
    FJORD_TRY(run(durability));
  }
  return Status::ok();
}

Status EngineRun::run(EngineDurability durability) {
  FJORD_TRY_ASSIGN(EngineDirectory directory,
                   EngineDirectory::make(fmt::format("{}/{}", options_.directory, configuration_.name)));
  directory_.emplace(std::move(directory));
  ::malloc_trim(0);
  memory_before_ = anonymous_memory();
  memory_peak_ = 0;
  durability_ = durability;
  engine_ = configuration_.make(corpus_.size());
  Status status = engine_->open(directory_->path(), durability);
  if (status) status = write_phase(durability);
  if (status && durability == EngineDurability::Process) status = hot_reads();
  if (status && durability == EngineDurability::Process) status = cold_reads();
  if (status) status = remove_phase(durability);
  engine_.reset();
  directory_.reset();
  ::malloc_trim(0);
  if (status && durability == EngineDurability::Process) record(Metric::Memory, memory_peak_);
  return status;
}

Status EngineRun::write_phase(EngineDurability durability) {
  const bool process = durability == EngineDurability::Process;
  const auto documents = static_cast<double>(corpus_.documents());
  FJORD_TRY_ASSIGN(const Spent put, put_all(corpus_.in_order(), 0));
  record_rate(process ? Metric::PutProcess : Metric::PutSync, documents, put);
  if (process) record(Metric::PutCpu, put.cpu_seconds / documents * 1e6);
  FJORD_TRY(settle(Metric::SettlePut));
  FJORD_TRY(record_space(Metric::SpaceAfterPut, corpus_.bytes()));

  FJORD_TRY_ASSIGN(const Spent overwrite, put_all(corpus_.shuffled(1), 1));
  record_rate(process ? Metric::OverwriteProcess : Metric::OverwriteSync, documents, overwrite);
  return settle(Metric::SettleOverwrite);
}

/// Measures reads twice: right after the writes, and after the engine was reopened. Some stores are faster after that,
/// because they read documents in another form than they write them.
Status EngineRun::hot_reads() {
  FJORD_TRY(hot_pass(Metric::GetHot, Metric::IterateHot, Metric::SelectHot));
  FJORD_TRY_ASSIGN(const double reopen_seconds, reopen());
  record(Metric::ReopenHot, reopen_seconds * 1e3);
  FJORD_TRY(hot_pass(Metric::GetHotReopened, Metric::IterateHotReopened, Metric::SelectHotReopened));
  FJORD_TRY_ASSIGN(const std::uint64_t cached, directory_->cached_bytes());
  record(Metric::PageCache, static_cast<double>(cached) / kMebi);
  return Status::ok();
}

Status EngineRun::hot_pass(Metric get, Metric iterate, Metric select) {
  const Totals all = corpus_.expected(1, corpus_.in_order());
  FJORD_TRY(iterate_all(all, false).status());
  FJORD_TRY(get_all(corpus_.shuffled(2), 1).status());
  FJORD_TRY_ASSIGN(const double get_seconds, get_all(corpus_.shuffled(3), 1));
  record(get, static_cast<double>(corpus_.documents()) / get_seconds);

  for (const bool selected : {false, true}) {
    const Totals expected = selected ? corpus_.expected_selected(1) : all;
    FJORD_TRY(iterate_all(expected, selected).status());
    std::vector<double> seconds;
    for (unsigned i = 0; i < options_.passes; ++i) {
      FJORD_TRY_ASSIGN(const double spent, iterate_all(expected, selected));
      seconds.push_back(spent);
    }
    record(selected ? select : iterate, static_cast<double>(corpus_.bytes()) / kMega / median(seconds));
  }
  return Status::ok();
}

Status EngineRun::cold_reads() {
  FJORD_TRY(engine_->close());
  FJORD_TRY(record_space(Metric::SpaceAfterOverwrite, corpus_.bytes()));
  FJORD_TRY(directory_->drop_from_cache());
  FJORD_TRY_ASSIGN(const double reopen_seconds, reopen());
  record(Metric::ReopenCold, reopen_seconds * 1e3);

  FJORD_TRY(reopen_cold());
  std::vector<std::uint32_t> some = corpus_.shuffled(4);
  some.resize(std::min<std::size_t>(some.size(), options_.cold_gets_max));
  FJORD_TRY_ASSIGN(const double get_seconds, get_all(some, 1));
  record(Metric::GetCold, static_cast<double>(some.size()) / get_seconds);

  for (const bool selected : {false, true}) {
    FJORD_TRY(reopen_cold());
    const Totals expected = selected ? corpus_.expected_selected(1) : corpus_.expected(1, corpus_.in_order());
    FJORD_TRY_ASSIGN(const double seconds, iterate_all(expected, selected));
    record(selected ? Metric::SelectCold : Metric::IterateCold, static_cast<double>(corpus_.bytes()) / kMega / seconds);
  }
  return Status::ok();
}

Status EngineRun::remove_phase(EngineDurability durability) {
  const std::vector<std::uint32_t> all = corpus_.shuffled(5);
  const auto half = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  const std::vector<std::uint32_t> removed(all.begin(), half);
  const std::vector<std::uint32_t> kept(half, all.end());
  FJORD_TRY_ASSIGN(const Spent remove, remove_all(removed));
  record_rate(durability == EngineDurability::Process ? Metric::RemoveProcess : Metric::RemoveSync,
              static_cast<double>(removed.size()), remove);
  FJORD_TRY(settle(Metric::SettleRemove));
  FJORD_TRY(iterate_all(corpus_.expected(1, kept), false).status());
  if (!removed.empty() && engine_->get(corpus_.key(removed.front())).status().code() != StatusCode::NotFound) {
    return wrong("a removed document is there");
  }
  FJORD_TRY(engine_->close());
  return record_space(Metric::SpaceAfterRemove, kept.size() * corpus_.document_bytes());
}

Result<EngineRun::Spent> EngineRun::put_all(const std::vector<std::uint32_t>& numbers, unsigned version) {
  CorpusBatch batch(corpus_);
  Spent spent;
  for (std::size_t begin = 0; begin < numbers.size(); begin += kBatch) {
    const std::span<const EngineWrite> writes = batch.puts(batch_at(numbers, begin), version);
    const Stopwatch watch;
    FJORD_TRY(engine_->put_batch(writes));
    spent.seconds += watch.seconds();
    spent.cpu_seconds += watch.cpu_seconds();
  }
  note_memory();
  return spent;
}

Result<EngineRun::Spent> EngineRun::remove_all(const std::vector<std::uint32_t>& numbers) {
  CorpusBatch batch(corpus_);
  Spent spent;
  for (std::size_t begin = 0; begin < numbers.size(); begin += kBatch) {
    const std::span<const EngineWrite> writes = batch.removes(batch_at(numbers, begin));
    const Stopwatch watch;
    FJORD_TRY(engine_->remove_batch(writes));
    spent.seconds += watch.seconds();
    spent.cpu_seconds += watch.cpu_seconds();
  }
  return spent;
}

Result<double> EngineRun::get_all(const std::vector<std::uint32_t>& numbers, unsigned version) {
  const Stopwatch watch;
  for (const std::uint32_t n : numbers) {
    const Result<EngineDocument> got = engine_->get(corpus_.key(n));
    if (!got) return got.error().with_context(fmt::format("get of document {}", n));
    if (fingerprint(got->gid, got->timestamp, got->header, got->body) != corpus_.expected_fingerprint(n, version)) {
      return wrong(fmt::format("a get of document {} gives something else", n));
    }
  }
  const double seconds = watch.seconds();
  note_memory();
  return seconds;
}

Result<double> EngineRun::iterate_all(const Totals& expected, bool selected) {
  Totals totals;
  const DocumentSink sink = [&totals](const EngineDocument& document) { totals.add(document); };
  const Stopwatch watch;
  FJORD_TRY(selected ? engine_->iterate(corpus_.selection(), sink) : engine_->iterate(sink));
  const double seconds = watch.seconds();
  note_memory();
  if (totals != expected) {
    return wrong(fmt::format("an iteration gives {} documents of {} bytes, not {} of {}, or other ones",
                             totals.documents, totals.bytes, expected.documents, expected.bytes));
  }
  return seconds;
}

/// Measures the time until the files are on the device, so that the next measurement starts without pending work.
Status EngineRun::settle(Metric metric) {
  const Stopwatch watch;
  FJORD_TRY(engine_->settle());
  FJORD_TRY(directory_->sync());
  if (durability_ == EngineDurability::Process) record(metric, watch.seconds());
  note_memory();
  return Status::ok();
}

/// Returns the seconds from the call to the first answer.
Result<double> EngineRun::reopen() {
  FJORD_TRY(engine_->close());
  engine_.reset();
  engine_ = configuration_.make(corpus_.size());
  const Stopwatch watch;
  FJORD_TRY(engine_->open(directory_->path(), durability_));
  FJORD_TRY(engine_->get(corpus_.key(0)).status());
  return watch.seconds();
}

Status EngineRun::reopen_cold() {
  FJORD_TRY(engine_->close());
  engine_.reset();
  ::malloc_trim(0);
  FJORD_TRY(directory_->drop_from_cache());
  engine_ = configuration_.make(corpus_.size());
  return engine_->open(directory_->path(), durability_);
}

Status EngineRun::record_space(Metric metric, std::uint64_t document_bytes) {
  FJORD_TRY_ASSIGN(const std::uint64_t bytes, directory_->allocated_bytes());
  if (durability_ == EngineDurability::Process) {
    record(metric, static_cast<double>(bytes) / static_cast<double>(document_bytes));
  }
  return Status::ok();
}

void EngineRun::note_memory() { memory_peak_ = std::max(memory_peak_, anonymous_memory() - memory_before_); }

void EngineRun::record(Metric metric, double value) {
  figures_.add(corpus_.size(), configuration_.name, metric, value);
  fmt::print(stderr, "  {} {}: {}: {:.6g}\n", to_string(corpus_.size()), configuration_.name, info_of(metric).name,
             value);
}

}  // namespace fjord::bench
