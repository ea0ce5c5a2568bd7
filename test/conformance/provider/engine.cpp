#include "fjord/testing/engine.h"

#include <cstdlib>
#include <filesystem>
#include <unistd.h>

#include "fjord/common/check.h"
#include "fjord/storage/leveldb/leveldb_provider.h"
#include "fjord/storage/memory/memory_provider.h"

namespace fjord::testing {

namespace {

class MemoryEngine final : public Engine {
 public:
  spi::PersistenceProvider& provider() override { return *provider_; }
  void reopen() override {}
  void checkpoint() override {}
  FaultyEnv* disk() override { return nullptr; }

 private:
  std::unique_ptr<spi::PersistenceProvider> provider_ = make_memory_provider();
};

class SlotfileEngine final : public Engine {
 public:
  SlotfileEngine(std::unique_ptr<Env> env, SlotfileOptions options, std::string scratch = {})
      : env_(std::make_unique<FaultyEnv>(std::move(env))), options_(std::move(options)), scratch_(std::move(scratch)) {
    reopen();
  }
  ~SlotfileEngine() override {
    provider_.reset();
    if (!scratch_.empty()) static_cast<void>(env_->remove_all(scratch_));
  }
  spi::PersistenceProvider& provider() override { return *provider_; }
  void reopen() override {
    provider_.reset();
    auto opened = SlotfileProvider::open(*env_, options_);
    FJORD_CHECK_MSG(opened.has_value(), opened.status().to_string());
    provider_ = std::move(*opened);
  }
  void checkpoint() override { FJORD_CHECK(provider_->checkpoint().is_ok()); }
  FaultyEnv* disk() override { return env_.get(); }

 private:
  std::unique_ptr<FaultyEnv> env_;
  const SlotfileOptions options_;
  const std::string scratch_;
  std::unique_ptr<SlotfileProvider> provider_;
};

class LeveldbEngine final : public Engine {
 public:
  LeveldbEngine(std::string scratch, Durability durability) : scratch_(std::move(scratch)) {
    options_.directory = scratch_ + "/buckets";
    options_.durability = durability;
    options_.write_buffer_bytes = 64 << 10;  // Small, so that there are many tables and compactions.
    reopen();
  }
  ~LeveldbEngine() override {
    provider_.reset();
    static_cast<void>(env_->remove_all(scratch_));
  }
  spi::PersistenceProvider& provider() override { return *provider_; }
  void reopen() override {
    provider_.reset();
    auto opened = open_leveldb_provider(*env_, options_);
    FJORD_CHECK_MSG(opened.has_value(), opened.status().to_string());
    provider_ = std::move(*opened);
  }
  void checkpoint() override {}
  FaultyEnv* disk() override { return env_.get(); }

 private:
  std::unique_ptr<FaultyEnv> env_ = std::make_unique<FaultyEnv>(make_posix_env());
  const std::string scratch_;
  LeveldbOptions options_;
  std::unique_ptr<spi::PersistenceProvider> provider_;
};

std::string make_scratch_directory() {
  std::string path = (std::filesystem::temp_directory_path() / "fjord-provider-XXXXXX").string();
  FJORD_CHECK(::mkdtemp(path.data()) != nullptr);
  return path;
}

}  // namespace

SlotfileOptions tiny_slotfile_options(const std::string& directory) {
  SlotfileOptions options;
  options.directory = directory;
  options.limits.file_bytes_max = 6 << 10;
  options.limits.entries_max = 24;
  options.limits.slotfiles_max = 8;
  options.limits.held_bytes_max = 4 << 10;
  options.limits.index_bytes_max = 4 << 10;
  options.limits.journal_bytes_max = 16 << 10;
  options.limits.scrub_bytes_per_second = 1 << 20;
  options.journal_segment_bytes = 4 << 10;
  options.open_files_max = 3;
  return options;
}

std::vector<std::string> engine_names() {
  return {"memory", "slotfile", "slotfile tiny", "slotfile sync", "leveldb", "leveldb sync"};
}

std::unique_ptr<Engine> make_engine(const std::string& name) {
  if (name == "memory") return std::make_unique<MemoryEngine>();
  if (name == "slotfile") {
    const std::string scratch = make_scratch_directory();
    SlotfileOptions options;
    options.directory = scratch + "/buckets";
    return std::make_unique<SlotfileEngine>(make_posix_env(), options, scratch);
  }
  if (name == "leveldb") return std::make_unique<LeveldbEngine>(make_scratch_directory(), Durability::Process);
  if (name == "leveldb sync") return std::make_unique<LeveldbEngine>(make_scratch_directory(), Durability::Sync);
  SlotfileOptions options = tiny_slotfile_options("/node/buckets");
  if (name == "slotfile sync") options.durability = Durability::Sync;
  FJORD_CHECK(name == "slotfile tiny" || name == "slotfile sync");
  return std::make_unique<SlotfileEngine>(std::make_unique<sim::SimEnv>(), options);
}

}  // namespace fjord::testing
