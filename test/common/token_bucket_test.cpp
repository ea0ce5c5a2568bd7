#include "fjord/common/token_bucket.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

constexpr MonotonicTime at(double seconds_from_start) { return {static_cast<std::int64_t>(seconds_from_start * 1e6)}; }
double in_seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

TEST_CASE("a token bucket lets its rate pass, counted after it was sent") {
  TokenBucket bucket;
  CHECK(bucket.wait(at(0)) == Duration(0));
  bucket.sent(1'000'000'000, at(0));
  CHECK(bucket.wait(at(0)) == Duration(0));  // Without a rate there is no wait.
  bucket.set_rate(1'000'000, at(0));
  CHECK(bucket.wait(at(0)) == Duration(0));
  bucket.sent(5'000'000, at(0));
  CHECK(in_seconds(bucket.wait(at(0))) == Approx(4.5).margin(1e-5));  // 5 s of bytes, less 0.5 s in advance.
  CHECK(in_seconds(bucket.wait(at(4))) == Approx(0.5).margin(1e-5));
  CHECK(bucket.wait(at(4.6)) == Duration(0));
  bucket.sent(500'000, at(1000));  // The bytes saved while nothing was sent are limited to the burst.
  CHECK(bucket.wait(at(1000)) > Duration(0));
  CHECK(bucket.wait(at(1000.01)) == Duration(0));
}

TEST_CASE("a rate that is raised or taken away is felt at once") {
  TokenBucket bucket;
  bucket.set_rate(1'000, at(0));
  bucket.sent(100'500, at(0));
  CHECK(in_seconds(bucket.wait(at(0))) == Approx(100).margin(0.01));
  bucket.set_rate(100'000, at(0));
  CHECK(in_seconds(bucket.wait(at(0))) == Approx(1).margin(0.01));
  bucket.set_rate(0, at(0));
  CHECK(bucket.wait(at(0)) == Duration(0));
}

}  // namespace
}  // namespace fjord
