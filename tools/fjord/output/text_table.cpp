#include "output/text_table.h"

#include <algorithm>
#include <clocale>
#include <cwchar>
#include <fmt/format.h>
#include <locale.h>

namespace fjord::cli {
namespace {

/// wcwidth() and mbrtowc() go by the locale of the thread. The one of the user may have no UTF-8.
class Utf8Locale {
 public:
  Utf8Locale() : before_(::uselocale(locale())) {}
  ~Utf8Locale() { ::uselocale(before_); }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  static locale_t locale() {
    static const locale_t utf8 = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return utf8;
  }
  locale_t before_;
};

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20) || c == 0x7f; }

std::string without_controls(std::string text) {
  if (std::none_of(text.begin(), text.end(), is_control)) return text;
  std::string shown;
  for (const char c : text) {
    if (!is_control(c)) {
      shown += c;
    } else if (c == '\n' || c == '\t') {
      shown += c == '\n' ? "\\n" : "\\t";
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return shown;
}

bool is_absent(const std::vector<std::vector<std::string>>& rows, std::size_t column) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return row[column].empty() || row[column] == "-"; });
}

}  // namespace

std::size_t display_width(std::string_view text) {
  const Utf8Locale utf8;
  std::size_t width = 0;
  std::mbstate_t state{};
  while (!text.empty()) {
    wchar_t character = 0;
    const std::size_t bytes = std::mbrtowc(&character, text.data(), text.size(), &state);
    const bool is_malformed = bytes > text.size();
    if (is_malformed) state = {};
    const int columns = is_malformed ? 1 : ::wcwidth(character);
    width += columns < 0 ? 1 : static_cast<std::size_t>(columns);
    text.remove_prefix(is_malformed || bytes == 0 ? 1 : bytes);
  }
  return width;
}

std::string table_text(const std::vector<TableColumn>& columns, std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> shown;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!columns[i].may_be_absent || !is_absent(rows, i)) shown.push_back(i);
  }
  std::vector<std::string>& headings = *rows.emplace(rows.begin());
  for (const TableColumn& column : columns) headings.push_back(column.heading);
  std::vector<std::size_t> widths(columns.size(), 0);
  for (auto& row : rows) {
    for (const std::size_t i : shown) {
      row[i] = without_controls(std::move(row[i]));
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (const std::size_t i : shown) {
      const std::string padding(widths[i] - display_width(row[i]), ' ');
      line += (line.empty() && i == shown.front() ? "" : "  ");
      line += columns[i].is_right ? padding + row[i] : row[i] + padding;
    }
    const std::size_t end = line.find_last_not_of(' ');
    text += line.substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
  }
  return text;
}

}  // namespace fjord::cli
