#include "fjord/tuner/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <muParserBase.h>

namespace fjord::tuner {
namespace {

constexpr const char* kNameCharacters = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr const char* kOperators = "+-*/";
/// A formula with any further character is refused, because muParser would accept too much, such as "a ? b : c".
constexpr const char* kOtherCharacters = " .,()";

double divide(double dividend, double divisor) {
  if (divisor == 0) throw mu::ParserError("division by 0");
  return dividend / divisor;
}
double min_of(const double* arguments, int count) { return *std::min_element(arguments, arguments + count); }
double max_of(const double* arguments, int count) { return *std::max_element(arguments, arguments + count); }
double clamp(double x, double low, double high) { return std::max(low, std::min(x, high)); }
// Rounds up. The factor keeps a rounding error in the last bits from making a whole number one larger.
double ceil_of(double x) { return std::ceil(x * (1 - 1e-12)); }
double floor_of(double x) { return std::floor(x * (1 + 1e-12)); }
double log2_of(double x) {
  if (!(x > 0)) throw mu::ParserError("log2 of a number that is not positive");
  return std::log2(x);
}
double step(double x) {
  if (!(x > 0)) throw mu::ParserError("step of a number that is not positive");
  return std::exp2(std::round(std::log2(x)));
}

int read_number(const char* text, int* position, double* value) {
  const std::string_view rest(text);
  if (rest.empty() || rest[0] < '0' || rest[0] > '9') return 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), *value);
  if (error != std::errc()) return 0;
  *position += static_cast<int>(end - rest.data());
  return 1;
}

/// muParser with the functions and operators of our formulas only.
class Formula : public mu::ParserBase {
 public:
  Formula() {
    InitCharSets();
    EnableBuiltInOprt(false);
    InitFun();
    InitOprt();
    AddValIdent(read_number);
  }

 private:
  void InitCharSets() override {
    DefineNameChars(kNameCharacters);
    DefineOprtChars(kOperators);
    DefineInfixOprtChars(kOperators);
  }
  void InitFun() override {
    DefineFun("min", min_of);
    DefineFun("max", max_of);
    DefineFun("clamp", clamp);
    DefineFun("ceil", ceil_of);
    DefineFun("floor", floor_of);
    DefineFun("log2", log2_of);
    DefineFun("step", step);
  }
  void InitConst() override {}
  void InitOprt() override {
    DefineOprt(
        "+", [](double a, double b) { return a + b; }, mu::prADD_SUB, mu::oaLEFT);
    DefineOprt(
        "-", [](double a, double b) { return a - b; }, mu::prADD_SUB, mu::oaLEFT);
    DefineOprt(
        "*", [](double a, double b) { return a * b; }, mu::prMUL_DIV, mu::oaLEFT);
    DefineOprt("/", divide, mu::prMUL_DIV, mu::oaLEFT);
  }
};

Status refused(std::string_view what, std::size_t at, std::string_view formula) {
  return {StatusCode::InvalidArgument, fmt::format("{} at {} of \"{}\"", what, std::min(at, formula.size()), formula)};
}

}  // namespace

Result<double> evaluate(std::string_view formula, const std::vector<Input>& inputs) {
  static const std::string known = std::string(kNameCharacters) + kOperators + kOtherCharacters;
  const std::size_t unknown = formula.find_first_not_of(known);
  if (unknown != std::string_view::npos) return refused("unexpected character", unknown, formula);
  try {
    Formula parser;
    for (const Input& input : inputs) parser.DefineConst(input.name, input.value);
    parser.SetExpr(std::string(formula));
    int count = 0;
    const double value = parser.Eval(count)[0];
    if (count != 1) return refused("more than one value", formula.find(','), formula);
    if (!std::isfinite(value)) return Status(StatusCode::InvalidArgument, "the value is not finite");
    return value;
  } catch (const mu::ParserError& error) {
    return refused(error.GetMsg(), error.GetPos() < 0 ? formula.size() : static_cast<std::size_t>(error.GetPos()),
                   formula);
  }
}

}  // namespace fjord::tuner
