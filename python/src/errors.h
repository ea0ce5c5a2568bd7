#pragma once

#include <nanobind/nanobind.h>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/common/status.h"
#include "fjord/library/documents.h"

namespace nb = nanobind;

namespace fjord::python {

/// What an exception says beside the status.
struct ErrorContext {
  bool is_in_doubt = false;  ///< A write was sent, and its outcome is not known.
  std::optional<std::uint64_t> current_version =
      {};  ///< Version of the document that a condition was compared with; 0: none.
};

// The exceptions are classes of fjord/errors.py. All of these need the interpreter lock.

/// Returns the exception for an error, without raising it.
nb::object to_exception(const Status& status, const ErrorContext& context = {});
[[noreturn]] void raise(const Status& status, const ErrorContext& context = {});
/// Raises unless `status` is OK.
void check(const Status& status);
/// Raises fjord.WrongType: `field` is the path of the value, "credits[0].name".
[[noreturn]] void raise_wrong_type(std::string_view field, std::string_view expected, nb::handle got);

/// Returns an iterator over an argument. Raises WrongType for what has none.
nb::object iterable_argument(nb::handle value, std::string_view name, std::string_view expected);

/// Returns the value, or raises its error.
template <typename T>
T value_of(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

/// Returns the exception for a write that was not applied, or whose outcome is not known.
nb::object to_exception(const WriteResult& result);

/// Raises an exception object.
[[noreturn]] void raise_object(const nb::object& exception);

}  // namespace fjord::python
