#pragma once

#include <string>
#include <vector>

#include "fjord/library/detail/client_core.h"
#include "fjord/library/files.h"

namespace fjord {

/// Does what Client::export_to() promises.
ExportSummary export_documents(ClientCore& core, const std::string& path, const ExportOptions& options);

/// Does what Client::import_from() promises.
ImportSummary import_documents(ClientCore& core, const std::vector<std::string>& paths, const ImportOptions& options);

}  // namespace fjord
