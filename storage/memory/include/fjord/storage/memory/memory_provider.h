#pragma once

#include <memory>

#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

/// Makes the model of the provider contract, which keeps everything in ordered maps and nothing on disk. The tests of
/// other engines compare with it, and simulations that do not test disks use it.
///
/// Threading: like every provider. Durability: none; its content ends with it.
std::unique_ptr<spi::PersistenceProvider> make_memory_provider();

}  // namespace fjord
