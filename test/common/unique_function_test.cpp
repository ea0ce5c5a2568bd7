#include "fjord/common/unique_function.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

namespace fjord {
namespace {

TEST_CASE("unique function: owns what it captures and frees it with itself") {
  auto token = std::make_shared<int>(3);
  const std::weak_ptr<int> watch = token;
  UniqueFunction<int(int)> add = [owned = std::make_unique<int>(4), token = std::move(token)](int n) {
    return n + *owned + *token;
  };
  CHECK(add(1) == 8);
  UniqueFunction<int(int)> moved = std::move(add);
  CHECK_FALSE(add);  // NOLINT: being empty after a move is what the case is about
  CHECK(moved(2) == 9);
  moved = nullptr;
  CHECK(watch.expired());
}

TEST_CASE("unique function: passes arguments that only move, and references") {
  const UniqueFunction<std::size_t(std::unique_ptr<std::string>, std::string&)> f =
      [](std::unique_ptr<std::string> owned, std::string& out) {
        out = *owned;
        return out.size();
      };
  std::string out;
  CHECK(f(std::make_unique<std::string>("fjord"), out) == 5);
  CHECK(out == "fjord");
}

}  // namespace
}  // namespace fjord
