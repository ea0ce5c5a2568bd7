#pragma once

#include <string>
#include <vector>

namespace fjord::cli {

/// Runs the `python3` of the PATH with these arguments, and waits for its end. `quiet`: its messages on standard error
/// are discarded. Returns its exit code, or -1 if it could not be run or was killed.
int run_python(std::vector<std::string> arguments, bool quiet);
/// Replaces this program by the `python3` of the PATH with these arguments. Returns only if there is none.
void become_python(std::vector<std::string> arguments);

}  // namespace fjord::cli
