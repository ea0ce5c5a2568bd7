#include <map>
#include <optional>
#include <set>

#include "fjord/sim/sim_env.h"
#include "fjord/storage/slotfile/slotfile_inspect.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"
#include "slotfile_format.h"

namespace fjord {

namespace {

using sim::FileFault;
using sim::FileOperations;
using testing::OwnedWrite;
using testing::test_put;
using testing::test_remove;

const BucketId kBucket(8, 0x12);
constexpr std::uint64_t kForEver = ~std::uint64_t{0};

/// What a reader can see of one document.
struct Seen {
  std::uint64_t timestamp_us = 0;  ///< 0: nothing there
  bool removed = false;
  std::string header;
  std::string body;

  friend auto operator<=>(const Seen&, const Seen&) = default;
};

Seen seen_of(const OwnedWrite& write) {
  return {.timestamp_us = write.timestamp.us, .removed = write.remove, .header = write.header, .body = write.body};
}

/// Batches that enlarge, compact and split tiny slotfiles, overwrite and remove.
std::vector<std::vector<OwnedWrite>> workload() {
  std::vector<std::vector<OwnedWrite>> batches;
  std::uint64_t timestamp = 100;
  int next = 0;
  for (int batch = 0; batch < 16; ++batch) {
    std::vector<OwnedWrite> writes;
    for (int i = 0; i < 3; ++i) {
      writes.push_back(test_put(next++, ++timestamp, std::string(static_cast<std::size_t>(150 + 40 * i), 'n')));
    }
    for (int i = 0; i < 3 && batch > 0; ++i) {
      writes.push_back(
          test_put((batch * 5 + i) % next, ++timestamp, std::string(static_cast<std::size_t>(100 + batch), 'o')));
    }
    if (batch % 3 == 2) writes.push_back(test_remove(batch, ++timestamp));
    batches.push_back(std::move(writes));
  }
  return batches;
}

/// One run of the workload on a simulated disk, with what has to be there afterwards.
class Run {
 public:
  explicit Run(Durability durability = Durability::Process)
      : env_({.seed = 1, .power_loss = durability == Durability::Sync}),
        options_(testing::tiny_slotfile_options("/buckets")) {
    options_.durability = durability;
    open();
  }

  sim::SimEnv& env() { return env_; }
  const SlotfileStats stats() const { return provider_->stats(); }

  void open() {
    provider_.reset();
    auto opened = SlotfileProvider::open(env_, options_);
    REQUIRE(opened);
    provider_ = std::move(*opened);
  }
  /// The process ends while it starts, after `operations`.
  void open_and_die(std::uint64_t operations) {
    env_.inject({.operations = FileOperations::all(), .skip = operations, .count = kForEver});
    static_cast<void>(SlotfileProvider::open(env_, options_));
    env_.clear_faults();
  }
  void die() { provider_.reset(); }

  /// Whether everything was acknowledged.
  bool write_all() {
    bool all_ok = create();
    for (const auto& batch : workload()) all_ok = write(batch) && all_ok;
    return all_ok;
  }

  /// In the running process: exactly what was acknowledged.
  void check_running() {
    if (!created_) return;
    for (const auto& [gid, state] : acknowledged_) CHECK((read(gid) == state));
  }

  /// After a restart: what was acknowledged, or a later write whose outcome was an error.
  void check_restarted() {
    const std::vector<BucketId> buckets = provider_->list_buckets();
    REQUIRE((buckets.size() == 1 || !created_));
    if (buckets.empty()) return;
    BucketInfo info;
    for (const auto& [gid, states] : possible_) {
      const Seen seen = read(gid);
      CHECK(states.contains(seen));
      if (seen.timestamp_us == 0) continue;
      ++info.entries;
      if (!seen.removed) ++info.documents;
      info.bytes += seen.header.size() + seen.body.size();
      info.checksum += spi::entry_hash(gid, Timestamp{seen.timestamp_us}, seen.removed);
      info.max_timestamp_us = std::max(info.max_timestamp_us, seen.timestamp_us);
    }
    CHECK(provider_->bucket_info(kBucket).value() == info);
    CHECK(iterate_count() == info.documents);
    CHECK(provider_->stats().corrupt_reads == 0);
    const BucketReport files = inspect_bucket(env_, "/buckets/" + slotfile::bucket_directory_name(kBucket)).value();
    CHECK(files.problems.empty());
    CHECK(files.leftovers.empty());
    // And it goes on working.
    REQUIRE(apply(*provider_, kBucket, test_put(5000, 5000)).status.is_ok());
  }

 private:
  bool create() {
    created_ = provider_->create_bucket(kBucket).is_ok();
    return created_;
  }

  bool write(const std::vector<OwnedWrite>& batch) {
    const auto results = apply(*provider_, kBucket, batch);
    bool all_ok = true;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const GlobalId& gid = batch[i].gid;
      auto& possible = possible_.try_emplace(gid, std::set<Seen>{Seen{}}).first->second;
      auto& acknowledged = acknowledged_[gid];
      if (results[i].status.is_ok() && !results[i].superseded) {
        acknowledged = seen_of(batch[i]);
        possible = {acknowledged};
      } else {
        possible.insert(seen_of(batch[i]));
        all_ok = all_ok && results[i].status.is_ok();
      }
    }
    return all_ok;
  }

  Seen read(const GlobalId& gid) {
    const auto got = provider_->get(kBucket, gid);
    if (!got) {
      CHECK(got.error().code() == StatusCode::NotFound);
      return {};
    }
    return {.timestamp_us = got->timestamp.us, .removed = got->removed, .header = got->header, .body = got->body};
  }

  std::uint64_t iterate_count() {
    return testing::iterate_all(*provider_, kBucket, {.types = nullptr, .selection = nullptr}).size();
  }

  sim::SimEnv env_;
  SlotfileOptions options_;
  std::unique_ptr<SlotfileProvider> provider_;
  bool created_ = false;
  std::map<GlobalId, Seen> acknowledged_;
  std::map<GlobalId, std::set<Seen>> possible_;
};

/// File operations of the workload without faults.
std::uint64_t operations_of_workload(Durability durability) {
  Run run(durability);
  const std::uint64_t before = run.env().operations();
  REQUIRE(run.write_all());
  // Otherwise the sweeps below would not show what they are for.
  REQUIRE(run.stats().rewrites >= 3);
  REQUIRE(run.stats().splits >= 2);
  return run.env().operations() - before;
}

}  // namespace

TEST_CASE("slotfile: after an end of the process at any file operation, what was acknowledged is there") {
  const std::uint64_t count = operations_of_workload(Durability::Process);
  for (std::uint64_t k = 0; k < count; ++k) {
    INFO("ends at operation " << k << " of " << count);
    Run run;
    run.env().inject({.operations = FileOperations::all(), .skip = k, .count = kForEver});
    run.write_all();
    run.die();
    run.env().clear_faults();
    run.open_and_die(k % 11);
    run.open();
    run.check_restarted();
  }
}

TEST_CASE("slotfile: an error of any single file operation has no effect, and later writes succeed") {
  const std::uint64_t count = operations_of_workload(Durability::Process);
  for (const StatusCode code : {StatusCode::IoError, StatusCode::NoSpace}) {
    for (std::uint64_t k = 0; k < count; ++k) {
      INFO(to_string(code) << " at operation " << k << " of " << count);
      Run run;
      run.env().inject({.operations = FileOperations::all(), .code = code, .skip = k, .count = 1});
      run.write_all();
      run.check_running();
      run.die();
      run.open();
      run.check_restarted();
    }
  }
}

TEST_CASE("slotfile: with durability sync, what was acknowledged survives a loss of power at any file operation") {
  const std::uint64_t count = operations_of_workload(Durability::Sync);
  for (std::uint64_t k = 0; k < count; ++k) {
    INFO("power is lost at operation " << k << " of " << count);
    Run run(Durability::Sync);
    run.env().inject({.operations = FileOperations::all(), .skip = k, .count = kForEver});
    run.write_all();
    run.die();
    run.env().clear_faults();
    run.env().lose_power();
    run.open();
    run.check_restarted();
  }
}

TEST_CASE("slotfile: after a failed sync the bucket is closed until it is opened again") {
  sim::SimEnv env;
  SlotfileOptions options = testing::tiny_slotfile_options("/buckets");
  options.durability = Durability::Sync;
  auto provider = SlotfileProvider::open(env, options).value();
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  REQUIRE(apply(*provider, kBucket, test_put(1, 1)).status.is_ok());
  env.inject({.operations = sim::FileOperation::Sync});
  CHECK(apply(*provider, kBucket, test_put(2, 2)).status.code() == StatusCode::IoError);
  CHECK(env.faults_pending() == 0);
  CHECK(apply(*provider, kBucket, test_put(3, 3)).status.code() == StatusCode::IoError);
  CHECK(provider->set_replica_set(kBucket, {}).code() == StatusCode::IoError);
  provider = SlotfileProvider::open(env, options).value();
  CHECK(apply(*provider, kBucket, test_put(3, 3)).status.is_ok());
}

TEST_CASE("slotfile: a full disk refuses writes and takes them again when there is space") {
  sim::SimEnv env;
  auto provider = SlotfileProvider::open(env, testing::tiny_slotfile_options("/buckets")).value();
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  int stored = 0;
  env.set_capacity(20000);
  while (apply(*provider, kBucket, test_put(stored, 10, std::string(300, 'x'))).status.is_ok()) ++stored;
  CHECK(stored > 5);
  CHECK(apply(*provider, kBucket, test_put(stored, 10, std::string(300, 'x'))).status.code() == StatusCode::NoSpace);
  CHECK(provider->bucket_info(kBucket)->documents == static_cast<std::uint64_t>(stored));
  CHECK(testing::iterate_all(*provider, kBucket, {.types = nullptr, .selection = nullptr}).size() ==
        static_cast<std::size_t>(stored));
  env.set_capacity(1 << 20);
  CHECK(apply(*provider, kBucket, test_put(stored, 10, std::string(300, 'x'))).status.is_ok());
}

}  // namespace fjord
