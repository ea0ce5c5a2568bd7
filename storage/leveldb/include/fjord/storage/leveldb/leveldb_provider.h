#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "fjord/common/env.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

struct LeveldbOptions {
  /// Folder with one LevelDB database for each stripe, `leveldb-<stripe>`; created if it is missing. Its parent folder
  /// must exist.
  std::string directory;
  /// This engine serves only the buckets with (raw() & (stripes - 1)) == stripe. The number of stripes of a folder
  /// never changes.
  unsigned stripe = 0;
  unsigned stripes = 1;  ///< Number of stripes of the folder: a power of two, at most 256.
  /// Minimum durability of writes, whatever they ask for.
  spi::Durability durability = spi::Durability::Process;
  /// Minimum durability of changes of buckets (replica sets, splits, deletions). Never less than `durability`.
  spi::Durability change_durability = spi::Durability::Process;
  std::size_t cache_bytes = std::size_t{64} << 20;  ///< Memory for cached blocks of tables.
  /// Memory for writes that are not yet in a table; LevelDB uses up to twice that.
  std::size_t write_buffer_bytes = std::size_t{16} << 20;
  int open_files_max = 1000;
};

/// Opens an engine that implements the provider contract on LevelDB, as a reference for measuring the other engines.
/// Keys and values: storage/leveldb/README.md.
///
/// Threading: like every provider; LevelDB compacts on a thread of its own, so the engine is not for simulations.
/// Lifetime: `env` outlives the engine and must allow calls from that thread. The caller ensures that the folder is
/// open only once.
/// Errors: InvalidArgument (options, another number of stripes), Corruption, NotImplemented (a newer format), NoSpace,
/// IoError.
Result<std::unique_ptr<spi::PersistenceProvider>> open_leveldb_provider(Env& env, const LeveldbOptions& options);

/// Returns the number of stripes with which this engine made the folder; nothing if it did not make the folder. Errors:
/// those of open_leveldb_provider().
Result<std::optional<unsigned>> leveldb_stripes_of(Env& env, const std::string& directory);

}  // namespace fjord
