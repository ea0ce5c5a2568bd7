#pragma once

#include <cstdint>
#include <map>
#include <nanobind/nanobind.h>

#include "fjord/common/status.h"
#include "fjord/library/files.h"
#include "fjord/library/visit.h"

namespace nb = nanobind;

namespace fjord::python {

/// Returns counts by the name of the code: {"INVALID_FIELD": 3}.
nb::dict counts_to_dict(const std::map<StatusCode, std::uint64_t>& counts);
/// Returns the members of fjord.ImportSummary.
nb::dict import_to_dict(const ImportSummary& summary);
/// Returns the counts of a visit by name.
nb::dict statistics_to_dict(const VisitStatistics& statistics);
/// Returns a progress from 0 to 1; None for a negative number, which says that it is not known yet.
nb::object fraction_or_none(double fraction);

}  // namespace fjord::python
