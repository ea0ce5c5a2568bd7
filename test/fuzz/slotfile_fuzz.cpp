#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/check.h"
#include "fjord/sim/sim_env.h"
#include "slot_file.h"

/// Slotfiles, after a header and the first frame that are right: the walk through whatever follows ends.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fjord;
  sim::SimEnv env;
  FJORD_CHECK(env.create_directories("/e").is_ok());
  SlotfileOptions options;
  options.directory = "/e";
  slotfile::EngineContext context(env, options);
  std::string file = slotfile::encode_file_header({.number = 3, .bucket = BucketId(8, 1)});
  const slotfile::RunFrame frame{.entries = static_cast<std::uint32_t>(size / slotfile::kEntryBytes),
                                 .header_bytes = size % slotfile::kEntryBytes,
                                 .body_bytes = 0};
  file += slotfile::encode_run_frame(frame, slotfile::kRunHeaderMagic, 3, file.size());
  file.append(reinterpret_cast<const char*>(data), size);
  FJORD_CHECK(write_file_atomically(env, "/e/" + slotfile::slotfile_name(3), file, false).is_ok());
  slotfile::SlotFile slot_file(context, 3, file.size());
  std::string part;
  const auto corrupt = slot_file.walk([&](const slotfile::MetaEntry& entry, bool valid) {
    if (!valid) return;
    static_cast<void>(slot_file.read_part(entry, slotfile::Part::Header, part).is_ok());
    static_cast<void>(slot_file.read_part(entry, slotfile::Part::Body, part).is_ok());
  });
  FJORD_CHECK(corrupt.has_value());
  return 0;
}
