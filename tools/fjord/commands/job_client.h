#pragma once

#include "fjord/library/jobs.h"

namespace fjord::cli {

/// Returns the exit code of a done job. Prints a message if its results lack documents.
int exit_code_of_done(const JobInfo& job);

}  // namespace fjord::cli
