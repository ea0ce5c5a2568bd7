#pragma once

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace fjord::python {

// Each adds its classes and functions to the module fjord._core. They are for the sources in Python beside this folder,
// which are what users see.

void bind_client(nb::module_& module);
void bind_documents(nb::module_& module);
void bind_visit(nb::module_& module);
void bind_feed(nb::module_& module);
void bind_bulk(nb::module_& module);
void bind_files(nb::module_& module);
void bind_subscription(nb::module_& module);
void bind_arrow(nb::module_& module);
void bind_aggregate(nb::module_& module);
void bind_jobs(nb::module_& module);
void bind_admin(nb::module_& module);
void bind_balancing(nb::module_& module);
void bind_tuning(nb::module_& module);
void bind_search(nb::module_& module);
void bind_schema(nb::module_& module);

}  // namespace fjord::python
