#pragma once

#include <string>
#include <vector>

#include "fjord/storage/slotfile/slotfile_inspect.h"

namespace fjord::inspect {

/// What was found under the paths of the command line.
struct Findings {
  std::vector<StoreReport> stores;

  std::uint64_t problem_count() const;
  std::uint64_t slotfile_count() const;
  std::uint64_t segment_count() const;
  std::uint64_t entry_count() const;  ///< In slotfiles.
  std::uint64_t record_count() const;
};

/// One line for each thing, indented by what it belongs to.
std::string to_text(const Findings& findings);
/// {"stores": [...]}; bucket ids and checksums as hexadecimal strings.
std::string to_json(const Findings& findings);

}  // namespace fjord::inspect
