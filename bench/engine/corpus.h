#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine_under_test.h"

namespace fjord::bench {

/// Returns the sum of one word of every cache line of a part: the least work of a reader that looks at all of it.
std::uint64_t touch(std::string_view part);
/// Returns a hash of a document, over one word of every cache line of its bytes. Sums of fingerprints do not depend on
/// the order of the documents.
std::uint64_t fingerprint(const GlobalId& gid, Timestamp timestamp, std::string_view header, std::string_view body);

/// The sums over the documents that an iteration has to return, or did return.
struct Totals {
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;  ///< Bytes of headers and bodies.
  std::uint64_t fingerprints = 0;

  void add(const EngineDocument& document) {
    ++documents;
    bytes += document.header.size() + document.body.size();
    fingerprints += fingerprint(document.gid, document.timestamp, document.header, document.body);
  }
  friend bool operator==(const Totals&, const Totals&) = default;
};

/// The documents of a benchmark: number n in version v depends only on the seed, n and v. They lie in ten buckets and
/// have headers of 200 bytes in valid wire form and bodies of random bytes, which no engine can compress.
///
/// Holds the headers of both versions in memory; bodies are parts of one pool of random bytes.
class Corpus {
 public:
  static constexpr unsigned kVersions = 2;  ///< The version that is put, and the one that overwrites it.
  static constexpr unsigned kBuckets = 10;
  static constexpr unsigned kBucketBits = 4;

  Corpus(DocumentSize size, std::uint64_t documents, std::uint64_t seed);

  DocumentSize size() const { return size_; }
  std::uint64_t documents() const { return gids_.size(); }
  std::uint64_t document_bytes() const { return document_bytes_; }
  std::uint64_t bytes() const { return documents() * document_bytes_; }
  /// Returns the selection, by a field of the header, that matches one document of a hundred.
  const EngineSelection& selection() const { return selection_; }

  EngineKey key(std::uint64_t n) const { return {BucketId(kBucketBits, n % kBuckets), gids_[n]}; }
  std::uint64_t expected_fingerprint(std::uint64_t n, unsigned version) const {
    return versions_[version].fingerprints[n];
  }
  Totals expected(unsigned version, std::span<const std::uint32_t> numbers) const;
  Totals expected_selected(unsigned version) const;

  /// Returns all numbers in random order; each `stream` has another order.
  std::vector<std::uint32_t> shuffled(std::uint64_t stream) const;
  std::vector<std::uint32_t> in_order() const;

 private:
  friend class CorpusBatch;

  struct Version {
    std::vector<char> headers;
    std::vector<std::uint64_t> fingerprints;
    std::vector<bool> selected;
  };

  Version make_version(unsigned version) const;
  std::string make_id(std::uint64_t n) const;
  std::string_view header(std::uint64_t n, unsigned version) const;
  std::string_view payload(std::uint64_t n, unsigned version) const;
  Timestamp timestamp(std::uint64_t n, unsigned version) const;
  std::size_t body_bytes() const { return body_frame_.size() + payload_bytes_; }

  DocumentSize size_;
  std::uint64_t seed_;
  std::uint64_t document_bytes_ = 0;
  std::size_t payload_bytes_ = 0;
  std::string body_frame_;  // Bytes before the payload in each body.
  std::string pool_;
  EngineSelection selection_;
  std::vector<GlobalId> gids_;
  Version versions_[kVersions];
};

/// Makes the writes of one batch, in memory that the next batch reuses.
class CorpusBatch {
 public:
  explicit CorpusBatch(const Corpus& corpus) : corpus_(&corpus) {}

  /// Makes the puts of these documents; valid until the next call.
  std::span<const EngineWrite> puts(std::span<const std::uint32_t> numbers, unsigned version);
  std::span<const EngineWrite> removes(std::span<const std::uint32_t> numbers);

 private:
  const Corpus* corpus_;
  std::string bytes_;
  std::vector<std::string> ids_;
  std::vector<EngineWrite> writes_;
};

}  // namespace fjord::bench
