#pragma once

#include <string>
#include <vector>

#include "fjord/storage/slotfile/slotfile_inspect.h"

namespace fjord::inspect {

/// What was found under the paths of the command line.
struct Findings {
  std::vector<BucketReport> buckets;
  std::vector<SlotfileReport> slotfiles;  ///< Named one by one.

  /// All problems, those of slotfiles after those of their bucket.
  std::vector<std::string> problems() const;
  std::uint64_t slotfile_count() const;
  std::uint64_t entry_count() const;
};

/// One line for each thing, indented by what it belongs to.
std::string to_text(const Findings& findings);
/// {"buckets": [...], "slotfiles": [...], "problems": [...]}; 64-bit ids as hexadecimal strings.
std::string to_json(const Findings& findings);

}  // namespace fjord::inspect
