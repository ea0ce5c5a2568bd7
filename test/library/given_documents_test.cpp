#include "printed_documents.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "fjord/common/random.h"

namespace fjord::cli {
namespace {

using visitors::PositionRange;
using visitors::VisitToken;

GlobalId gid_of(int i) { return DocumentId::parse("id:t:item::" + std::to_string(i))->gid(); }

/// A token that counts the whole bucket of a document as done.
VisitToken token_of(const GlobalId& gid, unsigned bits) {
  VisitToken token{.question = 7, .done = {}};
  token.done.add(PositionRange::of(bucket_of(gid, bits)));
  return token;
}

TEST_CASE("printed: a document is printed once, until its bucket is complete", "[visit]") {
  PrintedDocuments printed;
  for (int i = 0; i < 200; ++i) CHECK(printed.add(gid_of(i)));
  for (int i = 0; i < 200; ++i) CHECK_FALSE(printed.add(gid_of(i)));
  const PositionRange range = PositionRange::of(bucket_of(gid_of(1), 2));
  std::size_t inside = 0;
  for (int i = 0; i < 200; ++i) inside += range.contains(visitors::position_of(gid_of(i))) ? 1 : 0;
  REQUIRE(inside > 0);
  REQUIRE(inside < 200);
  printed.complete(range);
  CHECK(printed.size() == 200 - inside);
  CHECK(printed.add(gid_of(1)));
}

TEST_CASE("printed: the file says which documents of buckets that are not done were printed", "[visit]") {
  const std::string name = "fjord-printed-" + std::to_string(Random::from_system().next());
  const std::string path = (std::filesystem::temp_directory_path() / name).string();
  VisitProgressFile file;
  for (int i = 0; i < 100; ++i) file.printed.add(gid_of(i));
  file.tokens = {token_of(gid_of(1), 3)};
  REQUIRE(file.write(path).is_ok());
  const auto read = VisitProgressFile::read(path);
  INFO(read.status());
  REQUIRE(read.has_value());
  CHECK(read->tokens == file.tokens);
  PrintedDocuments printed = read->printed;
  CHECK(printed.size() < 100);
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t at = visitors::position_of(gid_of(i));
    CHECK(printed.add(gid_of(i)) == file.tokens[0].done.contains(at));  // What is done is not visited again.
  }

  VisitProgressFile none{file.tokens, {}};
  REQUIRE(none.write(path).is_ok());
  CHECK(VisitProgressFile::read(path)->printed.size() == 0);
  const auto refused = [&](const std::string& content) {
    std::ofstream(path) << content;
    return VisitProgressFile::read(path).status();
  };
  CHECK(refused("").code() == StatusCode::InvalidArgument);
  CHECK(refused("nonsense\n").code() == StatusCode::InvalidArgument);
  const Status bad = refused(file.tokens[0].to_text() + "\nprinted: 0123\n");
  CHECK(bad.code() == StatusCode::InvalidArgument);
  CHECK(bad.message().find(":2") != std::string::npos);
  std::filesystem::remove(path);
  CHECK(VisitProgressFile::read(path).status().code() == StatusCode::NotFound);
}

TEST_CASE("printed: of a bucket that slices share, each has to do its own part", "[visit]") {
  // Three slices share the bucket of one bit between them. The second one has done its part of both halves.
  VisitToken second{.question = 7, .done = {}};
  for (const std::uint64_t half : {0, 1}) second.done.add(PositionRange::of(BucketId(1, half)));
  const std::vector<VisitToken> tokens = {{.question = 7, .done = {}}, second, {.question = 7, .done = {}}};
  PrintedDocuments printed;
  for (int i = 0; i < 100; ++i) printed.add(gid_of(i));
  auto again = PrintedDocuments::parse(printed.to_text(tokens));
  REQUIRE(again.has_value());
  for (int i = 0; i < 100; ++i) {
    INFO(i);
    const bool is_in_second = PositionRange::slice(1, 3).contains(visitors::position_of(gid_of(i)));
    CHECK(again->add(gid_of(i)) == is_in_second);
  }
}

}  // namespace
}  // namespace fjord::cli
