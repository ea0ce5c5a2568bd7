#pragma once

#include <span>
#include <string_view>

/// The files of the console, which the build has made of console/page.
namespace fjord::console {

struct Asset {
  std::string_view name;  ///< Below /console/: "index.html", "main-1F3A9C0D.js".
  std::string_view content_type;
  std::string_view etag;      ///< The HTTP entity tag, with quotes.
  bool is_immutable = false;  ///< Other contents would have another name.
  std::string_view gzip;      ///< The contents, compressed.
};

/// Returns all files; empty if the console was left out of the build. They live as long as the program.
std::span<const Asset> assets();
/// Returns why the console was left out; empty if it is there.
std::string_view why_missing();

}  // namespace fjord::console
