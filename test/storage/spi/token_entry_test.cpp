#include "fjord/storage/spi/token_entry.h"

#include <catch2/catch.hpp>

#include "fjord/common/random.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

TEST_CASE("token entry: it falls into the bucket of its document, whatever number of bits that has") {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const std::string id = i % 2 == 0 ? "id:t:song::" + std::to_string(random.next())
                                      : "id:t:song:n=" + std::to_string(random.below(3)) + ":" + std::to_string(i);
    const GlobalId gid = DocumentId::parse(id)->gid();
    const GlobalId entry = token_gid(gid, "token " + std::to_string(random.next()));
    REQUIRE(entry != gid);
    for (unsigned bits = 0; bits <= BucketId::kUsedBitsMax; ++bits) {
      REQUIRE(bucket_of(entry, bits) == bucket_of(gid, bits));
    }
  }
}

TEST_CASE("token entry: other tokens and other documents have other entries") {
  const GlobalId a = DocumentId::parse("id:t:song:n=1:a")->gid();
  const GlobalId b = DocumentId::parse("id:t:song:n=1:b")->gid();
  CHECK(token_gid(a, "x") == token_gid(a, "x"));
  CHECK(token_gid(a, "x") != token_gid(a, "y"));
  CHECK(token_gid(a, "x") != token_gid(b, "x"));
}

TEST_CASE("token entry: its id reads back, and no document has such an id") {
  const GlobalId gid = DocumentId::parse("id:t:song::a")->gid();
  for (const bool existed : {false, true}) {
    const std::string id = TokenEntry::of(gid, "secret", existed).id();
    CHECK(is_token_id(id));
    CHECK_FALSE(DocumentId::parse(id).has_value());
    const std::optional<TokenEntry> back = TokenEntry::parse(id);
    REQUIRE(back);
    CHECK(back->document == gid);
    CHECK((back->state == TokenEntry::State::Existed) == existed);
    CHECK(back->is_of("secret"));
    CHECK_FALSE(back->is_of("secre"));
    CHECK(back->id() == id);
  }
  TokenEntry cancelled = TokenEntry::of(gid, "secret", true);
  cancelled.state = TokenEntry::State::Cancelled;
  CHECK(TokenEntry::parse(cancelled.id())->state == TokenEntry::State::Cancelled);
}

TEST_CASE("token entry: what is malformed is none") {
  const std::string good = TokenEntry::of(DocumentId::parse("id:t:song::a")->gid(), "t", false).id();
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = '?';
    CHECK_FALSE(TokenEntry::parse(bad));
    CHECK_FALSE(TokenEntry::parse(good.substr(0, i)));
  }
  CHECK_FALSE(TokenEntry::parse(good + "0"));
  CHECK_FALSE(is_token_id("id:t:song::token:"));
}

}  // namespace fjord::spi
