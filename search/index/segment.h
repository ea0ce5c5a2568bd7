#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/coding.h"
#include "fjord/common/env.h"
#include "fjord/search/index_store.h"
#include "list_cache.h"
#include "page_file.h"
#include "segment_format.h"

namespace fjord::search {

/// Order of documents in a segment: that of the bucket tree, so that a bucket is a range of numbers.
using DocumentKey = std::pair<std::uint64_t, GlobalId>;
DocumentKey document_key(const GlobalId& gid);
std::string_view first_word_of(std::string_view words);

/// The two lists of documents of a segment. A document's number is its place in its list.
enum class DocumentList : std::size_t { Keywords = 0, Members = 1 };
inline constexpr std::array<DocumentList, 2> kDocumentLists{DocumentList::Keywords, DocumentList::Members};

/// The part of a keyword that a search reads to decide whether it matches, as it lies in a posting list.
struct Posting {
  std::uint32_t number = 0;
  KeywordEntry keyword;
};
void append_posting(std::string& out, const Posting& posting);
/// Calls `sink` with the postings of a list. Returns false if the list is malformed.
template <typename Sink>
bool for_each_posting(std::string_view list, Sink&& sink);

/// The rest of a document, as it lies in a run.
struct StoredDocument {
  GlobalId gid;
  IndexRole role = IndexRole::None;
  std::uint64_t group = 0;
  std::string_view payload = {};
};
void append_document(std::string& out, const StoredDocument& document);

/// The set of numbers of dead documents of a list: they were removed, written again, or their bucket went away.
class DeadNumbers {
 public:
  explicit DeadNumbers(std::uint32_t size) : words_((size + 63) / 64) {}
  bool contains(std::uint32_t number) const { return (words_[number / 64] >> number % 64 & 1) != 0; }
  void add(std::uint32_t number);
  std::uint32_t count() const { return count_; }
  std::string bytes() const;
  /// Returns false if the bytes have another size than this set.
  bool set_bytes(std::string_view bytes);

 private:
  std::vector<std::uint64_t> words_;
  std::uint32_t count_ = 0;
};

/// The places of the parts of a segment. It is in memory while the segment is open.
struct SegmentDirectory {
  struct Word {
    std::string word;
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };
  /// Documents that are read together.
  struct Run {
    DocumentKey first;
    std::uint64_t offset = 0;
    std::uint32_t number = 0;  ///< Number of the first document in the run.
  };
  struct Documents {
    std::uint32_t count = 0;
    std::uint64_t end = 0;  ///< Offset behind the last run.
    std::vector<Run> runs;
    std::vector<std::uint8_t> filter;  ///< Bloom filter of the gids.

    void add_to_filter(const GlobalId& gid);
    bool may_contain(const GlobalId& gid) const;
  };
  std::array<Documents, 2> documents;
  std::vector<Word> words;  ///< The words of the segment, sorted.

  Documents& of(DocumentList list) { return documents[static_cast<std::size_t>(list)]; }
  const Documents& of(DocumentList list) const { return documents[static_cast<std::size_t>(list)]; }
  std::string encode() const;
  /// Reads what encode() wrote. Errors: Corruption.
  static Result<SegmentDirectory> decode(std::string_view bytes, std::uint64_t offset_of_directory);
};

/// The place of a segment, as the manifest has it.
struct SegmentPlace {
  std::uint64_t number = 0;
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_bytes = 0;
};
std::string segment_path(const std::string& directory, std::uint64_t number);

/// Writes a segment: the documents of both lists by rising key, then posting lists by rising word, then finish().
class SegmentWriter {
 public:
  /// `documents`: the most documents that will be added, which decides the size of the filters.
  static Result<std::unique_ptr<SegmentWriter>> create(Env& env, const std::string& directory, std::uint64_t number,
                                                       std::array<std::uint64_t, 2> documents);
  /// Returns the document's number.
  Result<std::uint32_t> add(DocumentList list, const StoredDocument& document);
  Status add_word(std::string_view word, std::string_view list);
  Result<SegmentPlace> finish();
  std::uint64_t size() const { return file_->size(); }

 private:
  SegmentWriter(std::unique_ptr<PageFileWriter> file, std::uint64_t number) : file_(std::move(file)), number_(number) {}

  std::unique_ptr<PageFileWriter> file_;
  std::uint64_t number_;
  SegmentDirectory directory_;
};

/// Counts of the work of an index, kept by its owner.
struct IndexCounts {
  std::uint64_t list_hits = 0;
  std::uint64_t list_misses = 0;
  std::uint64_t list_pages = 0;       ///< Pages of the lists that were used, read or not.
  std::uint64_t list_pages_read = 0;  ///< Pages of the lists that were read.
  std::uint64_t pages_read = 0;
  std::uint64_t segments_written = 0;
  std::uint64_t segments_merged = 0;
  std::uint64_t times_lost = 0;  ///< Number of times that the whole index was emptied because a file was missing or
                                 ///< damaged.
};

/// An open segment, immutable except for the set of dead documents. Format: search/index/FORMAT.md.
///
/// Threading: confined to its owner. Lifetime: cache and counts outlive it.
class Segment {
 public:
  struct Found {
    std::uint32_t number = 0;
    StoredDocument document;
    ListCache::Bytes run;  ///< Keeps the payload alive.
  };

  /// Errors: NotFound, Corruption, those of the file.
  static Result<std::unique_ptr<Segment>> open(Env& env, const std::string& directory, const SegmentPlace& place,
                                               ListCache& cache, IndexCounts& counts);

  const SegmentPlace& place() const { return place_; }
  const SegmentDirectory& directory() const { return directory_; }
  DeadNumbers& dead(DocumentList list) { return dead_[static_cast<std::size_t>(list)]; }
  const DeadNumbers& dead(DocumentList list) const { return dead_[static_cast<std::size_t>(list)]; }
  std::uint64_t documents() const;
  std::uint64_t dead_documents() const;

  /// Calls `sink` with the keywords of a word that are alive.
  Status for_each_keyword(std::string_view word, const std::function<void(const KeywordEntry&)>& sink) const;
  /// For reading lists and runs in the order of the directory, without the cache.
  PageStream stream() const { return PageStream(file_, place_.directory_offset); }
  /// Reads the posting list of the word at this place of the directory. It is valid until the stream reads again.
  Result<std::string_view> read_list(PageStream& stream, std::size_t word) const;
  /// The same for the run at this place of the directory.
  Result<std::string_view> read_run(PageStream& stream, DocumentList list, std::size_t run) const;
  /// Returns the number of pages of the word's posting list; 0 if there is none.
  std::uint64_t pages_of(std::string_view word) const;
  /// Returns the document with this gid, if it is alive.
  Result<std::optional<Found>> find(DocumentList list, const GlobalId& gid) const;
  /// Calls `sink` with all documents from `from` to before `end_position`, dead ones included.
  Status for_each_in(DocumentList list, const DocumentKey& from, std::uint64_t end_position,
                     const std::function<void(const Found&)>& sink) const;
  /// Marks the documents of the positions from `begin` to before `end` as dead.
  Status kill_positions(std::uint64_t begin, std::uint64_t end);

 private:
  Segment(PageFile file, const SegmentPlace& place, SegmentDirectory directory, ListCache& cache, IndexCounts& counts);
  /// Returns the number of documents with a smaller key.
  Result<std::uint32_t> count_before(DocumentList list, const DocumentKey& key) const;
  std::size_t run_of(DocumentList list, const DocumentKey& key) const;
  /// Returns the offset and the bytes of the run at this place of the directory.
  std::pair<std::uint64_t, std::size_t> place_of_run(DocumentList list, std::size_t run) const;
  Result<ListCache::Bytes> run(DocumentList list, std::size_t run) const;
  /// Returns the entry of a word in the directory; null if there is none.
  const SegmentDirectory::Word* find_word(std::string_view word) const;
  Result<ListCache::Bytes> read(std::uint64_t offset, std::size_t bytes, affinity::WordId word) const;

  PageFile file_;
  SegmentPlace place_;
  SegmentDirectory directory_;
  std::array<DeadNumbers, 2> dead_;
  ListCache& cache_;
  IndexCounts& counts_;
};

/// Calls `sink` with the documents of a run. Returns false if the run is malformed.
bool for_each_document(std::string_view run, const std::function<bool(const StoredDocument&)>& sink);

inline constexpr std::size_t kPostingHeadBytes = 4 + 8 + 1 + kGidBytes + 4;

template <typename Sink>
bool for_each_posting(std::string_view list, Sink&& sink) {
  while (!list.empty()) {
    if (list.size() < kPostingHeadBytes) return false;
    const char* at = list.data();
    const auto length = load_fixed<std::uint32_t>(at + kPostingHeadBytes - 4);
    if (list.size() - kPostingHeadBytes < length) return false;
    Posting posting;
    posting.number = load_fixed<std::uint32_t>(at);
    posting.keyword = {.gid = GlobalId::from_bytes({at + 13, kGidBytes}),
                       .group = load_fixed<std::uint64_t>(at + 4),
                       .kind = static_cast<MatchKind>(at[12]),
                       .words = list.substr(kPostingHeadBytes, length)};
    sink(posting);
    list.remove_prefix(kPostingHeadBytes + length);
  }
  return true;
}

}  // namespace fjord::search
