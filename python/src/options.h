#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>
#include <optional>
#include <string_view>

#include "client_handle.h"
#include "fjord/library/visit.h"

namespace nb = nanobind;

namespace fjord::python {

// Properties that several classes of options have, with the types of Python.

template <typename Options>
nb::object get_slice(const Options& options) {
  return options.slice ? nb::object(nb::make_tuple(options.slice->index, options.slice->count)) : nb::none();
}
template <typename Options>
void set_slice(Options& options, std::pair<std::uint64_t, std::uint64_t> slice) {
  options.slice = VisitSlice{slice.first, slice.second};
}

// Times of writing, in microseconds as the versions of documents.
template <typename Options>
std::uint64_t get_from(const Options& options) {
  return options.from.us;
}
template <typename Options>
void set_from(Options& options, std::uint64_t us) {
  options.from = Timestamp{us};
}
template <typename Options>
std::uint64_t get_to(const Options& options) {
  return options.to.us;
}
template <typename Options>
void set_to(Options& options, std::uint64_t us) {
  options.to = Timestamp{us};
}

/// The getter of a property that is only set.
template <typename Options>
nb::object get_nothing(const Options&) {
  return nb::none();
}
template <typename Options>
void set_priority(Options& options, std::string_view name) {
  options.priority = to_priority(name);
}
template <typename Options>
void set_no_progress_limit(Options& options, double seconds) {
  options.no_progress_limit = to_duration(seconds, "no_progress_limit");
}
template <typename Options>
void set_period(Options& options, double seconds) {
  options.period = to_duration(seconds, "period");
}
template <typename Options>
void set_timeout(Options& options, double seconds) {
  options.timeout = to_duration(seconds);
}

}  // namespace fjord::python
