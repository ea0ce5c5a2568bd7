#include "corpus.h"

#include <cstring>
#include <fmt/format.h>
#include <numeric>

#include "fjord/common/check.h"
#include "fjord/common/hash.h"
#include "fjord/common/random.h"
#include "fjord/document/document.h"

namespace fjord::bench {
namespace {

constexpr std::string_view kSchema = R"(
schema item {
  document item {
    field version type int { header }
    field percent type int { header }
    field title type string { header }
    field note type string { header }
    field payload type raw { body }
  }
})";
constexpr std::string_view kSelection = "item.percent == 42";

constexpr std::size_t kHeaderBytes = 200;
constexpr std::size_t kSmallBodyBytes = 600;
constexpr std::size_t kLargeBodyBytes = 155'000;
constexpr std::size_t kTitleBytes = 40;
constexpr std::size_t kPoolBytes = std::size_t{64} << 20;
constexpr std::size_t kLine = 64;
constexpr std::uint64_t kFirstTimestampUs = 1'700'000'000'000'000;

std::uint64_t word_at(const char* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

std::string random_text(Random& random, std::size_t length) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789- ";
  std::string text(length, '\0');
  for (char& c : text) c = kLetters[random.below(kLetters.size())];
  return text;
}

struct HeaderFields {
  std::int32_t version = 0;
  std::int32_t percent = 0;
  std::string title;
  std::string note;
};

EncodedDocument encode_item(const DocumentType& type, const std::string& id, HeaderFields fields, RawValue payload) {
  Result<DocumentId> parsed = DocumentId::parse(id);
  FJORD_CHECK_MSG(parsed.has_value(), parsed.status().to_string());
  Document document(type, std::move(*parsed));
  FJORD_CHECK(document.set("version", fields.version).is_ok());
  FJORD_CHECK(document.set("percent", fields.percent).is_ok());
  FJORD_CHECK(document.set("title", std::move(fields.title)).is_ok());
  FJORD_CHECK(document.set("note", std::move(fields.note)).is_ok());
  FJORD_CHECK(document.set("payload", std::move(payload)).is_ok());
  return encode(document);
}

}  // namespace

std::uint64_t touch(std::string_view part) {
  if (part.size() < sizeof(std::uint64_t)) return 0;
  const std::size_t last = part.size() - sizeof(std::uint64_t);
  std::uint64_t sum = word_at(part.data() + last);
  for (std::size_t at = 0; at < last; at += kLine) sum += word_at(part.data() + at);
  return sum;
}

std::uint64_t fingerprint(const GlobalId& gid, Timestamp timestamp, std::string_view header, std::string_view body) {
  return mix64(gid.hash_bits(), timestamp.us) + touch(header) + 3 * touch(body);
}

Corpus::Corpus(DocumentSize size, std::uint64_t documents, std::uint64_t seed) : size_(size), seed_(seed) {
  const std::string schemas[] = {std::string(kSchema)};
  auto types = DocumentTypeRepo::build(schemas);
  FJORD_CHECK_MSG(types.has_value(), types.status().to_string());
  auto selection = Selection::parse(kSelection, **types);
  FJORD_CHECK_MSG(selection.has_value(), selection.status().to_string());
  selection_ = {.types = *types, .selection = std::make_shared<const Selection>(std::move(*selection))};

  // The payload comes last in the body; the bytes before it are equal in all documents, as the lengths are.
  const std::size_t wanted = size == DocumentSize::Small ? kSmallBodyBytes : kLargeBodyBytes;
  for (payload_bytes_ = wanted; payload_bytes_ > 0; --payload_bytes_) {
    const std::string sample(payload_bytes_, 'x');
    const std::string body = encode_item(*(*types)->find("item"), make_id(0), {}, RawValue{sample}).body;
    FJORD_CHECK(body.ends_with(sample));
    body_frame_ = body.substr(0, body.size() - payload_bytes_);
    if (body.size() == wanted) break;
  }
  document_bytes_ = kHeaderBytes + wanted;

  Random random(seed);
  pool_.resize(kPoolBytes);
  for (std::size_t at = 0; at < kPoolBytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random.next();
    std::memcpy(pool_.data() + at, &word, sizeof(word));
  }
  for (std::uint64_t n = 0; n < documents; ++n) {
    const Result<DocumentId> id = DocumentId::parse(make_id(n));
    FJORD_CHECK_MSG(id.has_value(), id.status().to_string());
    gids_.push_back(id->gid());
    FJORD_CHECK(id->bucket(kBucketBits) == key(n).bucket);
  }
  for (unsigned version = 0; version < kVersions; ++version) versions_[version] = make_version(version);
}

Corpus::Version Corpus::make_version(unsigned version) const {
  const DocumentType& type = *selection_.types->find("item");
  const std::size_t fixed = encode_item(type, "id:bench:item:n=0:0", {}, {}).header.size() + kTitleBytes;
  Version made;
  made.headers.reserve(documents() * kHeaderBytes);
  std::string body = body_frame_;
  for (std::uint64_t n = 0; n < documents(); ++n) {
    const std::string id = make_id(n);
    Random random(mix64(mix64(seed_, n), version));
    const auto percent = static_cast<std::int32_t>(random.below(100));
    const std::size_t note = kHeaderBytes - fixed - (id.size() - std::string_view("id:bench:item:n=0:0").size());
    HeaderFields fields{.version = static_cast<std::int32_t>(version),
                        .percent = percent,
                        .title = random_text(random, kTitleBytes),
                        .note = random_text(random, note)};
    const std::string header = encode_item(type, id, std::move(fields), {}).header;
    FJORD_CHECK(header.size() == kHeaderBytes);
    made.headers.insert(made.headers.end(), header.begin(), header.end());
    body.resize(body_frame_.size());
    body.append(payload(n, version));
    made.fingerprints.push_back(fingerprint(gids_[n], timestamp(n, version), header, body));
    made.selected.push_back(percent == 42);
  }
  return made;
}

std::string Corpus::make_id(std::uint64_t n) const { return fmt::format("id:bench:item:n={}:{}", n % kBuckets, n); }

std::string_view Corpus::header(std::uint64_t n, unsigned version) const {
  return {versions_[version].headers.data() + n * kHeaderBytes, kHeaderBytes};
}

std::string_view Corpus::payload(std::uint64_t n, unsigned version) const {
  const std::uint64_t at = mix64(mix64(seed_, n), ~std::uint64_t{version}) % (kPoolBytes - payload_bytes_);
  return std::string_view(pool_).substr(at, payload_bytes_);
}

Timestamp Corpus::timestamp(std::uint64_t n, unsigned version) const {
  return Timestamp{kFirstTimestampUs + version * documents() + n};
}

Totals Corpus::expected(unsigned version, std::span<const std::uint32_t> numbers) const {
  Totals totals{.documents = numbers.size(), .bytes = numbers.size() * document_bytes_};
  for (const std::uint32_t n : numbers) totals.fingerprints += versions_[version].fingerprints[n];
  return totals;
}

Totals Corpus::expected_selected(unsigned version) const {
  std::vector<std::uint32_t> numbers;
  for (const std::uint32_t n : in_order()) {
    if (versions_[version].selected[n]) numbers.push_back(n);
  }
  return expected(version, numbers);
}

std::vector<std::uint32_t> Corpus::in_order() const {
  std::vector<std::uint32_t> numbers(documents());
  std::iota(numbers.begin(), numbers.end(), 0U);
  return numbers;
}

std::vector<std::uint32_t> Corpus::shuffled(std::uint64_t stream) const {
  std::vector<std::uint32_t> numbers = in_order();
  Random random(mix64(seed_, stream));
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random.below(i)]);
  return numbers;
}

std::span<const EngineWrite> CorpusBatch::puts(std::span<const std::uint32_t> numbers, unsigned version) {
  // The writes hold views into bytes_, which therefore must not grow later.
  bytes_.clear();
  bytes_.reserve(numbers.size() * (StoredForm::kPrefixBytes + corpus_->document_bytes()));
  ids_.clear();
  writes_.clear();
  for (const std::uint32_t n : numbers) ids_.push_back(corpus_->make_id(n));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint32_t n = numbers[i];
    const std::size_t begin = bytes_.size();
    const Timestamp timestamp = corpus_->timestamp(n, version);
    StoredForm::append(bytes_, timestamp, corpus_->header(n, version), corpus_->body_frame_);
    bytes_.append(corpus_->payload(n, version));
    const std::string_view stored = std::string_view(bytes_).substr(begin);
    writes_.push_back({.bucket = corpus_->key(n).bucket,
                       .gid = corpus_->key(n).gid,
                       .timestamp = timestamp,
                       .id = ids_[i],
                       .header = stored.substr(StoredForm::kPrefixBytes, kHeaderBytes),
                       .body = stored.substr(StoredForm::kPrefixBytes + kHeaderBytes),
                       .stored = stored});
  }
  return writes_;
}

std::span<const EngineWrite> CorpusBatch::removes(std::span<const std::uint32_t> numbers) {
  ids_.clear();
  writes_.clear();
  for (const std::uint32_t n : numbers) ids_.push_back(corpus_->make_id(n));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    writes_.push_back({.bucket = corpus_->key(numbers[i]).bucket,
                       .gid = corpus_->key(numbers[i]).gid,
                       .timestamp = corpus_->timestamp(numbers[i], Corpus::kVersions),
                       .id = ids_[i],
                       .header = {},
                       .body = {},
                       .stored = {}});
  }
  return writes_;
}

}  // namespace fjord::bench
