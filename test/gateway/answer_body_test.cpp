#include "http/transport/answer_body.h"

#include <catch2/catch.hpp>

#include "http/message.h"

namespace fjord::gateway {
namespace {

const auto kHoldAll = [](std::size_t) { return true; };

TEST_CASE("answer body: pieces come out in parts of any size") {
  AnswerBody body;
  body.add("hello ");
  body.add("world");
  CHECK(body.waiting_bytes() == 11);
  std::string taken;
  while (!body.is_empty()) body.take(taken, 3);
  CHECK(taken == "hello world");
  CHECK_FALSE(body.is_over());
  body.end();
  CHECK(body.is_over());
}

TEST_CASE("answer body: each compressed piece can be read at once, and the end is there") {
  AnswerBody body;
  body.compress_with(GzipPieces::open());
  std::string text;
  std::string packed;
  for (int i = 0; i < 5; ++i) {
    const std::string piece(100'000 * static_cast<std::size_t>(i + 1), static_cast<char>('a' + i));
    text += piece;
    body.add(piece);
    const std::size_t before = packed.size();
    while (!body.is_empty()) body.take(packed, 1000);
    CHECK(packed.size() > before);
    CHECK(body.waiting_bytes() == 0);
  }
  CHECK_FALSE(gunzip(packed, 10 << 20, kHoldAll));
  body.end();
  CHECK_FALSE(body.is_over());
  while (!body.is_empty()) body.take(packed, 1000);
  CHECK(body.is_over());
  const auto unpacked = gunzip(packed, 10 << 20, kHoldAll);
  REQUIRE(unpacked);
  CHECK(*unpacked == text);
}

TEST_CASE("answer body: compressors are bounded") {
  std::vector<std::unique_ptr<GzipPieces>> open;
  while (auto one = GzipPieces::open()) {
    open.push_back(std::move(one));
    REQUIRE(open.size() < 1000);
  }
  CHECK(gzip_text("x").empty());
  open.clear();
  CHECK(*gunzip(gzip_text("x"), 10, kHoldAll) == "x");
}

TEST_CASE("answer body: Accept-Encoding") {
  for (const auto* yes :
       {"gzip", "GZip", "deflate, gzip;q=0.5", "br;q=1.0,*", "x-gzip", "gzip ; q=1", "zstd,gzip,deflate,br"}) {
    INFO(yes);
    CHECK(accepts_gzip(yes));
  }
  for (const auto* no : {"", "br", "identity", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *", "gzipped"}) {
    INFO(no);
    CHECK_FALSE(accepts_gzip(no));
  }
}

TEST_CASE("gunzip: small bodies are unpacked at once, whatever length their ends say") {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "field " + std::to_string(i * i) + "; ";
  const std::string packed = gzip_text(text);
  std::vector<std::size_t> asked;
  const auto hold = [&](std::size_t bytes) {
    asked.push_back(bytes);
    return true;
  };
  CHECK(*gunzip(packed, 10 << 20, hold) == text);
  CHECK(asked == std::vector<std::size_t>{text.size()});
  CHECK(gunzip(packed, text.size() - 1, kHoldAll).error().code() == StatusCode::TooLarge);
  CHECK(*gunzip(packed, text.size(), kHoldAll) == text);
  // Two members, something behind the member, half of it, and another length at the end.
  CHECK_FALSE(gunzip(packed + packed, 10 << 20, kHoldAll));
  CHECK_FALSE(gunzip(packed + "x", 10 << 20, kHoldAll));
  CHECK_FALSE(gunzip(std::string_view(packed).substr(0, packed.size() / 2), 10 << 20, kHoldAll));
  // A length that so few bytes cannot have is not reserved.
  for (std::string wrong : {packed, gzip_text("x")}) {
    wrong[wrong.size() - 2] = 1;
    asked.clear();
    CHECK(gunzip(wrong, 10 << 20, hold).error().code() == StatusCode::InvalidArgument);
    for (const std::size_t bytes : asked) CHECK(bytes <= 1032 * wrong.size());
  }
}

TEST_CASE("gunzip: bytes that nobody holds are refused") {
  const std::string packed = gzip_text(std::string(1'000'000, 'x'));
  std::size_t asked = 0;
  const auto refused = gunzip(packed, 10 << 20, [&](std::size_t bytes) {
    asked = bytes;
    return bytes < 100'000;
  });
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::Busy);
  CHECK(asked < 150'000);
}

}  // namespace
}  // namespace fjord::gateway
