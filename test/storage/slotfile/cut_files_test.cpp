#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdlib.h>

#include "fjord/document/docblock.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "fjord/testing/test_documents.h"
#include "slotfile_world.h"

/// Slotfiles of the operating system that are truncated while they are open and mapped.
namespace fjord {
namespace {

using testing::OwnedWrite;
using testing::test_put;

constexpr int kDocuments = 64;
constexpr std::size_t kBytes = 20'000;
const BucketId kBucket(8, 0x12);

struct Store {
  Store() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fjord-cut-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    SlotfileOptions options;
    options.directory = (folder / "buckets").string();
    options.limits.scrub_bytes_per_second = 0;  // The test decides which read meets the damage.
    provider = std::move(SlotfileProvider::open(*env, options).value());
    REQUIRE(provider->create_bucket(kBucket).is_ok());
    for (int i = 0; i < kDocuments; ++i) {
      REQUIRE(testing::apply(*provider, kBucket, put_of(i)).status.is_ok());
    }
    REQUIRE(provider->checkpoint().is_ok());
  }
  ~Store() {
    provider.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  static OwnedWrite put_of(int i) {
    OwnedWrite write = test_put(i, 100U + static_cast<unsigned>(i), "text");
    write.body.assign(kBytes, static_cast<char>('a' + i % 26));
    return write;
  }
  std::filesystem::path file() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "buckets")) {
      if (entry.path().extension() == ".slot") found = entry.path();
    }
    REQUIRE_FALSE(found.empty());
    return found;
  }
  void cut_in_half() const { std::filesystem::resize_file(file(), std::filesystem::file_size(file()) / 2); }
  Result<spi::StoredDocument> get(int i) { return provider->get(kBucket, put_of(i).gid, spi::Parts::All); }
  std::unique_ptr<spi::DocumentIterator> iterate() {
    return std::move(provider->iterate(kBucket, {.types = nullptr, .selection = nullptr}).value());
  }
  bool is_reported() {
    const std::vector<BucketId> damaged = provider->take_damaged();
    return std::set<BucketId>(damaged.begin(), damaged.end()).contains(kBucket);
  }

  std::filesystem::path folder;
  std::unique_ptr<Env> env = make_posix_env();
  std::unique_ptr<SlotfileProvider> provider;
};

TEST_CASE("slotfile cut off: gets give what is left, and say that the rest is damaged") {
  Store store;
  for (int i = 0; i < kDocuments; ++i) REQUIRE(store.get(i));  // Maps the file and touches its pages.
  store.cut_in_half();
  int left = 0;
  for (int i = 0; i < kDocuments; ++i) {
    const Result<spi::StoredDocument> found = store.get(i);
    if (found) {
      ++left;
      CHECK(found->body == store.put_of(i).body);
    } else {
      CHECK(found.error().code() == StatusCode::Corruption);
    }
  }
  CHECK(left > kDocuments / 4);
  CHECK(left < kDocuments * 3 / 4);
  CHECK(store.provider->stats().corrupt_reads > 0);
  CHECK(store.is_reported());
}

TEST_CASE("slotfile cut off: with the first entry that is met all are known to be lost") {
  Store store;
  store.cut_in_half();
  std::size_t left = kDocuments;
  for (int i = 0; i < kDocuments && left == kDocuments; ++i) {
    static_cast<void>(store.get(i));
    left = store.provider->list_entries(kBucket).value().size();
  }
  CHECK(store.provider->stats().corrupt_reads == 1);
  CHECK(left > kDocuments / 4);
  CHECK(left < kDocuments * 3 / 4);
  std::size_t readable = 0;
  for (int i = 0; i < kDocuments; ++i) readable += store.get(i) ? 1U : 0U;
  CHECK(readable == left);
}

TEST_CASE("slotfile cut off: a visit that is under way fails, and has given nothing that is not right") {
  Store store;
  const auto iterator = store.iterate();
  DocBlockBuilder block;
  REQUIRE(iterator->next(block, 5 * kBytes).value());
  store.cut_in_half();
  Result<bool> more = true;
  while (more && *more) more = iterator->next(block, block.size() + 5 * kBytes);
  REQUIRE_FALSE(more);
  CHECK(more.error().code() == StatusCode::Corruption);
  CHECK(block.count() > kDocuments / 4);
  const std::string bytes = block.take();
  DocBlockReader reader(bytes);
  std::set<GlobalId> seen;
  while (const auto entry = reader.next()) {
    CHECK(entry->body.size() == kBytes);
    CHECK(entry->body.find_first_not_of(entry->body[0]) == std::string_view::npos);
    CHECK(entry->body[0] != '\0');
    CHECK(seen.insert(entry->gid).second);
  }
  CHECK(store.is_reported());
}

TEST_CASE("slotfile cut off: what is cut off between its verification and its use is not taken for read") {
  Store store;
  const auto iterator = store.iterate();
  int given = 0;
  bool has_zeros = false;
  Result<bool> more = iterator->visit([&](const EntryView& entry) {
    if (++given < kDocuments) return true;
    std::filesystem::resize_file(store.file(), 0);  // No read follows this truncation.
    has_zeros = entry.body.find('\0') != std::string_view::npos;
    return true;
  });
  CHECK(given == kDocuments);
  CHECK(has_zeros);  // The truncation has replaced bytes by zeros, which the iterator has to notice.
  if (more) more = iterator->visit([](const EntryView&) { return true; });
  REQUIRE_FALSE(more);
  CHECK(more.error().code() == StatusCode::Corruption);
}

TEST_CASE("slotfile: a rewrite reports damaged parts, and does not carry them on") {
  const bool is_body = GENERATE(true, false);
  Store store;
  // Number of the damaged document; other documents have another letter.
  constexpr int kDamaged = 5;
  const std::string before = [&] {
    std::ifstream in(store.file(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }();
  const OwnedWrite write = store.put_of(kDamaged);
  const std::size_t at = before.find(is_body ? write.body : write.header);
  REQUIRE(at != std::string::npos);
  {
    std::fstream out(store.file(), std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at + 3));
    out.put('#');
  }
  // Enough bytes become dead that the file is rewritten before any read.
  for (int i = 20; i < kDocuments; ++i) {
    OwnedWrite newer = store.put_of(i);
    newer.timestamp = Timestamp{1000};
    REQUIRE(testing::apply(*store.provider, kBucket, newer).status.is_ok());
  }
  REQUIRE(store.provider->checkpoint().is_ok());
  REQUIRE(store.provider->stats().corrupt_reads == 0);
  SlotfileLimits limits = store.provider->limits();
  limits.dead_percent_max = 1;
  REQUIRE(store.provider->set_limits(limits).is_ok());
  slotfile_testing::settle(*store.provider);
  // The file stays until the bucket is renewed, because an intact replica may be missing.
  CHECK(store.provider->stats().rewrites == 0);
  CHECK(store.provider->stats().corrupt_reads == 1);
  CHECK(store.is_reported());
  for (bool is_renewed = false; !is_renewed;) is_renewed = store.provider->renew(kBucket).value();
  CHECK(store.provider->stats().rewrites > 0);
  CHECK(store.provider->stats().corrupt_reads == 1);
  const Result<spi::StoredDocument> found = store.get(kDamaged);
  REQUIRE_FALSE(found);
  CHECK(found.error().code() == StatusCode::Corruption);
  // list_entries(), which merges use, shows that the document is missing.
  const auto entries = store.provider->list_entries(kBucket).value();
  CHECK(entries.size() == kDocuments - 1);
  for (int i = 0; i < kDocuments; ++i) {
    if (i != kDamaged) CHECK(store.get(i).value().body == store.put_of(i).body);
  }
}

TEST_CASE("slotfile cut off: what is written afterwards is read, and a new start knows the same") {
  Store store;
  REQUIRE(store.get(0));
  std::filesystem::resize_file(store.file(), 0);
  CHECK_FALSE(store.get(0));
  OwnedWrite again = store.put_of(1);
  again.timestamp = Timestamp{1000};
  REQUIRE(testing::apply(*store.provider, kBucket, again).status.is_ok());
  REQUIRE(store.provider->checkpoint().is_ok());
  const Result<spi::StoredDocument> found = store.get(1);
  REQUIRE(found);
  CHECK(found->body == again.body);
  CHECK_FALSE(store.get(2));
  SlotfileOptions options;
  options.directory = (store.folder / "buckets").string();
  store.provider.reset();
  store.provider = std::move(SlotfileProvider::open(*store.env, options).value());
  CHECK(store.get(1).value().body == again.body);
  const Result<spi::StoredDocument> lost = store.get(2);
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code() == StatusCode::Corruption);
}

}  // namespace
}  // namespace fjord
