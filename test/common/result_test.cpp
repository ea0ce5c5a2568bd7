#include "fjord/common/result.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

namespace fjord {
namespace {

Result<std::unique_ptr<int>> half(int n) {
  if (n % 2 != 0) return Status(StatusCode::InvalidArgument, "odd");
  return std::make_unique<int>(n / 2);
}

Result<int> quarter(int n) {
  FJORD_TRY_ASSIGN(const std::unique_ptr<int> once, half(n));
  FJORD_TRY_ASSIGN(const auto twice, half(*once));
  return *twice;
}

Status check_quarter(int n) {
  FJORD_TRY(quarter(n).status());
  return Status::ok();
}

TEST_CASE("result: holds a value or an error") {
  const Result<std::string> value(std::string("x"));
  CHECK(value.has_value());
  CHECK(*value == "x");
  CHECK(value->size() == 1);
  CHECK(value.status().is_ok());
  const Result<std::string> error(Status(StatusCode::Busy, "later"));
  CHECK_FALSE(error);
  CHECK(error.error().code() == StatusCode::Busy);
  CHECK(error.status() == error.error());
}

TEST_CASE("result: a value that only moves can be taken out") {
  Result<std::unique_ptr<int>> result = half(8);
  const std::unique_ptr<int> taken = std::move(result).value();
  CHECK(*taken == 4);
}

TEST_CASE("result: FJORD_TRY returns the first error") {
  CHECK(*quarter(12) == 3);
  CHECK(quarter(6).error().message() == "odd");
  CHECK(quarter(5).error().message() == "odd");
  CHECK(check_quarter(8));
  CHECK(check_quarter(6).code() == StatusCode::InvalidArgument);
}

}  // namespace
}  // namespace fjord
