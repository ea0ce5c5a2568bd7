#include "fjord/tuner/expression.h"

#include <catch2/catch.hpp>

namespace fjord::tuner {

TEST_CASE("expression: arithmetic has the usual order") {
  const std::vector<Input> inputs = {{"a", 3, "", ""}, {"b_2", 4, "", ""}};
  const auto value = [&](const char* text) { return evaluate(text, inputs).value(); };
  CHECK(value("1 + 2 * a") == 7);
  CHECK(value("(1 + 2) * a - b_2") == 5);
  CHECK(value("12 / a / 2") == 2);
  CHECK(value("10 - 4 - 3") == 3);
  CHECK(value("1.5e3 * 2") == 3000);
}

TEST_CASE("expression: functions") {
  const auto value = [](const char* text) { return evaluate(text, {}).value(); };
  CHECK(value("min(3, 1, 2)") == 1);
  CHECK(value("max(3, 1, 2)") == 3);
  CHECK(value("clamp(9, 1, 5)") == 5);
  CHECK(value("clamp(0, 1, 5)") == 1);
  CHECK(value("ceil(2.1) + floor(2.9)") == 5);
  CHECK(value("ceil(3)") == 3);
  CHECK(value("step(90)") == 64);
  CHECK(value("step(91)") == 128);
  CHECK(value("log2(8)") == 3);
}

TEST_CASE("expression: what makes no sense is refused") {
  for (const char* text :
       {"",   "1 +", "(1",   "1)",        "x",     "sin(1)", "min()", "clamp(1, 2)", "1 / 0",     "step(0)", "1 2", "#",
        "-1", "+1",  "1, 2", "1 ? 2 : 3", "2 ^ 3", "2 > 1",  "1e",    "1..2",        "min(1,,2)", "log2(0)", "_pi"}) {
    CAPTURE(text);
    CHECK_FALSE(evaluate(text, {}).has_value());
  }
  CHECK_FALSE(evaluate(std::string(10'000, '('), {}).has_value());
}

}  // namespace fjord::tuner
