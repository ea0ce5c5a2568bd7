#pragma once

#include <map>
#include <nanobind/nanobind.h>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "errors.h"
#include "fjord/common/clock.h"
#include "values.h"

namespace nb = nanobind;

namespace fjord::python {

/// Returns a duration in seconds; None for a negative one, which says that it is not known.
inline nb::object seconds_or_none(Duration duration) {
  if (duration < Duration(0)) return nb::none();
  return nb::float_(std::chrono::duration<double>(duration).count());
}

/// Returns the message of an error; None for OK.
inline nb::object message_or_none(const Status& status) { return status ? nb::none() : to_str(status.to_string()); }

/// Makes the dict from which a record of Python, such as fjord.jobs.JobInfo, is made.
class Record {
 public:
  template <typename T>
  Record& add(const char* name, const T& value) {
    dict_[name] = convert(value);
    return *this;
  }
  nb::dict take() { return std::move(dict_); }

  static nb::object convert(const std::string& text) { return to_str(text); }
  static nb::object convert(std::string_view text) { return to_str(text); }
  static nb::object convert(const char* text) { return to_str(text); }
  static nb::object convert(Duration duration) { return seconds_or_none(duration); }
  static nb::object convert(const Status& status) { return message_or_none(status); }
  static nb::object convert(const nb::object& object) { return object; }
  static nb::object convert(const nb::dict& object) { return object; }
  static nb::object convert(const nb::list& object) { return object; }
  template <typename T>
  requires std::is_arithmetic_v<T>
  static nb::object convert(T number) { return nb::cast(number); }
  template <typename T>
  static nb::object convert(const std::vector<T>& values) {
    nb::list list;
    for (const T& value : values) list.append(convert(value));
    return list;
  }
  template <typename T>
  static nb::object convert(const std::map<std::string, T>& values) {
    nb::dict dict;
    for (const auto& [name, value] : values) dict[to_str(name)] = convert(value);
    return dict;
  }
  template <typename T>
  static nb::object convert(const std::optional<T>& value) {
    return value ? convert(*value) : nb::none();
  }

 private:
  nb::dict dict_;
};

/// Returns the records of values, each made by `f`.
template <typename T, typename F>
nb::list records_of(const std::vector<T>& values, F f) {
  nb::list list;
  for (const T& value : values) list.append(f(value));
  return list;
}

}  // namespace fjord::python
