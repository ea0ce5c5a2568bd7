#pragma once

#include <memory>

#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

/// The model of the provider contract: everything in ordered maps, nothing on disk. The oracle of the other engines'
/// tests, and the engine of simulations that are not about disks.
///
/// Threading: like every provider. Durability: none; its content ends with it.
std::unique_ptr<spi::PersistenceProvider> make_memory_provider();

}  // namespace fjord
