#pragma once

#include <functional>
#include <memory>
#include <nanobind/nanobind.h>

#include "fjord/library/jobs.h"
#include "gil.h"

namespace nb = nanobind;

namespace fjord::python {

/// Returns the members of fjord.jobs.JobInfo.
nb::dict job_to_dict(const JobInfo& job);
/// Returns a callback that calls `f` with the members of JobInfo, on the thread that waits. `f` may be None.
std::function<void(const JobInfo&)> progress_to(const std::shared_ptr<Mailbox>& mailbox, nb::handle f);

}  // namespace fjord::python
