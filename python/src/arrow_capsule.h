#pragma once

#include <memory>
#include <nanobind/nanobind.h>

#include "fjord/library/arrow_abi.h"

namespace nb = nanobind;

namespace fjord::python {

/// Return the capsules of the Arrow PyCapsule interface. An interface that no consumer takes out is released with its
/// capsule.
nb::object to_capsule(std::unique_ptr<ArrowArrayStream> stream);
nb::object to_capsule(std::unique_ptr<ArrowSchema> schema);

}  // namespace fjord::python
