// What puts, gets and iterations of the slotfile engine cost on this machine.
//
//   slotfile_bench FOLDER [documents=1000000] [bytes=800] [buckets=256] [batch=1024]
//
// FOLDER is made, used and removed. Puts come in batches over all buckets, as from a distributor; each bucket's share
// of a batch is one apply().

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fmt/core.h>
#include <string>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/common/env.h"
#include "fjord/common/hash.h"
#include "fjord/common/random.h"
#include "fjord/storage/slotfile/slotfile_provider.h"

namespace fjord {

namespace {

struct Settings {
  std::string folder;
  std::uint64_t documents = 1'000'000;
  std::uint64_t bytes = 800;
  std::uint64_t buckets = 256;
  std::uint64_t batch = 1024;
};

class Bench {
 public:
  explicit Bench(Settings settings) : settings_(std::move(settings)), body_(settings_.bytes * 3 / 4, '\0') {
    for (char& c : body_) c = static_cast<char>(random_.next());
    header_.assign(1, '\1');
    put_fixed<std::uint32_t>(header_, 42);
    put_string(header_, "id:bench:item::0123456789");
    header_.resize(settings_.bytes - body_.size(), 'h');
    SlotfileOptions options;
    options.directory = settings_.folder;
    auto opened = SlotfileProvider::open(*env_, options);
    FJORD_CHECK_MSG(opened.has_value(), opened.status().to_string());
    provider_ = std::move(*opened);
    for (std::uint64_t b = 0; b < settings_.buckets; ++b) FJORD_CHECK(provider_->create_bucket(bucket(b)).is_ok());
  }
  ~Bench() { static_cast<void>(env_->remove_all(settings_.folder)); }

  void run() {
    put("put", 0);
    get();
    iterate("iterate, all", spi::FieldSet::All);
    iterate("iterate, id only", spi::FieldSet::IdOnly);
    put("put over", settings_.documents);
    const SlotfileStats stats = provider_->stats();
    fmt::print("{} slotfiles, {} rewrites, {} splits, {:.1f} bytes of index an entry\n", stats.slotfiles,
               stats.rewrites, stats.splits,
               static_cast<double>(stats.index_bytes) / static_cast<double>(stats.entries));
  }

 private:
  /// Both, because the time on the wall means little on a machine that does other things.
  struct Spent {
    double wall_seconds;
    double cpu_seconds;
  };

  static BucketId bucket(std::uint64_t number) { return BucketId(16, number); }
  GlobalId gid(std::uint64_t document) const {
    GlobalId id;
    store_fixed<std::uint32_t>(reinterpret_cast<char*>(id.bytes.data()),
                               static_cast<std::uint32_t>(document % settings_.buckets));
    store_fixed<std::uint64_t>(reinterpret_cast<char*>(id.bytes.data()) + 4, mix64(document, 7));
    return id;
  }

  template <typename F>
  static Spent timed(F&& work) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t cpu_begin = std::clock();
    work();
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(),
            static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC};
  }

  static void print(std::string_view name, const Spent& spent, std::uint64_t documents, std::uint64_t bytes) {
    const double n = static_cast<double>(documents);
    const double megabytes = static_cast<double>(bytes) / 1e6;
    fmt::print("{:<18} {:8.2f} us wall, {:6.2f} us CPU a document; {:6.0f} MB/s wall, {:6.0f} MB/s CPU\n", name,
               spent.wall_seconds * 1e6 / n, spent.cpu_seconds * 1e6 / n, megabytes / spent.wall_seconds,
               megabytes / spent.cpu_seconds);
    std::fflush(stdout);
  }

  void put(std::string_view name, std::uint64_t first_timestamp) {
    std::vector<std::vector<spi::Write>> shares(settings_.buckets);
    std::vector<spi::WriteResult> results(settings_.batch);
    const Spent spent = timed([&] {
      for (std::uint64_t n = 0; n < settings_.documents; n += settings_.batch) {
        for (std::uint64_t i = n; i < std::min(n + settings_.batch, settings_.documents); ++i) {
          // A random order of buckets, so that their shares differ.
          const std::uint64_t document = mix64(i, 1) % settings_.documents;
          const GlobalId id = gid(document);
          shares[document % settings_.buckets].push_back({.gid = id,
                                                          .timestamp = Timestamp{first_timestamp + i + 1},
                                                          .remove = false,
                                                          .id = {},
                                                          .header = header_,
                                                          .body = body_});
        }
        for (std::uint64_t b = 0; b < settings_.buckets; ++b) {
          if (shares[b].empty()) continue;
          const std::span<spi::WriteResult> out(results.data(), shares[b].size());
          provider_->apply(bucket(b), shares[b], out);
          for (const spi::WriteResult& result : out) FJORD_CHECK_MSG(result.status.is_ok(), result.status.to_string());
          shares[b].clear();
        }
      }
    });
    print(name, spent, settings_.documents, settings_.documents * settings_.bytes);
  }

  void get() {
    std::uint64_t found = 0;
    const std::uint64_t count = std::min<std::uint64_t>(settings_.documents, 500'000);
    const Spent spent = timed([&] {
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t document = random_.below(settings_.documents);
        const auto got = provider_->get(bucket(document % settings_.buckets), gid(document));
        FJORD_CHECK(got.has_value() || got.error().code() == StatusCode::NotFound);
        if (got) ++found;
      }
    });
    FJORD_CHECK(found > 0);
    print("get", spent, count, found * settings_.bytes);
  }

  void iterate(std::string_view name, spi::FieldSet fields) {
    std::uint64_t bytes = 0;
    std::uint64_t documents = 0;
    DocBlockBuilder block;
    const Spent spent = timed([&] {
      for (std::uint64_t b = 0; b < settings_.buckets; ++b) {
        auto iterator = provider_->iterate(bucket(b), {.types = nullptr, .selection = nullptr, .fields = fields});
        FJORD_CHECK(iterator.has_value());
        for (bool more = true; more;) {
          const Result<bool> result = (*iterator)->next(block, 1 << 20);
          FJORD_CHECK_MSG(result.has_value(), result.status().to_string());
          more = *result;
          bytes += block.size();
          documents += block.count();
          block.rewind(0, 0);
        }
      }
    });
    print(name, spent, documents, bytes);
  }

  const Settings settings_;
  std::unique_ptr<Env> env_ = make_posix_env();
  std::unique_ptr<SlotfileProvider> provider_;
  Random random_{1};
  std::string header_;
  std::string body_;
};

}  // namespace

}  // namespace fjord

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: slotfile_bench FOLDER [documents] [bytes] [buckets] [batch]\n");
    return 2;
  }
  fjord::Settings settings{.folder = std::string(argv[1]) + "/slotfile_bench"};
  std::uint64_t* const numbers[] = {&settings.documents, &settings.bytes, &settings.buckets, &settings.batch};
  for (int i = 2; i < argc && i < 6; ++i) *numbers[i - 2] = std::strtoull(argv[i], nullptr, 10);
  fjord::Bench(settings).run();
  return 0;
}
