#include "index/disk_index.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "fjord/common/log.h"
#include "fjord/common/random.h"
#include "fjord/document/document_id.h"
#include "fjord/sim/sim_env.h"
#include "index/segment_format.h"
#include "memory_index.h"

namespace fjord::search {
namespace {

constexpr unsigned kBits = 3;
constexpr std::uint64_t kGroups = 40;
const std::string kFolder = "/index";

DiskIndexOptions small_options() {
  return {
      .directory = kFolder, .recent_bytes_max = 6000, .segments_of_tier = 3, .cache_bytes = 20000, .step_bytes = 700};
}

IndexedDocument keyword(std::uint64_t group, std::uint64_t number, const std::string& words) {
  const auto id = DocumentId::parse("id:ads:keyword:n=" + std::to_string(group) + ":" + std::to_string(number));
  return {.gid = id->gid(),
          .timestamp = Timestamp{1},
          .role = IndexRole::Keyword,
          .group = group,
          .kind = MatchKind::Phrase,
          .words = words,
          .payload = "bid of " + std::to_string(number)};
}

IndexedDocument random_document(Random& random) {
  const std::uint64_t group = random.below(kGroups);
  IndexedDocument one = keyword(group, random.below(12), "w" + std::to_string(random.below(20)) + " x y");
  one.kind = static_cast<MatchKind>(random.below(3));
  one.payload.append(random.below(60), static_cast<char>('a' + random.below(26)));
  if (random.below(4) == 0) {
    one.role = random.below(2) == 0 ? IndexRole::Group : IndexRole::Ad;
    one.words.clear();
  }
  return one;
}

/// Returns all that searches can find in an index, as text.
std::multiset<std::string> content(const IndexStore& index) {
  std::multiset<std::string> out;
  for (int word = 0; word < 20; ++word) {
    REQUIRE(index.for_each_keyword("w" + std::to_string(word), [&](const KeywordEntry& one) {
      out.insert(one.gid.to_string() + " " + std::to_string(one.group) + " " +
                 std::to_string(static_cast<int>(one.kind)) + " " + std::string(one.words));
    }));
  }
  std::vector<GlobalId> keywords;
  for (int word = 0; word < 20; ++word) {
    REQUIRE(index.for_each_keyword("w" + std::to_string(word),
                                   [&](const KeywordEntry& one) { keywords.push_back(one.gid); }));
  }
  for (const GlobalId& gid : keywords) {
    const auto payload = index.payload_of(gid);
    REQUIRE(payload.has_value());
    out.insert(gid.to_string() + " has " + std::string(*payload));
  }
  for (std::uint64_t group = 0; group < kGroups; ++group) {
    int place = 0;
    REQUIRE(index.for_each_of_group(group, [&](const GlobalId& gid, IndexRole role, std::string_view payload) {
      out.insert(std::to_string(group) + " " + std::to_string(place++) + " " + gid.to_string() + " " +
                 std::to_string(static_cast<int>(role)) + " " + std::string(payload));
    }));
  }
  return out;
}

/// An index on a disk, and the documents of a node's engine, which the index should hold.
class Node {
 public:
  explicit Node(std::uint64_t seed, bool power_loss = false)
      : env_({.seed = seed, .power_loss = power_loss}), random_(seed) {
    log::set_level(log::Level::Off);
    open();
    index_->clear("types");
  }

  void put(const IndexedDocument& one) {
    documents_[one.gid] = one;
    index_->put(one);
  }
  void remove(const GlobalId& gid) {
    documents_.erase(gid);
    index_->remove(gid);
  }
  void drop(BucketId bucket) {
    std::erase_if(documents_, [&](const auto& one) { return bucket.contains(bucket_of(one.first, 58)); });
    index_->remove_bucket(bucket);
  }
  std::uint64_t checksum(BucketId bucket) const {
    std::uint64_t sum = 0;
    for (const auto& [gid, one] : documents_) {
      if (bucket_of(gid, kBits) == bucket) sum += hash64(gid.view(), hash64(one.words + "/" + one.payload));
    }
    return sum;
  }
  /// Merges as a stripe does: first the checksums, then the delta.
  void merge() {
    for (std::uint64_t i = 0; i < 1U << kBits; ++i)
      index_->set_checksum(BucketId(kBits, i), checksum(BucketId(kBits, i)));
    index_->merge_delta();
  }
  void random_change() {
    const std::uint64_t what = random_.below(100);
    if (what < 70) {
      put(random_document(random_));
    } else if (what < 80) {
      remove(random_document(random_).gid);
    } else if (what < 81) {
      drop(BucketId(kBits, random_.below(1U << kBits)));
    } else if (what < 90) {
      merge();
    } else {
      static_cast<void>(index_->maintain().has_value());
      if (index_->take_lost()) rebuild();
    }
  }
  void open() {
    index_.reset();
    auto opened = DiskIndex::open(env_, small_options());
    REQUIRE(opened.has_value());
    index_ = std::move(*opened);
  }
  std::vector<std::string> files() {
    auto names = env_.list_directory(kFolder);
    REQUIRE(names.has_value());
    return std::move(*names);
  }
  /// Indexes the buckets again that differ, as a stripe does after a restart. Returns their number.
  unsigned rebuild() {
    if (index_->label() != "types") index_->clear("types");
    std::map<BucketId, std::uint64_t> known;
    for (const auto& [bucket, sum] : index_->checksums()) known[bucket] = sum;
    unsigned rebuilt = 0;
    for (std::uint64_t i = 0; i < 1U << kBits; ++i) {
      const BucketId bucket(kBits, i);
      if (known.contains(bucket) && known[bucket] == checksum(bucket)) continue;
      ++rebuilt;
      index_->remove_bucket(bucket);
      for (const auto& [gid, one] : documents_) {
        if (bucket_of(gid, kBits) == bucket) index_->put(one);
      }
    }
    merge();
    return rebuilt;
  }
  void settle() {
    for (int i = 0; i < 3000; ++i) {
      const auto more = index_->maintain();
      if (more && !*more) return;
    }
    FAIL("background work does not end");
  }
  void check_equal() {
    merge();
    MemoryIndex expected;
    for (const auto& [gid, one] : documents_) expected.put(one);
    expected.merge_delta();
    const auto wanted = content(expected);
    const auto got = content(*index_);
    REQUIRE(got == wanted);
  }

  sim::SimEnv env_;
  Random random_;
  std::unique_ptr<DiskIndex> index_;
  std::map<GlobalId, IndexedDocument> documents_;
};

TEST_CASE("an index on disk equals one in memory after any changes, merges of segments and reopenings") {
  std::uint64_t merged = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    INFO("seed " << seed);
    Node node(seed);
    for (int round = 0; round < 12; ++round) {
      for (int i = 0; i < 250; ++i) node.random_change();
      node.check_equal();
      merged += node.index_->counts().segments_merged;
      if (node.random_.below(2) == 0) continue;
      node.open();
      node.rebuild();
      node.check_equal();
    }
    CHECK(node.index_->counts().times_lost == 0);
  }
  CHECK(merged > 20);
}

TEST_CASE("after a loss of power the index has what differs from the engine again, and nothing else") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    INFO("seed " << seed);
    Node node(seed, true);
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 250; ++i) node.random_change();
      // The engine can lose the latest writes, too.
      if (node.random_.below(2) == 0 && !node.documents_.empty()) node.documents_.erase(node.documents_.begin());
      node.env_.lose_power();
      node.open();
      node.rebuild();
      node.check_equal();
    }
    CHECK(node.index_->counts().times_lost == 0);
  }
}

TEST_CASE("a reopened index needs nothing from the engine if nothing changed since its files were written") {
  Node node(7);
  for (int i = 0; i < 400; ++i) node.put(random_document(node.random_));
  node.merge();
  node.settle();
  for (int i = 0; i < 400; ++i) node.put(random_document(node.random_));
  node.merge();
  node.settle();
  for (int i = 0; node.index_->segments() == 0 || i < 3; ++i) {
    for (int k = 0; k < 120; ++k) node.put(random_document(node.random_));
    node.merge();
    REQUIRE(node.index_->maintain().has_value());
  }
  node.open();
  CHECK(node.index_->label() == "types");
  CHECK(node.rebuild() == 0);
  node.check_equal();
}

TEST_CASE("only the bucket that changed after the last segment is indexed again") {
  Node node(8);
  for (int i = 0; i < 400; ++i) node.put(random_document(node.random_));
  node.merge();
  node.settle();
  IndexedDocument one = keyword(3, 99, "w1");
  node.put(one);
  node.merge();
  node.open();
  CHECK(node.rebuild() == 1);
  node.check_equal();
}

TEST_CASE("documents of buckets that the manifest does not know are not found again") {
  Node node(9);
  const BucketId bucket(kBits, 3);
  for (int i = 0; i < 400; ++i) node.put(random_document(node.random_));
  node.index_->merge_delta();  // Merges without checksums, as while the buckets are being indexed.
  node.settle();
  REQUIRE(node.index_->segments() > 0);
  node.open();
  node.documents_.clear();
  CHECK(content(*node.index_).empty());
}

TEST_CASE("a checksum of a half or of a parent replaces those of the buckets that are no more") {
  Node node(10);
  node.index_->set_checksum(BucketId(2, 1), 7);
  node.index_->set_checksum(BucketId(3, 1), 8);
  node.index_->set_checksum(BucketId(3, 5), 9);
  CHECK(node.index_->checksums() ==
        std::vector<std::pair<BucketId, std::uint64_t>>{{BucketId(3, 1), 8}, {BucketId(3, 5), 9}});
  node.index_->set_checksum(BucketId(2, 1), 10);
  CHECK(node.index_->checksums() == std::vector<std::pair<BucketId, std::uint64_t>>{{BucketId(2, 1), 10}});
}

TEST_CASE("searches do not see the delta") {
  Node node(11);
  node.put(keyword(1, 1, "w1 a"));
  CHECK(content(*node.index_).empty());
  node.merge();
  CHECK(content(*node.index_).size() == 2);
}

TEST_CASE("a bit that flipped in any page is noticed, and the index is made anew and counted") {
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    Node node(seed);
    for (int i = 0; i < 500; ++i) node.put(random_document(node.random_));
    node.merge();
    node.settle();
    for (const std::string& name : node.files()) {
      const std::string path = kFolder + "/" + name;
      const std::uint64_t bytes = read_file(node.env_, path)->size();
      REQUIRE(node.env_.flip_bit(path, node.random_.below(bytes), 3));
    }
    node.open();
    node.rebuild();
    // The damaged page may be one that is read only now.
    const auto status = node.index_->for_each_keyword("w1", [](const KeywordEntry&) {});
    if (!status) CHECK(status.code() == StatusCode::Corruption);
    static_cast<void>(node.index_->maintain().has_value());
    if (node.index_->take_lost()) node.rebuild();
    lost += node.index_->counts().times_lost;
    node.check_equal();
  }
  CHECK(lost == 30);
}

TEST_CASE("a damaged posting list makes searches fail until everything is indexed again") {
  Node node(12);
  for (int i = 0; i < 500; ++i) node.put(random_document(node.random_));
  node.merge();
  node.settle();
  node.open();
  REQUIRE(node.rebuild() == 0);
  REQUIRE(node.index_->segments() == 1);
  // Damages every page, and so also that of the list. The directory is in memory already.
  std::string name;
  for (const std::string& one : node.files()) name = one.ends_with(".segment") ? one : name;
  const std::string path = kFolder + "/" + name;
  const std::uint64_t bytes = read_file(node.env_, path)->size();
  for (std::uint64_t at = 100; at < bytes; at += 4096) REQUIRE(node.env_.flip_bit(path, at, 0));
  const auto ignore = [](const KeywordEntry&) {};
  bool failed = false;
  for (int word = 0; word < 20; ++word) failed |= !node.index_->for_each_keyword("w" + std::to_string(word), ignore);
  REQUIRE(failed);
  CHECK(node.index_->for_each_keyword("no such word", ignore).code() == StatusCode::Corruption);
  REQUIRE(node.index_->maintain().has_value());
  CHECK(node.index_->take_lost());
  CHECK_FALSE(node.index_->take_lost());
  CHECK(node.index_->counts().times_lost == 1);
  CHECK(node.rebuild() == 1U << kBits);
  node.check_equal();
}

TEST_CASE("errors of the disk at any operation lose no document") {
  std::uint64_t hit = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Node node(seed);
    node.env_.inject({.path_prefix = kFolder,
                      .operations = sim::FileOperations::all(),
                      .code = seed % 2 == 0 ? StatusCode::IoError : StatusCode::NoSpace,
                      .skip = node.random_.below(60),
                      .count = 1 + node.random_.below(4)});
    for (int i = 0; i < 900; ++i) node.random_change();
    hit += node.env_.faults_hit();
    node.env_.clear_faults();
    static_cast<void>(node.index_->maintain().has_value());
    if (node.index_->take_lost()) node.rebuild();
    node.check_equal();
    node.open();
    node.rebuild();
    node.check_equal();
  }
  CHECK(hit > 60);
}

/// A file that notes which ranges need not stay in the system's cache, and each sync as kSync.
class NotedFile final : public RandomAccessFile {
 public:
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  static constexpr std::pair<std::uint64_t, std::uint64_t> kSync = {0, 0};
  NotedFile(std::unique_ptr<RandomAccessFile> file, Ranges& ranges) : file_(std::move(file)), ranges_(ranges) {}
  Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
    return file_->read(offset, into);
  }
  Status write(std::uint64_t offset, std::string_view data) override { return file_->write(offset, data); }
  Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
    return file_->write_gather(offset, pieces);
  }
  void start_writeback() override {}
  Status sync() override {
    ranges_.push_back(kSync);
    return file_->sync();
  }
  Result<std::uint64_t> size() const override { return file_->size(); }
  std::string_view mapped(std::uint64_t end) override { return file_->mapped(end); }
  void will_need(std::uint64_t offset, std::uint64_t length) const override { file_->will_need(offset, length); }
  void will_not_need(std::uint64_t offset, std::uint64_t length) const override {
    ranges_.emplace_back(offset, length);
  }
  Status allocate(std::uint64_t size) override { return file_->allocate(size); }
  Status truncate(std::uint64_t size) override { return file_->truncate(size); }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  Ranges& ranges_;
};

TEST_CASE(
    "pages that were written are synced, and need not stay in the cache of the system, nor those that were read") {
  sim::SimEnv env;
  NotedFile::Ranges ranges;
  PageFileWriter writer(std::make_unique<NotedFile>(std::move(*env.create_random_access("/pages")), ranges), 7);
  REQUIRE(writer.append(std::string(10000, 'x')));
  CHECK(ranges.empty());
  REQUIRE(writer.finish());
  CHECK(ranges == NotedFile::Ranges{NotedFile::kSync, {0, 3 * kPageBytes}});
  ranges.clear();
  const PageFile file(std::make_unique<NotedFile>(std::move(*env.open_random_access("/pages")), ranges), 7);
  REQUIRE(file.read(5000, 10).has_value());
  CHECK(ranges == NotedFile::Ranges{{kPageBytes, kPageBytes}});
}

TEST_CASE("a stream reads many small parts of a file at once") {
  sim::SimEnv env;
  Random random(3);
  std::string content;
  for (int i = 0; i < 500'000; ++i) content.push_back(static_cast<char>(random.below(256)));
  const auto writer = PageFileWriter::create(env, "/pages", 7);
  REQUIRE(writer.has_value());
  REQUIRE((*writer)->append(content));
  REQUIRE((*writer)->finish());
  NotedFile::Ranges ranges;
  const PageFile file(std::make_unique<NotedFile>(std::move(*env.open_random_access("/pages")), ranges), 7);
  PageStream stream(file, content.size());
  std::size_t at = 0;
  while (at < content.size()) {
    const std::size_t length = std::min<std::size_t>(content.size() - at, random.below(2000));
    REQUIRE(stream.read(at, length).value() == std::string_view(content).substr(at, length));
    at += length;
  }
  CHECK(ranges.size() == 2);
  REQUIRE(stream.read(0, content.size()).value() == content);
  CHECK(stream.read(100, 50).value() == std::string_view(content).substr(100, 50));
  CHECK(ranges.size() == 3);
  // A stream does not read behind its end: what follows need not be whole.
  REQUIRE(env.flip_bit("/pages", 300'000, 0));
  PageStream bound(file, 250'000);
  CHECK(bound.read(0, 10).has_value());
  CHECK_FALSE(PageStream(file, content.size()).read(200'000, 10).has_value());
}

TEST_CASE("a page with a changed bit does not verify, nor one of another file") {
  sim::SimEnv env;
  const auto writer = PageFileWriter::create(env, "/pages", 7);
  REQUIRE(writer.has_value());
  REQUIRE((*writer)->append(std::string(10000, 'x')));
  REQUIRE((*writer)->finish());
  CHECK(PageFile(std::move(*env.open_random_access("/pages")), 7).read(5000, 10).has_value());
  CHECK_FALSE(PageFile(std::move(*env.open_random_access("/pages")), 8).read(5000, 10).has_value());
  REQUIRE(env.flip_bit("/pages", 5000, 0));
  CHECK_FALSE(PageFile(std::move(*env.open_random_access("/pages")), 7).read(5000, 10).has_value());
}

TEST_CASE("segments stay few, their dead documents too, and no file stays that nothing needs") {
  Node node(13);
  for (int i = 0; i < 4000; ++i) {
    node.put(random_document(node.random_));
    if (i % 50 == 0) {
      node.merge();
      node.settle();
    }
  }
  node.merge();
  node.settle();
  CHECK(node.index_->segments() <= 9);
  CHECK(node.files().size() == node.index_->segments() + 1);
}

TEST_CASE("a cache gives lists again without a read, stays within its bytes, and tells what came and left") {
  ListCache cache({.bytes_max = 2000});
  const auto bytes = [](std::size_t n) { return std::make_shared<const std::string>(n, 'x'); };
  cache.add({1, 10}, bytes(600), 5);
  cache.add({1, 20}, bytes(600), 6);
  REQUIRE(cache.find({1, 10}) != nullptr);
  cache.add({2, 10}, bytes(600), 5);  // List 20 is the least recently used one.
  CHECK(cache.find({1, 20}) == nullptr);
  CHECK(cache.find({1, 10}) != nullptr);
  CHECK(cache.bytes() <= 2000);
  cache.add({3, 10}, bytes(3000), 7);
  CHECK(cache.find({3, 10}) == nullptr);
  cache.forget_segment(1);
  cache.forget_segment(2);
  CHECK(cache.bytes() == 0);
  std::vector<std::pair<affinity::WordId, bool>> changes;
  REQUIRE(cache.changes().for_each_from(
      0, [&](affinity::CacheChange one) { changes.emplace_back(one.word, one.entered); }));
  CHECK(changes == std::vector<std::pair<affinity::WordId, bool>>{{5, true}, {6, true}, {6, false}, {5, false}});
}

TEST_CASE("by frequency a list that was used often stays, and one that enters takes the place of one used once") {
  ListCache cache({.bytes_max = 2000, .eviction = affinity::Eviction::LeastFrequentlyUsed});
  const auto bytes = [](std::size_t n) { return std::make_shared<const std::string>(n, 'x'); };
  cache.add({1, 10}, bytes(600), 5);
  for (int i = 0; i < 3; ++i) REQUIRE(cache.find({1, 10}) != nullptr);
  cache.add({1, 20}, bytes(600), 6);
  cache.add({1, 30}, bytes(600), 7);
  CHECK(cache.find({1, 20}) == nullptr);
  CHECK(cache.find({1, 30}) != nullptr);
  CHECK(cache.find({1, 10}) != nullptr);
  cache.set_limits({.bytes_max = 1000});
  CHECK(cache.find({1, 30}) == nullptr);
  CHECK(cache.find({1, 10}) != nullptr);
  CHECK(cache.bytes() <= 1000);
}

TEST_CASE("hits, misses and pages read are counted") {
  Node node(14);
  for (int i = 0; i < 500; ++i) node.put(random_document(node.random_));
  node.merge();
  node.settle();
  node.open();
  const IndexCounts before = node.index_->counts();
  const auto ignore = [](const KeywordEntry&) {};
  for (int i = 0; i < 3; ++i) REQUIRE(node.index_->for_each_keyword("w1", ignore));
  const IndexCounts& after = node.index_->counts();
  CHECK(after.list_misses - before.list_misses == node.index_->segments());
  CHECK(after.list_hits - before.list_hits == 2 * node.index_->segments());
  CHECK(after.pages_read > before.pages_read);
}

}  // namespace
}  // namespace fjord::search
