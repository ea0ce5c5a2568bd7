#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/document/document_format.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

std::uint64_t entry_hash(const GlobalId& gid, Timestamp timestamp, bool removed) {
  return mix64(hash64(gid.view(), timestamp.us), removed ? 1 : 0);
}

Result<bool> DocumentIterator::visit(const std::function<bool(const EntryView&)>& sink) {
  for (bool more = true; more;) {
    DocBlockBuilder block;
    FJORD_TRY_ASSIGN(more, next(block, 1));
    const std::string bytes = block.take();
    DocBlockReader reader(bytes);
    bool go_on = !bytes.empty();  // Otherwise the turn is over.
    while (const std::optional<EntryView> entry = reader.next()) go_on = sink(*entry) && go_on;
    if (!go_on) return more;
  }
  return false;
}

void set_compression(Write& write, const DocumentTypeRepo& types) {
  if (write.header.size() < kDocumentIdLengthOffset) return;
  const DocumentType* type = types.find(load_fixed<std::uint32_t>(write.header.data() + 1));
  if (type == nullptr) return;
  write.header_compression = type->header_compression();
  write.body_compression = type->body_compression();
}

Status not_of_bucket(const Write& write) {
  return Status(StatusCode::InvalidArgument, write.gid.to_string() + " does not belong to " + write.bucket.to_string());
}

}  // namespace fjord::spi
