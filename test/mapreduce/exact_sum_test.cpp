#include "aggregate/exact_sum.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace fjord::mapreduce {
namespace {

ExactSum sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum;
}

/// Returns numbers of a generator that is easy to repeat in another language.
std::vector<double> numbers(std::uint64_t seed, int count) {
  std::vector<double> values;
  std::uint64_t x = seed;
  for (int i = 0; i < count; ++i) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t mantissa = (x >> 11) & ((1ULL << 52) - 1);
    const std::uint64_t exponent = 900 + ((x >> 3) % 240);
    values.push_back(std::bit_cast<double>((x >> 63) << 63 | exponent << 52 | mantissa));
  }
  return values;
}

TEST_CASE("a sum is the exact one, rounded once") {
  const double two53 = 9007199254740992.0;
  CHECK(sum_of({}).value() == 0.0);
  CHECK(sum_of({1e100, 1.0, -1e100, 1e-100, 1e50, -1.0, -1e50}).value() == 1e-100);
  CHECK(sum_of({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}).value() == 1.0);
  CHECK(sum_of({two53, -0.5, -std::ldexp(1, -54)}).value() == two53 - 1);
  CHECK(sum_of({two53, 1.0, std::ldexp(1, -100)}).value() == two53 + 2);
  CHECK(sum_of({two53 + 10, 1.0, std::ldexp(1, -100)}).value() == two53 + 12);
  CHECK(sum_of({two53 - 4, 0.5, std::ldexp(1, -54)}).value() == two53 - 3);
  // The sum lies in the middle of two numbers: the even one is the result.
  CHECK(sum_of({two53, 1.0}).value() == two53);
  CHECK(sum_of({-two53, -1.0, -std::ldexp(1, -1074)}).value() == -two53 - 2);
  CHECK(sum_of({5e-324, 5e-324, 5e-324}).value() == 1.5e-323);
  CHECK(sum_of({2.2250738585072014e-308, -5e-324}).value() == 2.225073858507201e-308);
}

TEST_CASE("sums agree with Python's math.fsum") {
  // Results of Python's math.fsum over numbers(seed, 1000), for the seeds 1, 2, ...
  const double expected[] = {-0x1.5eaf6a23efb20p+118, -0x1.3be9eb6091f6cp+119, 0x1.db09db859dc94p+115,
                             0x1.72194bf8e1338p+118,  -0x1.5a07eb1d80b65p+116, -0x1.936489a58b247p+117};
  std::uint64_t seed = 1;
  for (const double value : expected) CHECK(sum_of(numbers(seed++, 1000)).value() == value);
}

TEST_CASE("order and grouping change neither the sum nor its bytes") {
  auto values = numbers(42, 500);
  std::string forwards, backwards, merged;
  sum_of(values).append_to(forwards);
  ExactSum left = sum_of({values.begin(), values.begin() + 137});
  left.add(sum_of({values.begin() + 137, values.end()}));
  left.append_to(merged);
  std::reverse(values.begin(), values.end());
  sum_of(values).append_to(backwards);
  CHECK(forwards == backwards);
  CHECK(forwards == merged);
  CHECK(forwards.size() < 60);

  ByteReader in(forwards);
  ExactSum read;
  REQUIRE(read.read(in));
  CHECK(in.at_end());
  CHECK(read == left);
}

TEST_CASE("the range ends where that of doubles does, and not before") {
  const double huge = std::numeric_limits<double>::max();
  CHECK(sum_of({huge, huge, -huge}).value() == huge);
  CHECK(sum_of({huge, huge}).value() == std::numeric_limits<double>::infinity());
  CHECK(sum_of({-huge, -huge}).value() == -std::numeric_limits<double>::infinity());
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(sum_of({infinity, 1.0}).value() == infinity);
  CHECK(std::isnan(sum_of({infinity, -infinity}).value()));
  CHECK(std::isnan(sum_of({std::nan(""), 1.0}).value()));
}

TEST_CASE("a sum beyond all finite numbers is the same after it was written and read") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& values :
       {std::vector<double>{infinity, 1.0}, {-infinity, -1.0}, {infinity, -infinity}, {std::nan(""), 1.0}}) {
    const ExactSum sum = sum_of(values);
    std::string bytes;
    sum.append_to(bytes);
    ByteReader in(bytes);
    ExactSum read;
    REQUIRE(read.read(in));
    CHECK(in.at_end());
    CHECK(read == sum);
    // NaN is not equal to itself, so it is compared apart.
    if (std::isnan(sum.value())) {
      CHECK(std::isnan(read.value()));
    } else {
      CHECK(read.value() == sum.value());
    }
  }
}

TEST_CASE("malformed sums are refused") {
  ExactSum sum;
  for (const std::string& bytes : {std::string("\0\0", 2), std::string("\0\x20\x10", 3), std::string("\0\0\1abc", 6)}) {
    ByteReader in(bytes);
    CHECK_FALSE(sum.read(in));
  }
}

TEST_CASE("a quotient of integers is the nearest double") {
  CHECK(divide_rounded(0, 7) == 0.0);
  CHECK(divide_rounded(1, 3) == 1.0 / 3.0);
  CHECK(divide_rounded(-10, 4) == -2.5);
  CHECK(divide_rounded((__int128{1} << 53) + 1, 1) == 9007199254740992.0);
  CHECK(divide_rounded((__int128{1} << 53) + 3, 1) == 9007199254740996.0);
  // The quotient is just above the middle of two numbers.
  CHECK(divide_rounded(((__int128{1} << 54) + 2) * 3 + 1, 3) == 18014398509481988.0);
  CHECK(int128_text(-(__int128{1} << 100)) == "-1267650600228229401496703205376");
  CHECK(int128_text(0) == "0");
}

}  // namespace
}  // namespace fjord::mapreduce
