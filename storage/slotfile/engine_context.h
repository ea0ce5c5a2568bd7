#pragma once

#include <memory>
#include <string>
#include <vector>

#include "file_cache.h"
#include "fjord/common/env.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "read_window.h"

namespace fjord::slotfile {

/// What the parts of one engine share.
struct EngineContext {
  EngineContext(Env& environment, const SlotfileOptions& slotfile_options)
      : env(environment), options(slotfile_options), files(environment, slotfile_options.open_files_max) {}

  std::string path(const std::string& name) const { return options.directory + "/" + name; }

  Env& env;
  SlotfileOptions options;
  FileCache files;
  SlotfileStats stats;
  std::uint64_t index_serial = 0;  ///< Of the index that was made last.
  /// Buffers that are used again for each run, part and copy.
  std::string scratch;
  ReadWindow metadata_window;
  /// Of ReadWindow, for the next iterator: fresh pages from the system cost as much as reading into them.
  std::vector<std::unique_ptr<char[]>> window_buffers;
};

}  // namespace fjord::slotfile
