#pragma once

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fjord::test {

/// A row of a vector file by column name; columns missing from the row are empty.
using TsvRow = std::map<std::string, std::string, std::less<>>;

/// Splits at `separator`; returns one part more than there are separators.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Undoes the escapes of the vector files: two backslashes, \t, \n, \r, \xHH.
inline std::string unescape_tsv(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char kind = text[++i];
    if (kind == 'x' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += kind == 't' ? '\t' : kind == 'n' ? '\n' : kind == 'r' ? '\r' : kind;
    }
  }
  return out;
}

/// Reads a vector file: lines with '#', a line of column names, then rows. Call it from inside a test case.
inline std::vector<TsvRow> read_tsv(const std::filesystem::path& path) {
  std::ifstream file(path);
  REQUIRE(file.is_open());
  std::vector<std::string> columns;
  std::vector<TsvRow> rows;
  for (std::string line; std::getline(file, line);) {
    if (columns.empty()) {
      if (!line.starts_with('#')) columns = split(line, '\t');
      continue;
    }
    const std::vector<std::string> fields = split(line, '\t');
    TsvRow row;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      row[columns[i]] = i < fields.size() ? unescape_tsv(fields[i]) : std::string();
    }
    rows.push_back(std::move(row));
  }
  REQUIRE(!rows.empty());
  return rows;
}

}  // namespace fjord::test
