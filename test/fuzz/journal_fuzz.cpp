#include <cstdint>
#include <string>
#include <string_view>

#include "catalog.h"
#include "fjord/common/check.h"
#include "fjord/sim/sim_env.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "journal_format.h"

namespace {

void write(fjord::Env& env, const std::string& path, std::string_view bytes) {
  FJORD_CHECK(fjord::write_file_atomically(env, path, bytes, false).is_ok());
}

}  // namespace

/// What the engine reads when it is opened: records of the journal and edits by themselves, and the bytes as a segment
/// of the journal, as a catalog and as a slotfile of an engine that then has to open, or to say why not.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fjord;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(slotfile::decode_writes(bytes.substr(0, size / 2), bytes.substr(size / 2)).has_value());
  static_cast<void>(slotfile::decode_edit(bytes).has_value());
  sim::SimEnv env;
  FJORD_CHECK(env.create_directories("/e").is_ok());
  SlotfileOptions options;
  options.directory = "/e";
  options.journal_segment_bytes = 4096;
  write(env, "/e/" + slotfile::journal_name(0, 1), bytes);
  if (size % 2 == 0) write(env, "/e/" + slotfile::catalog_name(0, 0), bytes);
  write(env, "/e/" + slotfile::slotfile_name(0), bytes);
  static_cast<void>(SlotfileProvider::open(env, options).has_value());
  return 0;
}
