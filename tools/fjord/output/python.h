#pragma once

#include <string>
#include <vector>

namespace fjord::cli {

/// Runs a Python program that is installed beside this one (tools/fjord/scripts), and waits for its end. `quiet`: its
/// standard error is dropped. Returns its exit code; -1 if it did not start or did not exit normally.
int run_python(const std::string& program, const std::vector<std::string>& arguments, bool quiet);

}  // namespace fjord::cli
