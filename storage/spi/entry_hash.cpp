#include "fjord/common/hash.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

std::uint64_t entry_hash(const GlobalId& gid, Timestamp timestamp, bool removed) {
  return mix64(hash64(gid.view(), timestamp.us), removed ? 1 : 0);
}

Status not_of_bucket(const Write& write) {
  return Status(StatusCode::InvalidArgument, write.gid.to_string() + " does not belong to " + write.bucket.to_string());
}

}  // namespace fjord::spi
