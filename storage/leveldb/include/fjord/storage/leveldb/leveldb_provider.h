#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "fjord/common/env.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

struct LeveldbOptions {
  /// Holds one LevelDB database for each stripe, `leveldb-<stripe>`; made if it is missing. What it is in has to be
  /// there already.
  std::string directory;
  /// This engine serves the buckets with (raw() & (stripes - 1)) == stripe. The number of stripes of a folder never
  /// changes.
  unsigned stripe = 0;
  unsigned stripes = 1;  ///< A power of two, at most 256.
  /// The least that writes get, whatever they ask for.
  spi::Durability durability = spi::Durability::Process;
  /// The least that changes of buckets get: replica sets, splits, what is deleted. Never less than `durability`.
  spi::Durability change_durability = spi::Durability::Process;
  std::size_t cache_bytes = std::size_t{64} << 20;         ///< Memory for blocks of tables.
  std::size_t write_buffer_bytes = std::size_t{16} << 20;  ///< Written and not yet in a table; twice that at most.
  int open_files_max = 1000;
};

/// The same contract on LevelDB, the yardstick of the engines. Keys and values: storage/leveldb/README.md.
///
/// Threading: like every provider; LevelDB compacts on a thread of its own, so it is not for simulations.
/// Lifetime: `env` outlives it, and has to stand calls from that thread. Whoever opens it sees to it that nobody else
/// has the folder open.
/// Errors: InvalidArgument (options, another number of stripes), Corruption, NotImplemented (a newer format), NoSpace,
/// IoError.
Result<std::unique_ptr<spi::PersistenceProvider>> open_leveldb_provider(Env& env, const LeveldbOptions& options);

/// With how many stripes the folder was made; nothing if it is not one of this engine. Errors: as of
/// open_leveldb_provider().
Result<std::optional<unsigned>> leveldb_stripes_of(Env& env, const std::string& directory);

}  // namespace fjord
