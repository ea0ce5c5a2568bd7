#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/sim/sim_env.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/testing/faulty_env.h"

namespace fjord::testing {

/// A storage engine on a disk of its own, for tests that every engine has to pass.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual spi::PersistenceProvider& provider() = 0;
  /// As if the process had ended and started again; nothing happens for engines that keep nothing.
  virtual void reopen() = 0;
  /// Brings what is only in memory and in a journal to its final place; nothing happens where there is no such thing.
  virtual void checkpoint() = 0;
  /// Null for engines without one.
  virtual FaultyEnv* disk() = 0;
};

/// Limits so small that a few dozen documents enlarge, compact and split slotfiles.
SlotfileOptions tiny_slotfile_options(const std::string& directory);

/// What make_engine knows: "memory", "slotfile" (files of the operating system), "slotfile tiny" and "slotfile sync"
/// (simulated disk), "leveldb" and "leveldb sync" (files of the operating system).
std::vector<std::string> engine_names();
std::unique_ptr<Engine> make_engine(const std::string& name);

}  // namespace fjord::testing
