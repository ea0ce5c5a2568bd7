#include "output/text_table.h"

#include <catch2/catch.hpp>

namespace fjord::cli {

TEST_CASE("table: the width of a text is that of its characters on a terminal") {
  // As Unicode's East Asian Width and its combining classes have it.
  CHECK(display_width("Oslo") == 4);
  CHECK(display_width("Najr\u0101n") == 6);
  CHECK(display_width("\u017babbar") == 6);
  CHECK(display_width("\u65e5\u672c") == 4);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("\xff\xfe") == 2);
  CHECK(display_width("") == 0);
}

TEST_CASE("table: columns are in line whatever their characters are") {
  const std::string text = table_text({{"city"}, {"n", true}, {"note"}},
                                      {{"Najr\u0101n", "1", "a"}, {"\u65e5\u672c", "22", "b"}, {"Oslo", "333", ""}});
  CHECK(text == "city      n  note\nNajr\u0101n    1  a\n\u65e5\u672c     22  b\nOslo    333\n");
}

TEST_CASE("table: a cell does not break its line, nor does it control the terminal") {
  CHECK(table_text({{"a"}, {"b"}}, {{"x\ny", "\x1b[31m"}}) == "a     b\nx\\ny  \\x1b[31m\n");
}

TEST_CASE("table: a column without values can be left out") {
  const std::vector<TableColumn> columns = {{"a"}, {.heading = "group", .may_be_absent = true}};
  CHECK(table_text(columns, {{"x", "-"}, {"y", ""}}) == "a\nx\ny\n");
  CHECK(table_text(columns, {{"x", "-"}, {"y", "east"}}) == "a  group\nx  -\ny  east\n");
}

}  // namespace fjord::cli
