#pragma once

#include <string>
#include <string_view>

namespace fjord {

/// "0.1.0", as project() in the root CMakeLists.txt says.
std::string_view version();
/// Returns the git revision of the build, with "-dirty" if files had uncommitted changes; empty if unknown.
std::string_view revision();
/// Returns the output of --version: "fjordd 0.1.0 (revision 1a2b3c4d5e6f)".
std::string version_text(std::string_view program);

}  // namespace fjord
