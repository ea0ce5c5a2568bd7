#include "fjord/document/docblock.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "fjord/document/document.h"
#include "sample_schema.h"

namespace fjord {
namespace {

struct Entry {
  GlobalId gid;
  Timestamp timestamp;
  bool removed = false;
  std::string id;
  std::string header;
  std::string body;

  friend bool operator==(const Entry&, const Entry&) = default;
  EntryView view() const { return {gid, timestamp, removed, id, header, body}; }
};

std::vector<Entry> sample_entries() {
  const auto repo = test::sample_repo();
  std::vector<Entry> entries;
  for (int i = 0; i < 3; ++i) {
    const DocumentId id = test::id_of("id:music:song:n=7:" + std::to_string(i));
    Document song(*repo->find("song"), id);
    REQUIRE(song.set("title", std::string(static_cast<std::size_t>(i) * 100, 't')));
    if (i > 0) REQUIRE(song.set("lyrics", std::string("la\0la", 5)));
    EncodedDocument encoded = encode(song);
    entries.push_back({id.gid(), Timestamp{1'700'000'000'000'000u + static_cast<unsigned>(i)}, false, id.str(),
                       encoded.header, encoded.body});
  }
  const DocumentId gone = test::id_of("id:music:song:n=7:gone");
  entries.insert(entries.begin() + 1, {gone.gid(), Timestamp{~std::uint64_t{0}}, true, gone.str(), "", ""});
  return entries;
}

std::string block_of(const std::vector<Entry>& entries) {
  DocBlockBuilder builder;
  for (const Entry& entry : entries) builder.add(entry.view());
  return builder.take();
}

/// Returns the entries up to the end, or up to the first malformed one.
std::vector<Entry> read(std::string_view block, bool& ok) {
  DocBlockReader reader(block);
  std::vector<Entry> entries;
  while (auto view = reader.next()) {
    entries.push_back({view->gid, view->timestamp, view->removed, std::string(view->id), std::string(view->header),
                       std::string(view->body)});
  }
  CHECK_FALSE(reader.next());  // The reader stays at its end.
  ok = reader.ok();
  return entries;
}

}  // namespace

TEST_CASE("docblock: gives back what was added, the ids of documents from their headers") {
  const std::vector<Entry> entries = sample_entries();
  bool ok = false;
  CHECK(read(block_of(entries), ok) == entries);
  CHECK(ok);
  CHECK(read("", ok).empty());
  CHECK(ok);
}

TEST_CASE("docblock: blocks can be put one behind the other") {
  const std::vector<Entry> entries = sample_entries();
  bool ok = false;
  std::vector<Entry> twice = entries;
  twice.insert(twice.end(), entries.begin(), entries.end());
  CHECK(read(block_of(entries) + block_of(entries), ok) == twice);
  CHECK(ok);
}

TEST_CASE("docblock: the builder counts, is empty when its block was taken, and starts anew") {
  const std::vector<Entry> entries = sample_entries();
  DocBlockBuilder builder;
  CHECK(builder.empty());
  CHECK(builder.size() == 0);
  builder.add(entries[0].view());
  builder.add(entries[1].view());
  CHECK(builder.count() == 2);
  CHECK_FALSE(builder.empty());
  const std::size_t size = builder.size();
  CHECK(builder.take().size() == size);
  CHECK(builder.empty());
  CHECK(builder.size() == 0);
  builder.add(entries[2].view());
  CHECK(builder.take() == block_of({entries[2]}));
}

TEST_CASE("docblock: cut off anywhere, it gives the whole entries before and says that it is malformed") {
  const std::vector<Entry> entries = sample_entries();
  const std::string block = block_of(entries);
  std::vector<std::size_t> ends{0};
  for (const Entry& entry : entries) ends.push_back(ends.back() + block_of({entry}).size());
  REQUIRE(ends.back() == block.size());
  for (std::size_t size = 0; size <= block.size(); ++size) {
    INFO(size);
    // Copies the bytes into a buffer of exactly their size, so that a sanitizer detects a read beyond it.
    const std::vector<char> part(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(size));
    bool ok = false;
    const std::vector<Entry> got = read({part.data(), part.size()}, ok);
    std::size_t whole = 0;
    while (whole < entries.size() && ends[whole + 1] <= size) ++whole;
    CHECK(got == std::vector<Entry>(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(whole)));
    CHECK(ok == (ends[whole] == size));
  }
}

TEST_CASE("docblock: a length that goes beyond the end, or is no varint, is malformed") {
  std::string start;
  start.push_back('\0');
  start.append(12, 'g');
  put_fixed<std::uint64_t>(start, 5);
  const std::string length = GENERATE(as<std::string>(), "\x05", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x80");
  bool ok = true;
  CHECK(read(start + length + "abc", ok).empty());
  CHECK_FALSE(ok);
}

TEST_CASE("docblock: an entry whose parts are written later is the same as one that was added") {
  const std::vector<Entry> entries = sample_entries();
  DocBlockBuilder builder;
  for (const Entry& entry : entries) {
    if (entry.removed) {
      builder.add(entry.view());
      continue;
    }
    const DocBlockBuilder::Parts parts =
        builder.add_uninitialized(entry.gid, entry.timestamp, entry.header.size(), entry.body.size());
    std::memcpy(builder.data() + parts.header_offset, entry.header.data(), entry.header.size());
    std::memcpy(builder.data() + parts.body_offset, entry.body.data(), entry.body.size());
  }
  CHECK(builder.count() == entries.size());
  CHECK(builder.take() == block_of(entries));
}

TEST_CASE("docblock: rewind takes entries back") {
  const std::vector<Entry> entries = sample_entries();
  DocBlockBuilder builder;
  builder.add(entries[0].view());
  const std::size_t size = builder.size();
  const std::size_t count = builder.count();
  builder.add(entries[1].view());
  builder.add_uninitialized(entries[2].gid, entries[2].timestamp, 10, 20);
  builder.rewind(size, count);
  CHECK(builder.count() == 1);
  builder.add(entries[3].view());
  CHECK(builder.take() == block_of({entries[0], entries[3]}));
}

}  // namespace fjord
