#include "fjord/common/hash.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

std::uint64_t entry_hash(const GlobalId& gid, Timestamp timestamp, bool removed) {
  return mix64(hash64(gid.view(), timestamp.us), removed ? 1 : 0);
}

}  // namespace fjord::spi
