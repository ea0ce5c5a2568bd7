#include "keyword_stores.h"

#if FJORD_HAVE_FLATBUFFERS
#include <flatbuffers/flatbuffers.h>
#endif
#if FJORD_HAVE_CAPNPROTO
#include <capnp/any.h>
#include <capnp/message.h>
#include <capnp/serialize.h>
#endif

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "fjord/common/check.h"
#include "fjord/common/coding.h"
#include "fjord/common/env.h"
#include "fjord/common/hash.h"
#include "fjord/document/document.h"
#include "fjord/document/document_id.h"
#include "index/disk_index.h"

namespace fjord::search {
namespace {

constexpr std::uint32_t kPlanted[] = {2, 6, 14, 69, 136};
constexpr std::uint32_t kCandidatesOfMatch = 20;
constexpr std::uint64_t kVocabulary = 200'000;

/// Returns a random word of the vocabulary. Words with low numbers are frequent (a power law).
std::string word(std::uint64_t random) {
  const double u = static_cast<double>(random >> 11) / 9007199254740992.0;
  return "w" + std::to_string(static_cast<std::uint64_t>(u * u * static_cast<double>(kVocabulary)));
}

}  // namespace

std::uint64_t check_of(std::uint32_t number, std::int64_t bid, std::string_view rest) {
  return mix64(number, static_cast<std::uint64_t>(bid)) ^ hash64(rest);
}

KeywordSource::KeywordSource(std::uint32_t count) : count_(count), by_word_(count) {
  std::vector<std::string> words(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    by_word_[i] = i;
    words[i] = first_word_of(make(i).words);
  }
  std::stable_sort(by_word_.begin(), by_word_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return words[a] < words[b]; });
}

Keyword KeywordSource::make(std::uint32_t number) const {
  Keyword out;
  out.number = number;
  out.group = number / 34;
  out.kind = static_cast<MatchKind>(mix64(number, 1) % 10 < 8 ? 0 : mix64(number, 1) % 10 - 7);
  out.bid = static_cast<std::int64_t>(mix64(number, 2) % 1'000'000);
  // The planted keywords, which query_with() finds, are spread over all numbers.
  std::uint32_t place = number % (count_ / 5000);
  std::uint32_t at = number / (count_ / 5000);
  for (const std::uint32_t matches : kPlanted) {
    if (place != 0) break;
    if (at < matches * kCandidatesOfMatch) {
      out.kind = MatchKind::Broad;
      out.words = query_with(matches).substr(0, query_with(matches).find(' ')) + (at < matches ? " cheap" : " other") +
                  (at < matches ? "" : std::to_string(at));
      break;
    }
    at -= matches * kCandidatesOfMatch;
  }
  if (out.words.empty()) {
    out.words = word(mix64(number, 3));
    for (std::uint64_t i = 0; i < mix64(number, 4) % 4; ++i) out.words += " " + word(mix64(number, 5 + i));
  }
  out.rest = "https://shop.example/landing/" + std::to_string(number);
  while (out.rest.size() < 180) out.rest += "/" + std::to_string(mix64(number, out.rest.size()));
  return out;
}

std::string KeywordSource::query_with(std::uint32_t matches) {
  return "planted" + std::to_string(matches) + " very cheap in prague";
}

std::string KeywordSource::random_query(std::uint64_t number) {
  std::string out = word(mix64(number, 100));
  for (std::uint64_t i = 0; i < 1 + mix64(number, 101) % 3; ++i) out += " " + word(mix64(number, 102 + i));
  return out;
}

namespace {

/// The part of a keyword that a codec reads to decide whether it matches, and the number of the keyword.
struct Match {
  std::uint32_t number = 0;
  MatchKind kind = MatchKind::Broad;
  std::string_view words;
};
struct Rest {
  std::int64_t bid = 0;
  std::string_view rest;
};

/// A codec: keywords in the wire form, in which documents are stored and sent.
class Wire {
 public:
  Wire() {
    const std::string schema = R"(document keyword {
      field number type int { header }
      field kind type int { header }
      field words type string { header }
      field bid type long { header }
      field rest type string { header } })";
    auto built = DocumentTypeRepo::build(std::span(&schema, 1));
    FJORD_CHECK(built.has_value());
    types_ = *built;
    type_ = types_->find("keyword");
  }
  std::string encode(const Keyword& one, bool match, bool rest) const {
    Document document(*type_, *DocumentId::parse("id:a:keyword::" + std::to_string(one.number)));
    bool ok = true;
    if (match) {
      ok = document.set("number", static_cast<std::int32_t>(one.number)).is_ok() &&
           document.set("kind", static_cast<std::int32_t>(one.kind)).is_ok() &&
           document.set("words", one.words).is_ok();
    }
    if (rest) ok = ok && document.set("bid", one.bid).is_ok() && document.set("rest", one.rest).is_ok();
    FJORD_CHECK(ok);
    return fjord::encode(document).header;
  }
  Match match(std::string_view bytes) const {
    const auto view = DocumentView::open(*types_, bytes, {});
    return {static_cast<std::uint32_t>(view->field("number")->as_int64()),
            static_cast<MatchKind>(view->field("kind")->as_int64()), view->field("words")->as_string_view()};
  }
  Document parse(std::string_view bytes) const {
    const auto view = DocumentView::open(*types_, bytes, {});
    return view->document().value();
  }
  Rest rest(std::string_view bytes) const {
    const auto view = DocumentView::open(*types_, bytes, {});
    return {view->field("bid")->as_int64(), view->field("rest")->as_string_view()};
  }

 private:
  std::shared_ptr<const DocumentTypeRepo> types_;
  const DocumentType* type_ = nullptr;
};

/// A codec with the wire form of Wire, but each keyword that is looked at first becomes an object with all of its
/// fields, as parsers of Protocol Buffers make them.
class ParsedWire {
 public:
  std::string encode(const Keyword& one, bool match, bool rest) const { return wire_.encode(one, match, rest); }
  Match match(std::string_view bytes) const {
    parse(bytes);
    return {static_cast<std::uint32_t>(field<std::int32_t>("number")),
            static_cast<MatchKind>(field<std::int32_t>("kind")), field<std::string>("words")};
  }
  Rest rest(std::string_view bytes) const {
    if (bytes.data() != parsed_) parse(bytes);
    return {field<std::int64_t>("bid"), field<std::string>("rest")};
  }

 private:
  void parse(std::string_view bytes) const {
    document_ = wire_.parse(bytes);
    parsed_ = bytes.data();
  }
  template <typename T>
  const T& field(std::string_view name) const {
    return *document_->get(name)->get_if<T>();
  }

  Wire wire_;
  mutable std::optional<Document> document_;  // Owns what the returned views point into.
  mutable const char* parsed_ = nullptr;
};

/// A codec: numbers at fixed places, like the lists of the index.
class Flat {
 public:
  std::string encode(const Keyword& one, bool match, bool rest) const {
    std::string out;
    if (match) {
      put_fixed(out, one.number);
      out.push_back(static_cast<char>(one.kind));
      put_fixed(out, static_cast<std::uint32_t>(one.words.size()));
      out += one.words;
    } else {
      out.assign(9, '\0');
    }
    if (rest) {
      put_fixed(out, one.bid);
      out += one.rest;
    }
    return out;
  }
  Match match(std::string_view bytes) const {
    return {load_fixed<std::uint32_t>(bytes.data()), static_cast<MatchKind>(bytes[4]),
            bytes.substr(9, load_fixed<std::uint32_t>(bytes.data() + 5))};
  }
  Rest rest(std::string_view bytes) const {
    const std::size_t at = 9 + load_fixed<std::uint32_t>(bytes.data() + 5);
    return {load_fixed<std::int64_t>(bytes.data() + at), bytes.substr(at + 8)};
  }
};

#if FJORD_HAVE_FLATBUFFERS
/// A codec: a table of FlatBuffers, written and read without generated code.
class FlatBuffers {
 public:
  static constexpr flatbuffers::voffset_t slot(int field) { return static_cast<flatbuffers::voffset_t>(4 + 2 * field); }
  std::string encode(const Keyword& one, bool match, bool rest) const {
    flatbuffers::FlatBufferBuilder builder(256);
    flatbuffers::Offset<flatbuffers::String> words = 0;
    flatbuffers::Offset<flatbuffers::String> url = 0;
    if (match) words = builder.CreateString(one.words);
    if (rest) url = builder.CreateString(one.rest);
    const auto start = builder.StartTable();
    if (rest) builder.AddElement<std::int64_t>(slot(3), one.bid, 0);
    if (match) {
      builder.AddElement<std::uint32_t>(slot(0), one.number, 0);
      builder.AddOffset(slot(2), words);
    }
    if (rest) builder.AddOffset(slot(4), url);
    if (match) builder.AddElement<std::int8_t>(slot(1), static_cast<std::int8_t>(one.kind), 0);
    builder.Finish(flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(start)));
    return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
  }
  Match match(std::string_view bytes) const {
    const auto* table = flatbuffers::GetRoot<flatbuffers::Table>(bytes.data());
    return {table->GetField<std::uint32_t>(slot(0), 0),
            static_cast<MatchKind>(table->GetField<std::int8_t>(slot(1), 0)),
            table->GetPointer<const flatbuffers::String*>(slot(2))->string_view()};
  }
  Rest rest(std::string_view bytes) const {
    const auto* table = flatbuffers::GetRoot<flatbuffers::Table>(bytes.data());
    return {table->GetField<std::int64_t>(slot(3), 0),
            table->GetPointer<const flatbuffers::String*>(slot(4))->string_view()};
  }
};
#endif

#if FJORD_HAVE_CAPNPROTO
/// A codec: a struct of Cap'n Proto, written and read without generated code. If it is `Checked`, each record is opened
/// as a message that came from elsewhere: with its frame, and with the bounds of each pointer checked. Else it is
/// trusted, as all other codecs trust their records.
template <bool Checked>
class CapnProto {
 public:
  std::string encode(const Keyword& one, bool match, bool rest) const {
    capnp::MallocMessageBuilder message;
    // Fields at the end that are not set take no space.
    const std::uint16_t words = rest ? 2 : 1;
    capnp::AnyStruct::Builder root = message.getRoot<capnp::AnyPointer>().initAsAnyStruct(words, words);
    capnp::byte* const data = root.getDataSection().begin();
    auto texts = root.getPointerSection();
    if (match) {
      std::memcpy(data, &one.number, sizeof one.number);
      data[4] = static_cast<capnp::byte>(one.kind);
      texts[0].setAs<capnp::Text>(capnp::Text::Reader(one.words.c_str(), one.words.size()));
    }
    if (rest) {
      std::memcpy(data + 8, &one.bid, sizeof one.bid);
      texts[1].setAs<capnp::Text>(capnp::Text::Reader(one.rest.c_str(), one.rest.size()));
    }
    return bytes_of(message, root);
  }
  Match match(std::string_view bytes) const {
    return open(bytes, [](capnp::AnyStruct::Reader root) {
      const auto* const data = reinterpret_cast<const char*>(root.getDataSection().begin());
      return Match{load_fixed<std::uint32_t>(data), static_cast<MatchKind>(data[4]), text(root, 0)};
    });
  }
  Rest rest(std::string_view bytes) const {
    return open(bytes, [](capnp::AnyStruct::Reader root) {
      const auto* const data = reinterpret_cast<const char*>(root.getDataSection().begin());
      return Rest{load_fixed<std::int64_t>(data + 8), text(root, 1)};
    });
  }

 private:
  static std::string bytes_of(capnp::MallocMessageBuilder& message, capnp::AnyStruct::Builder root) {
    kj::Array<capnp::word> words;
    if constexpr (Checked) {
      words = capnp::messageToFlatArray(message);
    } else {
      words = kj::heapArray<capnp::word>(root.asReader().totalSize().wordCount + 1);
      std::memset(words.begin(), 0, words.size() * sizeof(capnp::word));
      capnp::copyToUnchecked(root.asReader(), words);
    }
    return {reinterpret_cast<const char*>(words.begin()), words.size() * sizeof(capnp::word)};
  }
  template <typename F>
  static auto open(std::string_view bytes, F use) {
    const auto* const words = reinterpret_cast<const capnp::word*>(bytes.data());
    if constexpr (Checked) {
      capnp::FlatArrayMessageReader reader(kj::arrayPtr(words, bytes.size() / sizeof(capnp::word)));
      return use(reader.getRoot<capnp::AnyStruct>());
    } else {
      return use(capnp::readMessageUnchecked<capnp::AnyStruct>(words));
    }
  }
  static std::string_view text(capnp::AnyStruct::Reader root, unsigned at) {
    const capnp::Text::Reader text = root.getPointerSection()[at].getAs<capnp::Text>();
    return {text.begin(), text.size()};
  }
};
#endif

/// Records one after the other, ordered by first word. Each begins at a multiple of 8, as FlatBuffers and Cap'n Proto
/// need it.
struct Records {
  std::string bytes;
  void add(std::string_view record) {
    put_fixed(bytes, static_cast<std::uint64_t>(record.size()));
    bytes += record;
    bytes.resize((bytes.size() + 7) / 8 * 8);
  }
  std::string_view at(std::uint64_t& offset) const {
    const auto size = load_fixed<std::uint64_t>(bytes.data() + offset);
    const std::string_view record(bytes.data() + offset + 8, static_cast<std::size_t>(size));
    offset = (offset + 8 + size + 7) / 8 * 8;
    return record;
  }
};

/// A store of sorted records. With `Split` it has two: the data for matching by first word, and the rest by number.
/// Otherwise whole keywords are sorted by first word, and the rest is decoded only if the keyword matches.
template <typename Codec, bool Split>
class SortedStore final : public KeywordStore {
 public:
  explicit SortedStore(const KeywordSource& source) {
    if constexpr (Split) {
      for (std::uint32_t i = 0; i < source.count(); ++i) {
        rest_at_.push_back(rest_.bytes.size());
        rest_.add(codec_.encode(source.make(i), false, true));
      }
    }
    for (const std::uint32_t number : source.by_word()) {
      const Keyword one = source.make(number);
      auto& range = words_.try_emplace(std::string(first_word_of(one.words)), by_word_.bytes.size(), 0).first->second;
      by_word_.add(codec_.encode(one, true, !Split));
      range.second = by_word_.bytes.size();
    }
  }
  Found search(const QueryVariant& query) const override {
    Found found;
    for (const std::string& one : query.distinct_words()) {
      const auto at = words_.find(one);
      if (at == words_.end()) continue;
      for (std::uint64_t offset = at->second.first; offset < at->second.second;) {
        const std::string_view record = by_word_.at(offset);
        const Match match = codec_.match(record);
        ++found.scanned;
        found.bytes += record.size();
        if (!matches(match.kind, match.words, query)) continue;
        Rest rest;
        if constexpr (Split) {
          std::uint64_t rest_at = rest_at_[match.number];
          const std::string_view of_match = rest_.at(rest_at);
          found.bytes += of_match.size();
          rest = codec_.rest(of_match);
        } else {
          rest = codec_.rest(record);
        }
        ++found.matches;
        found.check += check_of(match.number, rest.bid, rest.rest);
      }
    }
    return found;
  }
  std::uint64_t bytes() const override { return by_word_.bytes.size() + rest_.bytes.size(); }

 private:
  Codec codec_;
  Records by_word_;
  Records rest_;
  std::vector<std::uint64_t> rest_at_;
  std::unordered_map<std::string, std::pair<std::uint64_t, std::uint64_t>> words_;
};

/// A store without encoding: keywords as objects in memory.
class MapStore final : public KeywordStore {
 public:
  explicit MapStore(const KeywordSource& source) {
    for (std::uint32_t i = 0; i < source.count(); ++i) {
      Keyword one = source.make(i);
      bytes_ += sizeof(Keyword) + one.words.size() + one.rest.size();
      words_[std::string(first_word_of(one.words))].push_back(std::make_unique<Keyword>(std::move(one)));
    }
  }
  Found search(const QueryVariant& query) const override {
    Found found;
    for (const std::string& word : query.distinct_words()) {
      const auto at = words_.find(word);
      if (at == words_.end()) continue;
      found.scanned += at->second.size();
      for (const auto& one : at->second) {
        if (!matches(one->kind, one->words, query)) continue;
        ++found.matches;
        found.check += check_of(one->number, one->bid, one->rest);
      }
    }
    return found;
  }
  std::uint64_t bytes() const override { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
  std::unordered_map<std::string, std::vector<std::unique_ptr<Keyword>>> words_;
};

/// The index as a storage node has it, in files, with its cache.
class IndexStoreOnDisk final : public KeywordStore {
 public:
  IndexStoreOnDisk(const KeywordSource& source, const std::string& directory) : env_(make_posix_env()) {
    DiskIndexOptions options{.directory = directory};
    options.recent_bytes_max = std::size_t{16} << 20;
    auto index = DiskIndex::open(*env_, options);
    FJORD_CHECK(index.has_value());
    index_ = std::move(*index);
    index_->clear("experiment");
    for (std::uint32_t i = 0; i < source.count(); ++i) {
      const Keyword one = source.make(i);
      std::string payload;
      put_fixed(payload, one.number);
      put_fixed(payload, one.bid);
      payload += one.rest;
      bytes_ += one.words.size() + payload.size();
      const auto id = DocumentId::parse("id:a:keyword:n=" + std::to_string(one.group) + ":" + std::to_string(i));
      index_->put({.gid = id->gid(),
                   .timestamp = Timestamp{1},
                   .group = one.group,
                   .kind = one.kind,
                   .words = one.words,
                   .payload = payload});
      if (i % 10'000 == 0) settle();
    }
    settle();
  }
  Found search(const QueryVariant& query) const override {
    Found found;
    std::vector<GlobalId> gids;
    bool ok = true;
    for (const std::string& word : query.distinct_words()) {
      ok = ok && index_->for_each_keyword(word, [&](const KeywordEntry& one) {
        ++found.scanned;
        if (matches(one.kind, one.words, query)) gids.push_back(one.gid);
      });
    }
    FJORD_CHECK(ok);
    for (const GlobalId& gid : gids) {
      const auto payload = index_->payload_of(gid);
      FJORD_CHECK(payload.has_value());
      ++found.matches;
      found.check += check_of(load_fixed<std::uint32_t>(payload->data()), load_fixed<std::int64_t>(payload->data() + 4),
                              payload->substr(12));
    }
    return found;
  }
  std::uint64_t bytes() const override { return bytes_; }

 private:
  void settle() {
    index_->merge_delta();
    for (bool more = true; more;) {
      const auto done = index_->maintain();
      FJORD_CHECK(done.has_value());
      more = *done;
    }
  }

  std::unique_ptr<Env> env_;
  std::unique_ptr<DiskIndex> index_;
  std::uint64_t bytes_ = 0;
};

template <typename Codec, bool Split>
std::unique_ptr<KeywordStore> sorted(const KeywordSource& source, const std::string&) {
  return std::make_unique<SortedStore<Codec, Split>>(source);
}

}  // namespace

std::vector<std::string> missing_forms() {
  std::vector<std::string> missing;
  if (!FJORD_HAVE_FLATBUFFERS) missing.push_back("FlatBuffers (libflatbuffers-dev)");
  if (!FJORD_HAVE_CAPNPROTO) missing.push_back("Cap'n Proto (libcapnp-dev)");
  return missing;
}

std::vector<StoreKind> store_kinds() {
  std::vector<StoreKind> kinds{{"one, wire, parsed", sorted<ParsedWire, false>},
                               {"split, wire, parsed", sorted<ParsedWire, true>},
                               {"one, wire", sorted<Wire, false>},
                               {"split, wire", sorted<Wire, true>},
                               {"one, flat", sorted<Flat, false>},
                               {"split, flat", sorted<Flat, true>}};
#if FJORD_HAVE_FLATBUFFERS
  kinds.push_back({"one, FlatBuffers", sorted<FlatBuffers, false>});
  kinds.push_back({"split, FlatBuffers", sorted<FlatBuffers, true>});
#endif
#if FJORD_HAVE_CAPNPROTO
  kinds.push_back({"one, Cap'n Proto", sorted<CapnProto<true>, false>});
  kinds.push_back({"split, Cap'n Proto", sorted<CapnProto<true>, true>});
  kinds.push_back({"one, Cap'n Proto, trusted", sorted<CapnProto<false>, false>});
  kinds.push_back({"split, Cap'n Proto, trusted", sorted<CapnProto<false>, true>});
#endif
  for (StoreKind& kind : id_store_kinds()) kinds.push_back(std::move(kind));
  kinds.push_back({"map", [](const KeywordSource& source, const std::string&) -> std::unique_ptr<KeywordStore> {
                     return std::make_unique<MapStore>(source);
                   }});
  kinds.push_back(
      {"index", [](const KeywordSource& source, const std::string& directory) -> std::unique_ptr<KeywordStore> {
         return std::make_unique<IndexStoreOnDisk>(source, directory);
       }});
  return kinds;
}

}  // namespace fjord::search
