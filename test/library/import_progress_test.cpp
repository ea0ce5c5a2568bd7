#include "import_progress.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <utility>

namespace fjord {
namespace {

const std::string kInput = "some folder/music 2 3.jsonl";

TEST_CASE("import progress: what is written is read, also in the former form", "[import]") {
  CHECK(*parse_import_progress(import_progress_text(kInput, 131072), kInput) == 131072);
  CHECK(*parse_import_progress(fmt::format("fjord-import-1 {} 200\n", kInput), kInput) == 200);
  // The same text as a script of Python writes.
  CHECK(import_progress_text("a.parquet", 200) == "fjord-import-2 a.parquet 200 f44dfc9c\n");
}

TEST_CASE("import progress: any changed character, any cut and another input are refused", "[import]") {
  const std::string text = import_progress_text(kInput, 131072);
  for (std::size_t i = 0; i < text.size(); ++i) {
    INFO(i);
    CHECK_FALSE(parse_import_progress(text.substr(0, i), kInput).has_value());
    for (const char other : {'0', '1', '7', ' ', '\n', 'f'}) {
      std::string changed = text;
      if (std::exchange(changed[i], other) == other) continue;
      CHECK_FALSE(parse_import_progress(changed, kInput).has_value());
    }
  }
  CHECK_FALSE(parse_import_progress(text, kInput + "x").has_value());
  CHECK_FALSE(parse_import_progress("fjord-import-1 a.jsonl 200", "a.jsonl").has_value());
}

}  // namespace
}  // namespace fjord
