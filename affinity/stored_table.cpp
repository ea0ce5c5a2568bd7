#include "fjord/affinity/stored_table.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "fjord/affinity/clustering.h"
#include "fjord/common/check.h"
#include "fjord/common/coding.h"

namespace fjord::affinity {
namespace {

constexpr std::uint32_t kMagic = 0x4c425446;  // "FTBL"
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 6;  // Magic and version.

Status corrupt(std::string_view what) {
  return {StatusCode::Corruption, fmt::format("a table of votes is damaged: {}", what)};
}

/// Reads words with their pages and weights.
Status read_words(ByteReader& reader, std::uint64_t count, unsigned replicas, StoredTable& table) {
  std::vector<float> weights(replicas);
  table.table = VotingTable(replicas, count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string word(reader.string());
    if (i > 0 && word <= table.words.back()) return corrupt("its words are not in order");
    table.words.push_back(std::move(word));
    table.pages.push_back(reader.fixed<std::uint32_t>());
    for (float& weight : weights) {
      weight = reader.fixed<float>();
      if (!std::isfinite(weight) || weight < 0.0F) return corrupt("a weight is not a number from 0 on");
    }
    if (!reader.ok() || table.pages.back() == 0) return corrupt("a word is cut off");
    table.table.set(static_cast<WordId>(i), weights);
  }
  return reader.at_end() ? Status::ok() : corrupt("bytes follow its last word");
}

}  // namespace

std::string encode_table(const StoredTable& table) {
  FJORD_CHECK(table.words.size() == table.pages.size() && table.table.known_words() == table.words.size());
  std::string bytes;
  put_fixed(bytes, kMagic);
  put_fixed(bytes, kVersion);
  put_string(bytes, table.corpus);
  put_string(bytes, table.method);
  put_varint(bytes, table.trained_queries);
  put_varint(bytes, table.table.replicas());
  put_varint(bytes, table.words.size());
  for (WordId word = 0; word < table.words.size(); ++word) {
    put_string(bytes, table.words[word]);
    put_fixed(bytes, table.pages[word]);
    for (const float weight : table.table.weights(word)) put_fixed(bytes, weight);
  }
  put_fixed(bytes, checksum32(bytes));
  return bytes;
}

Result<StoredTable> decode_table(std::string_view bytes, std::string_view corpus, ForeignTable foreign) {
  constexpr std::size_t kChecksumBytes = sizeof(std::uint32_t);
  if (bytes.size() < kHeaderBytes + kChecksumBytes || load_fixed<std::uint32_t>(bytes.data()) != kMagic) {
    return corrupt("it does not begin as one");
  }
  const auto version = load_fixed<std::uint16_t>(bytes.data() + sizeof(kMagic));
  if (version > kVersion) {
    return Status(
        StatusCode::NotImplemented,
        fmt::format("a table of votes has version {} of the format; this program reads up to {}", version, kVersion));
  }
  const std::string_view body = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (checksum32(body) != load_fixed<std::uint32_t>(bytes.data() + body.size())) return corrupt("its checksum differs");
  ByteReader reader(body.substr(kHeaderBytes));
  StoredTable table;
  table.corpus = std::string(reader.string());
  table.method = std::string(reader.string());
  table.trained_queries = reader.varint();
  const std::uint64_t replicas = reader.varint();
  const std::uint64_t count = reader.varint();
  if (!reader.ok() || replicas == 0 || replicas > kReplicasMax) return corrupt("its number of replicas");
  if (count > reader.remaining()) return corrupt("its number of words");
  FJORD_TRY(read_words(reader, count, static_cast<unsigned>(replicas), table));
  table.is_foreign = table.corpus != corpus;
  if (table.is_foreign && foreign == ForeignTable::Refuse) {
    return Status(
        StatusCode::InvalidArgument,
        fmt::format("the table of votes was trained on {}, not on {}; train one for it", table.corpus, corpus));
  }
  return table;
}

StoredTable make_stored_table(const VotingTable& table, const std::vector<std::string>& vocabulary,
                              const ListPages& pages) {
  std::vector<WordId> order;
  for (WordId word = 0; word < vocabulary.size(); ++word) {
    if (table.knows(word)) order.push_back(word);
  }
  std::sort(order.begin(), order.end(), [&](WordId a, WordId b) { return vocabulary[a] < vocabulary[b]; });
  StoredTable stored;
  stored.table = VotingTable(table.replicas(), order.size());
  for (const WordId word : order) {
    stored.table.set(static_cast<WordId>(stored.words.size()), table.weights(word));
    stored.words.push_back(vocabulary[word]);
    stored.pages.push_back(pages[word]);
  }
  return stored;
}

WordIndex::WordIndex(const StoredTable& table) {
  ids_.reserve(table.words.size());
  for (WordId word = 0; word < table.words.size(); ++word) ids_.emplace(table.words[word], word);
}

WordId WordIndex::find(std::string_view word) const {
  const auto it = ids_.find(word);
  return it != ids_.end() ? it->second : static_cast<WordId>(ids_.size());
}

}  // namespace fjord::affinity
