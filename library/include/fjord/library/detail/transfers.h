#pragma once

#include <string>
#include <vector>

#include "fjord/library/detail/client_core.h"
#include "fjord/library/files.h"

namespace fjord {

/// Client::export_to().
ExportSummary export_documents(ClientCore& core, const std::string& path, const ExportOptions& options);

/// Client::import_from().
ImportSummary import_documents(ClientCore& core, const std::vector<std::string>& paths, const ImportOptions& options);

}  // namespace fjord
