#include "bindings.h"

NB_MODULE(_core, module) {
  nb::set_leak_warnings(false);  // A client in a global variable of a program is no leak.
  module.doc() = "The C++ part of the package fjord. Programs use the package.";
  fjord::python::bind_client(module);
  fjord::python::bind_documents(module);
  fjord::python::bind_visit(module);
  fjord::python::bind_feed(module);
  fjord::python::bind_bulk(module);
  fjord::python::bind_files(module);
  fjord::python::bind_subscription(module);
  fjord::python::bind_arrow(module);
  fjord::python::bind_aggregate(module);
  fjord::python::bind_jobs(module);
  fjord::python::bind_admin(module);
  fjord::python::bind_balancing(module);
  fjord::python::bind_tuning(module);
  fjord::python::bind_search(module);
  fjord::python::bind_schema(module);
}
