#include <fmt/format.h>

#include "corpus.h"
#include "engine_under_test.h"
#include "fjord/common/clock.h"
#include "fjord/common/env.h"
#include "fjord/common/scheduler.h"
#include "fjord/document/docblock.h"
#include "fjord/storage/leveldb/leveldb_provider.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::bench {
namespace {

struct OpenedProvider {
  std::unique_ptr<spi::PersistenceProvider> provider;
  std::function<Status()> settle;  ///< Does the work that maintain() alone would defer. Lifetime: that of the provider.
};
using Opener = std::function<Result<OpenedProvider>(Env& env, const std::string& directory, Executor& background)>;

/// Any engine of Fjord, called as a stripe calls it: a maintenance step that is due counts to the batch after which it
/// runs.
class ProviderEngine : public EngineUnderTest {
 public:
  explicit ProviderEngine(Opener opener) : opener_(std::move(opener)) {}

  Status open(const std::string& directory, EngineDurability durability) override {
    durability_ = durability == EngineDurability::Sync ? spi::Durability::Sync : spi::Durability::Process;
    FJORD_TRY_ASSIGN(OpenedProvider opened, opener_(*env_, directory, *background_));
    provider_ = std::move(opened.provider);
    settle_ = std::move(opened.settle);
    for (std::uint64_t bits = 0; bits < Corpus::kBuckets; ++bits) {
      FJORD_TRY(provider_->create_bucket(BucketId(Corpus::kBucketBits, bits)));
    }
    maintenance_due_ = clock_.now();
    return Status::ok();
  }

  Status put_batch(std::span<const EngineWrite> writes) override { return apply(writes, false); }
  Status remove_batch(std::span<const EngineWrite> writes) override { return apply(writes, true); }

  Result<EngineDocument> get(const EngineKey& key) override {
    FJORD_TRY_ASSIGN(document_, provider_->get(key.bucket, key.gid));
    if (document_.removed) return Status(StatusCode::NotFound, "removed");
    return EngineDocument{
        .gid = key.gid, .timestamp = document_.timestamp, .header = document_.header, .body = document_.body};
  }

  Status iterate(const DocumentSink& sink) override { return walk({}, sink); }
  Status iterate(const EngineSelection& selection, const DocumentSink& sink) override {
    spi::IterateOptions options;
    options.types = selection.types;
    options.selection = selection.selection;
    return walk(options, sink);
  }

  Status settle() override {
    maintain_all();
    FJORD_TRY(settle_());
    maintain_all();
    return provider_->health();
  }

  Status close() override {
    settle_ = nullptr;
    provider_.reset();
    return Status::ok();
  }

 private:
  void maintain_all() {
    // maintain() asks to be called again soon while a background sync is pending, and late if no work is left.
    constexpr Duration kIdle = std::chrono::milliseconds(100);
    for (spi::Maintenance left{.more = true}; left.more || left.next_in < kIdle;) {
      left = provider_->maintain(clock_.now());
    }
  }

  Status apply(std::span<const EngineWrite> writes, bool remove) {
    writes_.clear();
    for (const EngineWrite& write : writes) {
      writes_.push_back({.bucket = write.bucket,
                         .gid = write.gid,
                         .timestamp = write.timestamp,
                         .remove = remove,
                         .id = write.id,
                         .header = write.header,
                         .body = write.body});
    }
    results_.assign(writes.size(), {});
    provider_->apply(writes_, results_, durability_);
    for (const spi::WriteResult& result : results_) FJORD_TRY(result.status);
    if (const MonotonicTime now = clock_.now(); now >= maintenance_due_) {
      const spi::Maintenance left = provider_->maintain(now);
      maintenance_due_ = left.more ? now : now + left.next_in;
    }
    return Status::ok();
  }

  Status walk(const spi::IterateOptions& options, const DocumentSink& sink) {
    for (const BucketId bucket : provider_->list_buckets()) {
      FJORD_TRY_ASSIGN(const std::unique_ptr<spi::DocumentIterator> at, provider_->iterate(bucket, options));
      const auto give = [&](const EntryView& entry) {
        sink({.gid = entry.gid, .timestamp = entry.timestamp, .header = entry.header, .body = entry.body});
        return true;
      };
      FJORD_TRY(at->visit(give).status());
    }
    return Status::ok();
  }

  const Opener opener_;
  const std::unique_ptr<Env> env_ = make_posix_env();
  const SystemClock clock_;
  ThreadScheduler scheduler_;
  const std::unique_ptr<Executor> background_ = scheduler_.make_executor("sync");
  std::unique_ptr<spi::PersistenceProvider> provider_;
  std::function<Status()> settle_;
  spi::Durability durability_ = spi::Durability::Process;
  MonotonicTime maintenance_due_{};
  std::vector<spi::Write> writes_;
  std::vector<spi::WriteResult> results_;
  spi::StoredDocument document_;
};

Result<OpenedProvider> open_slotfile(Env& env, const std::string& directory, Executor& background) {
  SlotfileOptions options;
  options.background = &background;
  options.directory = directory + "/slotfiles";
  FJORD_TRY_ASSIGN(std::unique_ptr<SlotfileProvider> provider, SlotfileProvider::open(env, options));
  SlotfileProvider* const slotfile = provider.get();
  return OpenedProvider{.provider = std::move(provider), .settle = [slotfile] { return slotfile->checkpoint(); }};
}

Result<OpenedProvider> open_leveldb(Env& env, const std::string& directory, Executor& /*background*/) {
  LeveldbOptions options;
  options.directory = directory + "/leveldb";
  FJORD_TRY_ASSIGN(std::unique_ptr<spi::PersistenceProvider> provider, open_leveldb_provider(env, options));
  return OpenedProvider{.provider = std::move(provider), .settle = [] { return Status::ok(); }};
}

}  // namespace

std::vector<EngineConfiguration> provider_configurations() {
  return {{.name = "slotfile",
           .family = "slotfile",
           .settings = "all defaults, with a thread that syncs in the background; settled by a checkpoint",
           .make = [](DocumentSize) { return std::make_unique<ProviderEngine>(open_slotfile); }},
          {.name = "leveldb-provider",
           .family = "leveldb",
           .settings =
               "Fjord's engine on LevelDB (storage/leveldb), all defaults: what the contract of an engine costs over "
               "LevelDB alone",
           .make = [](DocumentSize) { return std::make_unique<ProviderEngine>(open_leveldb); }}};
}

}  // namespace fjord::bench
