// Part of fjord-library-check: blocks that other threads decode.

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "library_check.h"

using namespace fjord;

void check_blocks(Client& client) {
  // Other threads decode the blocks, and outlive the visit. A part of the documents is taken one by one, and by resumed
  // visits with blocks of which a part was given before.
  std::map<std::string, int> seen;
  std::mutex mutex;
  std::vector<std::thread> decoders;
  const auto decode = [&](const DocumentBlock& block) {
    DocBlockReader entries = block.entries();
    std::size_t count = 0;
    while (const std::optional<EntryView> entry = entries.next()) {
      const Result<Document> document = block.decode(*entry);
      CHECK(document && document->has("name") && !document->has("price"));
      const std::lock_guard lock(mutex);
      if (document) ++seen[document->id().str()];
      ++count;
    }
    CHECK(count == block.size() && count > 0);
  };
  std::string cursor;
  int visits = 0;
  for (bool is_over = false; !is_over; ++visits) {
    Visit visit = client.visit({.selection = "item.price < 9", .fields = {"name"}, .slices = 2, .resume = cursor});
    for (int n = 0; n < 3; ++n) {
      if (const Document* document = visit.next(); document != nullptr) {
        const std::lock_guard lock(mutex);
        ++seen[document->id().str()];
      }
    }
    std::optional<DocumentBlock> block = visit.next_block();
    is_over = !block;
    if (block) {
      decoders.emplace_back([&decode, block = std::move(*block)] { decode(block); });
      for (int n = 0; n < 2; ++n) {
        if (const auto entry = visit.next_entry()) {
          const auto document = visit.types()->find("item");
          CHECK(document != nullptr && !entry->removed);
          const auto view = DocumentView::open(*visit.types(), entry->header, entry->body);
          CHECK_OK(view.status());
          const std::lock_guard lock(mutex);
          if (view) ++seen[std::string(view->id())];
        }
      }
    }
    CHECK_OK(visit.status());
    cursor = visit.cursor();
  }
  for (std::thread& decoder : decoders) decoder.join();
  CHECK(visits > 1);
  CHECK(seen.size() == kDocuments / 10 * 9);
  for (const auto& [id, times] : seen) CHECK(times == 1);

  // A block has what the visit has: here the documents of all types, and a remove entry.
  CHECK_OK(client.put_json(id_of(kDocuments), R"({"name": "gone"})").wait().status);
  CHECK_OK(client.remove(id_of(kDocuments)).wait().status);
  Visit visit = client.visit({.type = "item", .include_removed = true});
  std::size_t documents = 0;
  std::size_t removes = 0;
  while (!visit.is_over()) {
    const std::optional<DocumentBlock> block = visit.try_next_block();
    if (!block) {
      CHECK_OK(visit.ready().wait());
      continue;
    }
    CHECK(!block->bytes().empty());
    DocBlockReader entries = block->entries();
    while (const auto entry = entries.next()) {
      ++(entry->removed ? removes : documents);
      CHECK(block->decode(*entry).status().code() == (entry->removed ? StatusCode::InvalidArgument : StatusCode::Ok));
    }
  }
  CHECK_OK(visit.status());
  CHECK(documents == kDocuments && removes > 0);
}
