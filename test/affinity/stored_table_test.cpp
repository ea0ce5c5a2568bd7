#include "fjord/affinity/stored_table.h"

#include <catch2/catch.hpp>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/random.h"

namespace fjord::affinity {
namespace {

StoredTable sample() {
  VotingTable table(3, 4);
  table.set(0, std::vector<float>{0.0F, 1.5F, 2.0F});
  table.set(3, std::vector<float>{4.0F, 0.25F, 0.0F});
  table.set(1, std::vector<float>{7.0F, 8.0F, 9.0F});
  StoredTable stored = make_stored_table(table, {"shoes", "dress", "unseen", "a b\xc3\xa9"}, {2, 9, 5, 4});
  stored.corpus = "ads.keyword";
  stored.method = "BP+IR";
  stored.trained_queries = 150'000;
  return stored;
}

/// Returns bytes that were changed, with the checksum set again.
std::string resealed(std::string bytes) {
  bytes.resize(bytes.size() - 4);
  put_fixed(bytes, checksum32(bytes));
  return bytes;
}

TEST_CASE("a table has the words that are known, in the order of their text") {
  const StoredTable stored = sample();
  CHECK(stored.words == std::vector<std::string>{"a b\xc3\xa9", "dress", "shoes"});
  CHECK(stored.pages == ListPages{4, 9, 2});
  CHECK(stored.table.weights(2)[1] == 1.5F);
}

TEST_CASE("a table is read as it was written") {
  const StoredTable stored = sample();
  const Result<StoredTable> read = decode_table(encode_table(stored), "ads.keyword", ForeignTable::Refuse);
  REQUIRE(read);
  CHECK(read->corpus == stored.corpus);
  CHECK(read->method == stored.method);
  CHECK(read->trained_queries == stored.trained_queries);
  CHECK(read->words == stored.words);
  CHECK(read->pages == stored.pages);
  CHECK_FALSE(read->is_foreign);
  for (WordId word = 0; word < 3; ++word) {
    for (unsigned r = 0; r < 3; ++r) CHECK(read->table.weights(word)[r] == stored.table.weights(word)[r]);
  }
  CHECK(encode_table(*read) == encode_table(stored));
}

TEST_CASE("words are found by their text") {
  const StoredTable stored = sample();
  const WordIndex index(stored);
  CHECK(index.find("dress") == 1);
  CHECK_FALSE(stored.table.knows(index.find("unseen")));
}

TEST_CASE("a table of another corpus is refused, or marked") {
  const std::string bytes = encode_table(sample());
  CHECK(decode_table(bytes, "ads.title", ForeignTable::Refuse).error().code() == StatusCode::InvalidArgument);
  const Result<StoredTable> marked = decode_table(bytes, "ads.title", ForeignTable::Mark);
  REQUIRE(marked);
  CHECK(marked->is_foreign);
}

TEST_CASE("a table with any byte changed or cut off is refused") {
  const std::string bytes = encode_table(sample());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    CHECK_FALSE(decode_table(changed, "ads.keyword", ForeignTable::Refuse));
    CHECK(decode_table(std::string_view(bytes).substr(0, i), "ads.keyword", ForeignTable::Mark).error().code() ==
          StatusCode::Corruption);
  }
}

TEST_CASE("a later version of the format is told from damage") {
  std::string bytes = encode_table(sample());
  store_fixed<std::uint16_t>(bytes.data() + 4, 2);
  CHECK(decode_table(resealed(bytes), "ads.keyword", ForeignTable::Mark).error().code() == StatusCode::NotImplemented);
}

TEST_CASE("bytes with a good checksum that are no table are refused without harm") {
  Random random(12);
  const std::string bytes = encode_table(sample());
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = bytes;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      changed[6 + random.below(changed.size() - 6)] = static_cast<char>(random.next());
    }
    const Result<StoredTable> read = decode_table(resealed(changed), "ads.keyword", ForeignTable::Mark);
    if (read) CHECK(encode_table(*read).size() <= changed.size());
  }
  StoredTable negative = sample();
  negative.table.set(0, std::vector<float>{-1.0F, 0.0F, 0.0F});
  CHECK(decode_table(encode_table(negative), "ads.keyword", ForeignTable::Mark).error().code() ==
        StatusCode::Corruption);
  StoredTable unordered = sample();
  std::swap(unordered.words[0], unordered.words[1]);
  CHECK(decode_table(encode_table(unordered), "ads.keyword", ForeignTable::Mark).error().code() ==
        StatusCode::Corruption);
}

}  // namespace
}  // namespace fjord::affinity
