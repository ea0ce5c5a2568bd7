#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Tables for people. Pure.
namespace fjord::cli {

/// Returns how many columns of a terminal a UTF-8 text takes: two for a wide character, none for a combining one. A
/// byte that is no UTF-8 takes one.
std::size_t display_width(std::string_view text);

struct TableColumn {
  std::string heading;
  bool is_right = false;       ///< Right-aligned, as numbers are.
  bool may_be_absent = false;  ///< Left out if every cell is empty or "-".
};

/// Returns lines with columns as wide as their cells need; the last column is not padded if it is left-aligned. Control
/// characters of cells are shown as \n, \t and \xHH. Each row has a cell for each column.
std::string table_text(const std::vector<TableColumn>& columns, std::vector<std::vector<std::string>> rows);

}  // namespace fjord::cli
