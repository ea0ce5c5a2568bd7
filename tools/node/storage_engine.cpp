#include "storage_engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "fjord/common/log.h"
#include "fjord/common/open_files.h"
#include "fjord/storage/leveldb/leveldb_provider.h"
#include "fjord/storage/slotfile/slotfile_provider.h"

namespace fjord {
namespace {

constexpr const char* kLeveldb = "leveldb";
constexpr const char* kSlotfile = "slotfile";
constexpr std::size_t kLeveldbCacheBytes = std::size_t{256} << 20;  // for all stripes together

spi::Durability durability_of(const config::ClusterConfig& config) {
  return config.durability == "sync" ? spi::Durability::Sync : spi::Durability::Process;
}

/// Returns how many files a stripe may keep open: half of those that the process may open are for its stripes.
unsigned files_of_stripe(const config::ClusterConfig& config, unsigned stripes) {
  constexpr std::uint64_t kLeast = 16;
  const std::uint64_t share = std::max(kLeast, open_files_max() / 2 / stripes);
  return static_cast<unsigned>(std::min(static_cast<std::uint64_t>(config.open_files_max), share));
}

void say_what_was_opened(unsigned stripe, Duration spent, const SlotfileStats& stats) {
  constexpr double kMib = 1 << 20;
  log::info("slotfile",
            "stripe {} is open after {:.3f} s: {} entries in {} slotfiles; {:.1f} MiB of the journal replayed", stripe,
            static_cast<double>(spent.count()) / 1e6, stats.entries, stats.slotfiles,
            static_cast<double>(stats.replayed_bytes) / kMib);
}

storage::ProviderFactory slotfile_factory(const config::ClusterConfig& config, const std::string& directory,
                                          unsigned stripes, Runtime& runtime, Executor& syncs,
                                          std::unique_ptr<SlotfileTunables>& tunables) {
  SlotfileOptions options;
  options.directory = directory;
  options.limits.file_bytes_max = static_cast<std::uint64_t>(config.slotfile_bytes_max);
  options.limits.entries_max = static_cast<std::uint32_t>(config.entries_max);
  options.limits.slotfiles_max = static_cast<std::uint32_t>(config.slotfiles_max);
  options.open_files_max = files_of_stripe(config, stripes);
  options.change_durability = durability_of(config);
  options.background = &syncs;
  options.metrics = &runtime.metrics;
  options.clock = &runtime.clock;
  tunables = std::make_unique<SlotfileTunables>(runtime.tunables, options.limits);
  options.tunables = tunables.get();
  options.limits = tunables->of_stripe(stripes);
  return [options, &runtime](unsigned stripe, unsigned of) -> Result<std::unique_ptr<spi::PersistenceProvider>> {
    SlotfileOptions of_stripe = options;
    of_stripe.stripe = stripe;
    of_stripe.stripes = of;
    const MonotonicTime begin = runtime.clock.now();
    FJORD_TRY_ASSIGN(std::unique_ptr<SlotfileProvider> provider, SlotfileProvider::open(runtime.env, of_stripe));
    say_what_was_opened(stripe, runtime.clock.now() - begin, provider->stats());
    return std::unique_ptr<spi::PersistenceProvider>(std::move(provider));
  };
}

storage::ProviderFactory leveldb_factory(const config::ClusterConfig& config, const std::string& directory,
                                         unsigned stripes, Runtime& runtime) {
  LeveldbOptions options;
  options.directory = directory;
  options.cache_bytes = kLeveldbCacheBytes / stripes;
  options.open_files_max = static_cast<int>(files_of_stripe(config, stripes));
  options.change_durability = durability_of(config);
  return [options, &env = runtime.env](unsigned stripe, unsigned of) {
    LeveldbOptions of_stripe = options;
    of_stripe.stripe = stripe;
    of_stripe.stripes = of;
    return open_leveldb_provider(env, of_stripe);
  };
}

}  // namespace

storage::StorageNodeOptions storage_node_options(const config::ClusterConfig& config, std::uint16_t index) {
  storage::StorageNodeOptions options;
  options.index = index;
  options.settings_from_file = config.live_settings_given();
  options.directory = config.find({config::Role::Storage, index})->directory;
  // Set for the node and not for the engine, whose durability would be a lower bound for every client's request.
  options.durability = durability_of(config);
  return options;
}

Result<StorageEngine> choose_storage_engine(const config::ClusterConfig& config, std::uint16_t index,
                                            const std::string& directory, unsigned stripes, Runtime& runtime,
                                            Executor& syncs) {
  FJORD_TRY_ASSIGN(const std::optional<unsigned> slotfile, SlotfileProvider::stripes_of(runtime.env, directory));
  FJORD_TRY_ASSIGN(const std::optional<unsigned> leveldb, leveldb_stripes_of(runtime.env, directory));
  const std::string& own = config.find({config::Role::Storage, index})->engine;
  const std::string key = own.empty() ? "storage_options.engine" : fmt::format("storage[{}].engine", index);
  const bool wants_leveldb = (own.empty() ? config.engine : own) == kLeveldb;
  if (wants_leveldb ? slotfile.has_value() : leveldb.has_value()) {
    return Status(
        StatusCode::InvalidArgument,
        fmt::format("{} was made by the engine {}, and {} is {}: set it back, or give the node an empty folder, which "
                    "is filled from the other replicas",
                    directory, wants_leveldb ? kSlotfile : kLeveldb, key, wants_leveldb ? kLeveldb : kSlotfile));
  }
  const std::optional<unsigned> made_with = wants_leveldb ? leveldb : slotfile;
  if (made_with && *made_with != stripes) {
    log::warning("storage", "{} was made with {} stripes; it keeps them instead of the {} of the configuration",
                 directory, *made_with, stripes);
    stripes = *made_with;
  }
  StorageEngine engine;
  engine.stripes = stripes;
  engine.open = wants_leveldb ? leveldb_factory(config, directory, stripes, runtime)
                              : slotfile_factory(config, directory, stripes, runtime, syncs, engine.tunables);
  return engine;
}

}  // namespace fjord
