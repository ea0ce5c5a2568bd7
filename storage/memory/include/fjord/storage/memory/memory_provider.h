#pragma once

#include <memory>

#include "fjord/storage/spi/persistence_provider.h"

namespace fjord {

/// Makes the reference implementation of the provider contract, which keeps everything in ordered maps and nothing on
/// disk. The tests of other engines compare with it, and simulations that do not test disks use it.
///
/// Threading: like every provider. Durability: none; the content is lost when the provider is destroyed.
std::unique_ptr<spi::PersistenceProvider> make_memory_provider();

}  // namespace fjord
