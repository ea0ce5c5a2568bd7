#include "fjord/tuner/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

namespace fjord::tuner {
namespace {

/// Recursive descent parser for one formula. An error is kept and ends the parse; a value of 0 stands in.
class Parser {
 public:
  Parser(std::string_view text, const std::vector<Input>& inputs) : text_(text), inputs_(inputs) {}

  Result<double> run() {
    const double value = sum(0);
    skip_space();
    if (problem_.empty() && at_ != text_.size()) fail("unexpected text");
    if (!problem_.empty()) return Status(StatusCode::InvalidArgument, problem_);
    if (!std::isfinite(value)) return Status(StatusCode::InvalidArgument, "the value is not finite");
    return value;
  }

 private:
  static constexpr int kDepthMax = 100;

  double fail(std::string_view what) {
    if (problem_.empty()) problem_ = fmt::format("{} at {} of \"{}\"", what, at_, text_);
    at_ = text_.size();
    return 0;
  }
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  double sum(int depth) {
    if (depth > kDepthMax) return fail("nested too deeply");
    double value = product(depth);
    for (;;) {
      if (take('+')) {
        value += product(depth);
      } else if (take('-')) {
        value -= product(depth);
      } else {
        return value;
      }
    }
  }
  double product(int depth) {
    double value = atom(depth);
    for (;;) {
      if (take('*')) {
        value *= atom(depth);
      } else if (take('/')) {
        const double divisor = atom(depth);
        if (divisor == 0) return fail("division by 0");
        value /= divisor;
      } else {
        return value;
      }
    }
  }
  double atom(int depth) {
    if (take('(')) {
      const double value = sum(depth + 1);
      return take(')') ? value : fail("expected )");
    }
    skip_space();
    if (at_ == text_.size()) return fail("unexpected end");
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return literal();
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) return name(depth);
    return fail("unexpected character");
  }
  double literal() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return fail("no number");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  double name(int depth) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (take('(')) return call(word, depth);
    for (const Input& input : inputs_) {
      if (input.name == word) return input.value;
    }
    return fail(fmt::format("there is no input \"{}\"", word));
  }
  double call(std::string_view function, int depth) {
    std::vector<double> arguments;
    do {
      arguments.push_back(sum(depth + 1));
    } while (take(','));
    if (!take(')')) return fail("expected )");
    if (function == "min") return *std::min_element(arguments.begin(), arguments.end());
    if (function == "max") return *std::max_element(arguments.begin(), arguments.end());
    if (function == "clamp" && arguments.size() == 3) {
      return std::max(arguments[1], std::min(arguments[0], arguments[2]));
    }
    if (arguments.size() == 1 && function == "ceil") return std::ceil(arguments[0] * (1 - 1e-12));
    if (arguments.size() == 1 && function == "floor") return std::floor(arguments[0] * (1 + 1e-12));
    if (arguments.size() == 1 && function == "log2") {
      return arguments[0] > 0 ? std::log2(arguments[0]) : fail("log2 of what is not positive");
    }
    if (arguments.size() == 1 && function == "step") {
      return arguments[0] > 0 ? std::exp2(std::round(std::log2(arguments[0]))) : fail("step of what is not positive");
    }
    return fail(fmt::format("there is no function {} of {} arguments", function, arguments.size()));
  }

  std::string_view text_;
  const std::vector<Input>& inputs_;
  std::size_t at_ = 0;
  std::string problem_;
};

}  // namespace

Result<double> evaluate(std::string_view formula, const std::vector<Input>& inputs) {
  return Parser(formula, inputs).run();
}

}  // namespace fjord::tuner
