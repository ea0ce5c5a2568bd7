#pragma once

#include <string_view>

namespace fjord {

/// Prints the failed condition and ends the process. For conditions that only a bug can violate.
[[noreturn]] void check_failed(const char* file, int line, std::string_view condition, std::string_view detail = {});

}  // namespace fjord

/// Ends the process if the condition is false, in every build.
#define FJORD_CHECK(condition)                               \
  do {                                                       \
    if (!(condition)) [[unlikely]] {                         \
      ::fjord::check_failed(__FILE__, __LINE__, #condition); \
    }                                                        \
  } while (false)

#define FJORD_CHECK_MSG(condition, detail)                             \
  do {                                                                 \
    if (!(condition)) [[unlikely]] {                                   \
      ::fjord::check_failed(__FILE__, __LINE__, #condition, (detail)); \
    }                                                                  \
  } while (false)
