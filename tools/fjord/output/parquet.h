#pragma once

#include <string>
#include <vector>

#include "commands/commands.h"

namespace fjord::cli {

bool is_parquet(const std::string& path);

// The Python package reads and writes Parquet files, because Debian has no C++ package for them. These two replace this
// program by `python3 -m fjord`, with the same arguments. They return, with an exit code, only if that is not possible.

int export_parquet(const ExportArgs& args);
/// All files are Parquet files.
int import_parquet(const FeedArgs& args);

}  // namespace fjord::cli
