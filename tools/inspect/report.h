#pragma once

#include <string>
#include <vector>

#include "fjord/storage/slotfile/slotfile_inspect.h"

namespace fjord::inspect {

/// The stores found under the paths of the command line.
struct Findings {
  std::vector<StoreReport> stores;

  std::uint64_t problem_count() const;
  std::uint64_t slotfile_count() const;
  std::uint64_t segment_count() const;
  std::uint64_t entry_count() const;  ///< Entries in slotfiles.
  std::uint64_t record_count() const;
};

/// Returns one line for each store, stripe, file and entry, indented below its container.
std::string to_text(const Findings& findings);
/// Returns {"stores": [...]}; bucket ids and checksums as hexadecimal strings.
std::string to_json(const Findings& findings);

}  // namespace fjord::inspect
