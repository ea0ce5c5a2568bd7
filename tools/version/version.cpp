#include "fjord/version/version.h"

#include "revision.h"

namespace fjord {

std::string_view version() { return FJORD_VERSION; }

std::string_view revision() { return FJORD_REVISION; }

std::string version_text(std::string_view program) {
  std::string text = std::string(program) + " " + std::string(version());
  if (!revision().empty()) text += " (revision " + std::string(revision()) + ")";
  return text;
}

}  // namespace fjord
