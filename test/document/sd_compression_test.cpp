#include "sample_schema.h"

namespace fjord {
namespace {

using Codec = PartCompression::Codec;

std::string error_of(const std::string& schema) {
  const auto repo = DocumentTypeRepo::build(std::span(&schema, 1));
  INFO(schema);
  REQUIRE_FALSE(repo);
  CHECK(repo.error().code() == StatusCode::InvalidArgument);
  return repo.error().message();
}

}  // namespace

TEST_CASE("schema: a type that says nothing about compression has none") {
  const auto repo = test::sample_repo();
  CHECK(repo->find("song")->header_compression() == PartCompression());
  CHECK(repo->find("song")->body_compression() == PartCompression());
  CHECK(PartCompression().codec == Codec::None);
}

TEST_CASE("schema: each part may say how it is compressed") {
  const auto repo = test::repo_of(R"(
document song {
  header compression lz4
  field year type int { header }
  body compression zstd level 3 min_bytes 256 threshold 90
  field text type string { body }
})");
  CHECK(repo->find("song")->header_compression() == PartCompression{Codec::Lz4, 0, 0, 100});
  CHECK(repo->find("song")->body_compression() == PartCompression{Codec::Zstd, 3, 256, 90});
  CHECK(repo->find("song")->fields().size() == 2);
}

TEST_CASE("schema: a block says it for both parts") {
  for (const char* block : {"compression { type: lz4 level: 9 threshold: 95 }",
                            "compression {\n type: lz4\n threshold: 95\n level: 9\n }"}) {
    const auto repo = test::repo_of(std::string("schema s { document song { ") + block + " field x type int {} } }");
    CHECK(repo->find("song")->header_compression() == PartCompression{Codec::Lz4, 9, 0, 95});
    CHECK(repo->find("song")->body_compression() == PartCompression{Codec::Lz4, 9, 0, 95});
    CHECK(repo->find("song")->field("x") != nullptr);
  }
}

TEST_CASE("schema: compression is inherited part by part unless it is declared") {
  const auto repo = test::repo_of(R"(
document a { header compression lz4 level 2 body compression zstd }
document b inherits a { body compression none }
document c inherits b { }
document d inherits a { header compression none })");
  CHECK(repo->find("b")->header_compression() == PartCompression{Codec::Lz4, 2, 0, 100});
  CHECK(repo->find("b")->body_compression().codec == Codec::None);
  CHECK(repo->find("c")->header_compression().codec == Codec::Lz4);
  CHECK(repo->find("c")->body_compression().codec == Codec::None);
  CHECK(repo->find("d")->header_compression().codec == Codec::None);
  CHECK(repo->find("d")->body_compression().codec == Codec::Zstd);
}

TEST_CASE("schema: a compression that is wrong is refused with its place") {
  const auto contains = [](const std::string& text, std::string_view part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(error_of("document a { header compression gzip }"),
                 "line 1, column 33: expected none, lz4 or zstd, found \"gzip\""));
  CHECK(contains(error_of("document a { header lz4 }"), "expected \"compression\" after \"header\""));
  CHECK(contains(error_of("document a { body compression lz4 level 13 }"), "expected a level up to 12 for lz4"));
  CHECK(contains(error_of("document a { body compression zstd level 23 }"), "expected a number up to 22"));
  CHECK(contains(error_of("document a { body compression zstd level -1 }"), "expected a number up to 22"));
  CHECK(contains(error_of("document a { body compression zstd level }"), "expected a number up to 22"));
  CHECK(contains(error_of("document a { body compression zstd threshold 101 }"), "expected a number up to 100"));
  CHECK(contains(error_of("document a { body compression zstd min_bytes 67108865 }"), "expected a number up to"));
  CHECK(contains(error_of("document a { header compression lz4 header compression zstd }"), "declared twice"));
  CHECK(contains(error_of("document a { header compression lz4 compression { type: lz4 } }"), "declared twice"));
  CHECK(contains(error_of("document a { compression { level: 3 } }"), "expected \"type: lz4\""));
  CHECK(contains(error_of("document a { compression { type: lz4 type: lz4 } }"), "expected one type"));
  CHECK(contains(error_of("document a { compression { type lz4 } }"), "expected ':' after \"type\""));
  CHECK(contains(error_of("document a { compression lz4 }"), "expected '{' after \"compression\""));
  CHECK(contains(error_of("document a { compression { type: lz4 speed: 1 } }"), "found \"speed\""));
}

}  // namespace fjord
