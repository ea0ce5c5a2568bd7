#pragma once

#include <string_view>

#include "fjord/library/detail/job_calls.h"

namespace fjord::cli {

/// Returns the exit code of a done job. Prints a message if its results lack documents.
int exit_code_of_done(const rpc::JobStatus& job);

/// "auto", "store" or "direct".
std::string_view shuffle_text(rpc::Shuffle shuffle);
rpc::Shuffle shuffle_from(std::string_view text);

}  // namespace fjord::cli
