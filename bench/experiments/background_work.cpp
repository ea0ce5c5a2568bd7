// How long operations wait for the engine's background work: every step of splitting, joining and rewriting slotfiles,
// of checkpoints and of the scrub, timed on the thread that serves the bucket. `./run experiment background-work`.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <string>
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

constexpr std::size_t kBatch = 64;
constexpr std::size_t kHeaderBytes = 200;
constexpr BucketId kBucket(4, 3);

double milliseconds(Duration duration) { return static_cast<double>(duration.count()) / 1e3; }

/// The durations of one kind of call.
class Times {
 public:
  void add(Duration duration) { all_.push_back(duration); }
  /// Returns "count | median | 99.9 % | longest", in ms.
  std::string row() {
    std::sort(all_.begin(), all_.end());
    if (all_.empty()) return "0 | | |";
    return fmt::format("{} | {:.3f} | {:.2f} | {:.2f}", all_.size(), milliseconds(all_[all_.size() / 2]),
                       milliseconds(all_[all_.size() * 999 / 1000]), milliseconds(all_.back()));
  }
  void clear() { all_.clear(); }

 private:
  std::vector<Duration> all_;
};

class Experiment {
 public:
  Experiment(std::string directory, std::uint64_t documents, std::size_t document_bytes)
      : directory_(std::move(directory)), documents_(documents), document_bytes_(document_bytes) {
    pool_.resize(4 * document_bytes + (1 << 20));
    for (char& c : pool_) c = static_cast<char>(random_.next());
    put_fixed<std::uint8_t>(header_, 1);
    put_fixed<std::uint32_t>(header_, 42);
    put_string(header_, "id:experiment:item::0000000000");
    header_.resize(kHeaderBytes, 'h');
  }

  Status run() {
    FJORD_TRY(env_->remove_all(directory_));
    options_.directory = directory_;
    options_.background = background_.get();
    FJORD_TRY_ASSIGN(provider_, SlotfileProvider::open(*env_, options_));
    FJORD_TRY(provider_->create_bucket(kBucket));
    fmt::print("{} documents of {} bytes in one bucket.\n\n", documents_, document_bytes_);
    fmt::print("| phase | what happened | call | calls | median ms | 99.9 % ms | longest ms |\n");
    fmt::print("|---|---|---|---:|---:|---:|---:|\n");
    FJORD_TRY(phase("put all, in random order", [&] { return write_all(1, 0, false); }));
    FJORD_TRY(phase("overwrite half", [&] { return write_all(2, 50, false); }));
    SlotfileLimits limits = options_.limits;
    limits.file_bytes_max /= 2;
    limits.entries_max /= 2;
    FJORD_TRY(provider_->set_limits(limits));
    FJORD_TRY(phase("half the maximum of slotfiles, put a tenth", [&] { return write_all(3, 90, false); }));
    FJORD_TRY(provider_->set_limits(options_.limits));
    FJORD_TRY(phase("the maximum as before, remove 95 %", [&] { return write_all(4, 5, true); }));
    FJORD_TRY(phase("put all again", [&] { return write_all(5, 0, false); }));
    FJORD_TRY(split_and_join_bucket());
    provider_.reset();
    return env_->remove_all(directory_);
  }

 private:
  /// Runs `what`, and then all background work that it leaves.
  Status phase(const char* name, const std::function<Status()>& what) {
    puts_.clear();
    gets_.clear();
    steps_.clear();
    const SlotfileStats before = provider_->stats();
    FJORD_TRY(what());
    constexpr Duration kIdle = std::chrono::milliseconds(100);
    for (spi::Maintenance left{.more = true, .next_in = {}}; left.more || left.next_in < kIdle;) {
      left = step();
      if (left.more) get_one();  // Background work waits while documents are read: no get while it waits.
    }
    FJORD_TRY(provider_->health());
    const SlotfileStats after = provider_->stats();
    const std::string happened = fmt::format("{} slotfiles split, {} joined, {} rewritten, {} checkpoints",
                                             after.splits - before.splits, after.joins - before.joins,
                                             after.rewrites - before.rewrites, after.checkpoints - before.checkpoints);
    fmt::print("| {} | {} | batch of 64 | {} |\n", name, happened, puts_.row());
    fmt::print("| | | get | {} |\n", gets_.row());
    fmt::print("| | | step of background work | {} |\n", steps_.row());
    return Status::ok();
  }

  /// Writes or removes all documents except `left_out` percent. The version decides which ones are left out.
  Status write_all(unsigned version, unsigned left_out, bool remove) {
    std::vector<spi::Write> writes;
    std::vector<spi::WriteResult> results;
    for (std::uint64_t i = 0; i < documents_; ++i) {
      if (mix64(i, version) % 100 >= left_out) writes.push_back(write(i, version, remove));
      if (writes.size() < kBatch && i + 1 < documents_) continue;
      results.assign(writes.size(), {});
      timed(puts_, [&] { provider_->apply(writes, results, Durability::Process); });
      for (const spi::WriteResult& result : results) FJORD_TRY(result.status);
      writes.clear();
      step();
      get_one();
    }
    return Status::ok();
  }

  spi::Write write(std::uint64_t number, unsigned version, bool remove) const {
    spi::Write write{.bucket = kBucket,
                     .gid = gid(number),
                     .timestamp = Timestamp{version * documents_ + number},
                     .remove = remove,
                     .id = {},
                     .header = {},
                     .body = {}};
    if (remove) {
      write.id = "id:experiment:item::0000000000";
      return write;
    }
    const std::size_t body = document_bytes_ - header_.size();
    write.header = header_;
    write.body = std::string_view(pool_).substr(mix64(number, version) % (pool_.size() - body), body);
    return write;
  }

  static GlobalId gid(std::uint64_t number) { return gid_in(kBucket, number); }

  void get_one() {
    const GlobalId wanted = gid(random_.below(documents_));
    timed(gets_, [&] { static_cast<void>(provider_->get(kBucket, wanted)); });
  }

  spi::Maintenance step() {
    constexpr Duration kNothingToDo = std::chrono::microseconds(10);
    const MonotonicTime begin = clock_.now();
    const spi::Maintenance left = provider_->maintain(begin);
    const Duration spent = clock_.now() - begin;
    if (spent > kNothingToDo) steps_.add(spent);
    return left;
  }

  template <typename Call>
  void timed(Times& times, const Call& call) {
    const MonotonicTime begin = clock_.now();
    call();
    times.add(clock_.now() - begin);
  }

  Status split_and_join_bucket() {
    Times split;
    Times join;
    Status status;
    timed(split, [&] { status = provider_->split_bucket(kBucket); });
    FJORD_TRY(status);
    timed(join, [&] { status = provider_->join_buckets(kBucket); });
    FJORD_TRY(status);
    fmt::print("| split and join of the bucket itself | | split_bucket | {} |\n", split.row());
    fmt::print("| | | join_buckets | {} |\n", join.row());
    return Status::ok();
  }

  const std::string directory_;
  const std::uint64_t documents_;
  const std::size_t document_bytes_;
  const std::unique_ptr<Env> env_ = make_posix_env();
  const SystemClock clock_;
  ThreadScheduler scheduler_;
  const std::unique_ptr<Executor> background_ = scheduler_.make_executor("sync");
  SlotfileOptions options_;
  std::unique_ptr<SlotfileProvider> provider_;
  Random random_{1};
  std::string pool_;
  std::string header_;
  Times puts_;
  Times gets_;
  Times steps_;
};

}  // namespace

}  // namespace fjord

int main(int argc, char** argv) {
  CLI::App app("Times every step of background work while one bucket grows, changes and shrinks.",
               "fjord-experiment-background-work");
  std::string directory = "/tmp";
  bool quick = false;
  app.add_option("--directory", directory, "Folder for the data, which is removed afterwards")->capture_default_str();
  app.add_flag("--quick", quick, "A twentieth of the documents, to see that it works");
  CLI11_PARSE(app, argc, argv);
  struct Size {
    std::uint64_t documents;
    std::size_t bytes;
  };
  for (const Size size : {Size{400'000, 1000}, Size{10'000, 155'000}}) {
    fjord::Experiment experiment(directory + "/background-work", quick ? size.documents / 20 : size.documents,
                                 size.bytes);
    if (const fjord::Status status = experiment.run(); !status) {
      fmt::print(stderr, "fjord-experiment-background-work: {}\n", status.to_string());
      return 1;
    }
    fmt::print("\n");
  }
  return 0;
}
