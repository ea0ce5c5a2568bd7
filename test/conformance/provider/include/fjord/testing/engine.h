#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/sim/sim_env.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/testing/faulty_env.h"

namespace fjord::testing {

/// A storage engine with its own disk, for the tests that every engine has to pass.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual spi::PersistenceProvider& provider() = 0;
  /// Closes and opens the engine, as if the process had restarted. No effect for engines without persistent data.
  virtual void reopen() = 0;
  /// Moves data from memory and journal to its final place. No effect for engines that have none.
  virtual void checkpoint() = 0;
  /// Returns null if the engine has no disk.
  virtual FaultyEnv* disk() = 0;
};

/// Limits so small that a few dozen documents enlarge, compact and split slotfiles.
SlotfileOptions tiny_slotfile_options(const std::string& directory);

/// Returns the names that make_engine accepts: "memory", "slotfile" (files of the operating system), "slotfile tiny"
/// and "slotfile sync" (simulated disk), "leveldb" and "leveldb sync" (files of the operating system).
std::vector<std::string> engine_names();
std::unique_ptr<Engine> make_engine(const std::string& name);

}  // namespace fjord::testing
