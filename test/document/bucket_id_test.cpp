#include "fjord/document/bucket_id.h"

#include <unordered_set>

#include "fjord/document/document_id.h"
#include "support/project_files.h"
#include "support/tsv.h"

namespace fjord {
namespace {

BucketId bucket(const std::string& text) { return BucketId(std::stoull(text, nullptr, 16)); }

/// Returns the global id written as 0x and 24 hexadecimal digits.
GlobalId gid_of(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 2; i < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return GlobalId::from_bytes(bytes);
}

}  // namespace

TEST_CASE("bucket id: unused bits are zero, so that equal buckets are equal values") {
  CHECK(BucketId(16, 0xabcdef).raw() == 0x400000000000cdef);
  CHECK(BucketId(0x400000000012cdef) == BucketId(16, 0xcdef));
  CHECK(BucketId(0, 0xffff).raw() == 0);
  CHECK(BucketId(58, ~std::uint64_t{0}).raw() == 0xebffffffffffffff);
  CHECK(BucketId(58, ~std::uint64_t{0}).bits() == 0x03ffffffffffffff);
  CHECK(BucketId(58, 1).is_valid());
  CHECK_FALSE(BucketId(std::uint64_t{59} << 58).is_valid());
}

TEST_CASE("bucket id: a bucket contains itself and what it is split into") {
  const BucketId parent(16, 0x1234);
  CHECK(parent.contains(parent));
  CHECK(parent.contains(BucketId(17, 0x11234)));
  CHECK(parent.contains(BucketId(17, 0x01234)));
  CHECK_FALSE(parent.contains(BucketId(17, 0x11235)));
  CHECK_FALSE(parent.contains(BucketId(15, 0x1234)));
  CHECK(BucketId().contains(parent));
  CHECK(BucketId(20, 0xf1234).with_used_bits(16) == parent);
}

TEST_CASE("bucket id: descendants directly follow their ancestor in the order of sort keys") {
  const BucketId parent(8, 0x12);
  const BucketId next(8, 0x92);  // The next bucket of 8 bits in the order of sort keys.
  for (std::uint64_t high = 0; high < 4; ++high) {
    const BucketId child(10, 0x12 | high << 8);
    CHECK(parent.sort_key() < child.sort_key());
    CHECK(child.sort_key() < next.sort_key());
  }
}

TEST_CASE("bucket id: the text form is the raw value in sixteen digits") {
  CHECK(BucketId(16, 0x12).to_string() == "bucket 0x4000000000000012");
  std::unordered_set<BucketId> set{BucketId(16, 1), BucketId(17, 1), BucketId(16, 0x10001)};
  CHECK(set.size() == 2);
}

TEST_CASE("bucket id: the algebra of the vectors") {
  const auto path = test::vector_file("ids/bucket_algebra.tsv");
  const auto rows = test::read_tsv(path);
  REQUIRE(rows.size() == 18);
  for (const auto& row : rows) {
    const std::string op = row.at("op");
    INFO(op << " " << row.at("a") << " " << row.at("b"));
    if (op == "contains") {
      CHECK(bucket(row.at("a")).contains(bucket(row.at("b"))) == (row.at("result") == "yes"));
    } else if (op == "sort_key") {
      CHECK(bucket(row.at("a")).sort_key() == std::stoull(row.at("result"), nullptr, 16));
    } else if (op == "used_bits") {
      CHECK(bucket(row.at("a")).used_bits() == std::stoul(row.at("result")));
    } else if (op == "bit") {
      CHECK(bucket(row.at("a")).bit(static_cast<unsigned>(std::stoul(row.at("b")))) == (row.at("result") == "1"));
    } else if (op == "contains_document") {
      const auto id = DocumentId::parse(row.at("b"));
      REQUIRE(id);
      const BucketId outer = bucket(row.at("a"));
      CHECK(outer.contains(id->bucket(58)) == (row.at("result") == "yes"));
      CHECK((id->bucket(outer.used_bits()) == outer) == (row.at("result") == "yes"));
    } else if (op == "gid_bucket_order") {
      const std::uint64_t a = bucket_of(gid_of(row.at("a")), 58).sort_key();
      const std::uint64_t b = bucket_of(gid_of(row.at("b")), 58).sort_key();
      CHECK((a < b) == (row.at("result") == "less"));
      CHECK((a > b) == (row.at("result") == "greater"));
    } else {
      FAIL("a kind of row that this test does not know");
    }
  }
}

}  // namespace fjord
