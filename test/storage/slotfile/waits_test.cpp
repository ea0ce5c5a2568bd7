#include <catch2/catch.hpp>
#include <deque>

#include "fjord/sim/sim_env.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"

/// The engine's metrics of the times that operations wait for indexes, documents and the search for an entry.
namespace fjord {
namespace {

using testing::OwnedWrite;
using testing::test_put;

constexpr int kDocuments = 400;
const BucketId kEven(9, 0x012);  // Holds the documents with even numbers; see test_id().
const BucketId kOdd(9, 0x112);

/// A clock that advances by a microsecond per call, and by the duration of disk reads.
class DiskClock final : public Clock {
 public:
  MonotonicTime now() const override { return {++now_us_}; }
  WallTime wall_now() const override { return {now_us_}; }
  void took(std::int64_t us) const { now_us_ += us; }

 private:
  mutable std::int64_t now_us_ = 0;
};

constexpr std::int64_t kReadUs = 1000;

/// A disk whose reads take a millisecond of the clock. Files are mapped; the test decides whether they are in memory.
class SlowDisk final : public Env {
 public:
  explicit SlowDisk(const DiskClock& clock) : clock_(clock) {}
  bool resident = true;

  Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) override {
    return wrap(inner_.open_random_access(path));
  }
  Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) override {
    return wrap(inner_.create_random_access(path));
  }
  Result<bool> exists(const std::string& path) override { return inner_.exists(path); }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return inner_.list_directory(path);
  }
  Status create_directories(const std::string& path) override { return inner_.create_directories(path); }
  Status remove_file(const std::string& path) override { return inner_.remove_file(path); }
  Status remove_all(const std::string& path) override { return inner_.remove_all(path); }
  Status rename(const std::string& from, const std::string& to) override { return inner_.rename(from, to); }
  Status sync_directory(const std::string& path) override { return inner_.sync_directory(path); }
  Result<SpaceInfo> space(const std::string& path) override { return inner_.space(path); }

 private:
  class File final : public RandomAccessFile {
   public:
    File(std::unique_ptr<RandomAccessFile> file, const SlowDisk& disk) : file_(std::move(file)), disk_(disk) {}
    Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
      disk_.clock_.took(kReadUs);
      return file_->read(offset, into);
    }
    Status write(std::uint64_t offset, std::string_view data) override { return file_->write(offset, data); }
    Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
      return file_->write_gather(offset, pieces);
    }
    void start_writeback() override { file_->start_writeback(); }
    Status sync() override { return file_->sync(); }
    Result<std::uint64_t> size() const override { return file_->size(); }
    std::string_view mapped(std::uint64_t end) override {
      std::string& copy = copies_.emplace_back(end, '\0');
      const Result<std::size_t> size = file_->read(0, copy);
      REQUIRE(size);
      return copy;
    }
    void will_need(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override {}
    bool is_resident(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override { return disk_.resident; }
    Status allocate(std::uint64_t size) override { return file_->allocate(size); }
    Status truncate(std::uint64_t size) override { return file_->truncate(size); }

   private:
    std::unique_ptr<RandomAccessFile> file_;
    const SlowDisk& disk_;
    std::deque<std::string> copies_;
  };
  Result<std::unique_ptr<RandomAccessFile>> wrap(Result<std::unique_ptr<RandomAccessFile>> file) {
    if (!file) return file;
    return std::unique_ptr<RandomAccessFile>(std::make_unique<File>(std::move(*file), *this));
  }

  const DiskClock& clock_;
  sim::SimEnv inner_;
};

/// Two buckets with a few hundred documents each, all in slotfiles.
struct Store {
  explicit Store(bool has_clock = true, MetricRegistry* metrics = nullptr) {
    REQUIRE(disk.create_directories("/").is_ok());
    options.directory = "/buckets";
    options.clock = has_clock ? &clock : nullptr;
    options.metrics = metrics;
    auto opened = SlotfileProvider::open(disk, options);
    REQUIRE(opened);
    provider = std::move(*opened);
    for (const BucketId bucket : {kEven, kOdd}) REQUIRE(provider->create_bucket(bucket).is_ok());
    for (int i = 0; i < kDocuments; ++i) put(i);
    REQUIRE(provider->checkpoint().is_ok());
    begin = provider->stats();
  }
  static BucketId bucket(const GlobalId& gid) { return bucket_of(gid, 9); }
  void put(int number) {
    const OwnedWrite write = test_put(number, ++timestamp);
    REQUIRE(testing::apply(*provider, bucket(write.gid), write).status.is_ok());
  }
  void get(int number) {
    const GlobalId gid = test_put(number, 1).gid;
    REQUIRE(provider->get(bucket(gid), gid, spi::Parts::All));
  }
  /// Limits memory to one index.
  void keep_one_index() {
    SlotfileLimits limits = provider->limits();
    limits.index_bytes_max = 1;
    limits.held_bytes_max = 1;
    REQUIRE(provider->set_limits(limits).is_ok());
  }

  DiskClock clock;
  SlowDisk disk{clock};
  SlotfileOptions options;
  std::unique_ptr<SlotfileProvider> provider;
  SlotfileStats begin;
  std::uint64_t timestamp = 0;
};

}  // namespace

TEST_CASE("slotfile waits: an index that is in memory is a hit, one that has to be read is a miss with its time") {
  Store store;
  for (int i = 0; i < 100; ++i) store.get(i);
  SlotfileStats stats = store.provider->stats();
  CHECK(stats.index_lookups - store.begin.index_lookups == 100);
  CHECK(stats.index_misses == store.begin.index_misses);
  CHECK(stats.index_wait_us == store.begin.index_wait_us);

  store.keep_one_index();
  store.get(0);
  stats = store.provider->stats();
  for (int i = 1; i < 100; ++i) store.get(i);
  const SlotfileStats after = store.provider->stats();
  const std::uint64_t misses = after.index_misses - stats.index_misses;
  CHECK(misses == 99);  // The memory is for one index, and each get is for the other bucket.
  // Each miss reads the disk at least once; the rest of a get takes no time.
  CHECK(after.index_wait_us - stats.index_wait_us >= misses * kReadUs);
  CHECK(after.index_wait_us - stats.index_wait_us < 3 * misses * kReadUs);
}

TEST_CASE("slotfile waits: of every eighth batch the time is taken, by the size of the slotfile") {
  Store store;
  store.keep_one_index();
  for (int i = 0; i < 160; ++i) store.put(i);
  const SlotfileStats stats = store.provider->stats();
  std::uint64_t puts = 0;
  for (std::size_t i = 0; i < kEntryClasses; ++i) {
    const SampledPuts& now = stats.sampled_puts[i];
    const SampledPuts& old = store.begin.sampled_puts[i];
    puts += now.puts - old.puts;
    CHECK(now.search_us <= now.us);
  }
  CHECK(puts == 20);
  // Both slotfiles have about 200 entries.
  const SampledPuts& small = stats.sampled_puts[0];
  const SampledPuts& before = store.begin.sampled_puts[0];
  CHECK(small.puts - before.puts == 20);
  CHECK((small.entries - before.entries) / 20 > 150);
  CHECK((small.entries - before.entries) / 20 < 250);
  // Each put had to load the index first, which counts as search.
  CHECK(small.search_us - before.search_us >= 20 * kReadUs);
  CHECK(before.search_us < kReadUs);  // While memory sufficed for both indexes, searches took no time.
}

TEST_CASE("slotfile waits: classes of slotfiles quadruple, and the last one has no bound") {
  CHECK(entry_class_bound(0) == 256);
  CHECK(entry_class_bound(1) == 1024);
  CHECK(entry_class_bound(kEntryClasses - 2) == 1 << 20);
  CHECK(entry_class_bound(kEntryClasses - 1) == 0);
}

TEST_CASE(
    "slotfile waits: documents that are not in memory are misses, and those in memory are counted as reads only") {
  Store store;
  for (int i = 0; i < 200; ++i) store.get(i);
  SlotfileStats stats = store.provider->stats();
  CHECK(stats.document_reads - store.begin.document_reads == 200);
  CHECK(stats.document_misses == 0);
  store.disk.resident = false;
  for (int i = 0; i < 200; ++i) store.get(i);
  const SlotfileStats after = store.provider->stats();
  CHECK(after.document_reads - stats.document_reads == 200);
  // Only one in 32 reads from memory is checked. So the first check may also count for reads before this loop.
  CHECK(after.document_misses <= 200 + 32);
  CHECK(after.document_misses >= 200 - 32);
  CHECK(after.document_wait_us >= after.document_misses);
}

TEST_CASE("slotfile waits: what is held in memory is no read of a slotfile, and without a clock nothing is timed") {
  Store store(false);
  for (int i = 0; i < 80; ++i) store.put(i);
  for (int i = 0; i < 80; ++i) store.get(i);
  const SlotfileStats stats = store.provider->stats();
  CHECK(stats.document_reads == store.begin.document_reads);
  CHECK(stats.index_wait_us == 0);
  for (const SampledPuts& sampled : stats.sampled_puts) CHECK(sampled.puts == 0);
}

TEST_CASE("slotfile waits: the metrics say what the statistics say, and count what several stripes did") {
  MetricRegistry registry;
  Store first(true, &registry);
  const auto told = [&] {
    return registry.counter("fjord_slotfile_sampled_puts_total", "", {{"entries_below", "256"}}).value();
  };
  static_cast<void>(first.provider->maintain({10'000'000}));
  const std::uint64_t of_first = first.provider->stats().sampled_puts[0].puts;
  CHECK(of_first == kDocuments / 8);
  CHECK(told() == of_first);
  Store second(true, &registry);
  static_cast<void>(second.provider->maintain({10'000'000}));
  static_cast<void>(first.provider->maintain({20'000'000}));  // No put is counted twice.
  CHECK(told() == 2 * of_first);
  CHECK(registry.gauge("fjord_slotfile_index_lookups", "", {{"stripe", "0"}}).value() >= kDocuments);
}

}  // namespace fjord
