#pragma once

#include <string>
#include <string_view>

namespace fjord {

/// "0.1.0", as project() in the root CMakeLists.txt says.
std::string_view version();
/// The git revision that this was built from, with "-dirty" if files were changed; empty if it is not known.
std::string_view revision();
/// What a program says for --version: "fjordd 0.1.0 (revision 1a2b3c4d5e6f)".
std::string version_text(std::string_view program);

}  // namespace fjord
