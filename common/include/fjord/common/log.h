#pragma once

#include <fmt/core.h>
#include <string>
#include <string_view>
#include <utility>

namespace fjord::log {

enum class Level { Debug, Info, Warning, Error, Off };

/// Sets the lowest level that is logged. Log lines go to standard error with time, level and component. Threading:
/// every thread. Default level: Info; the simulation turns the log off.
void set_level(Level level);
/// Parses "debug", "info", "warning", "error" or "off"; Info for any other text.
Level level_from_string(std::string_view name);
bool enabled(Level level);
void write(Level level, std::string_view component, const std::string& line);

template <typename... Args>
void debug(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Debug)) write(Level::Debug, component, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Info)) write(Level::Info, component, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Warning)) write(Level::Warning, component, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(std::string_view component, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::Error)) write(Level::Error, component, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace fjord::log
