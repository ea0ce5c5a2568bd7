#include "segment.h"

#include <algorithm>

namespace fjord::search {
namespace {

Status malformed_part(const SegmentPlace& place, std::string_view what) {
  return {StatusCode::Corruption,
          "segment " + std::to_string(place.number) + " of the keyword index: " + std::string(what) + " is malformed"};
}

}  // namespace

DocumentKey document_key(const GlobalId& gid) { return {bucket_of(gid, BucketId::kUsedBitsMax).position(), gid}; }

std::string_view first_word_of(std::string_view words) { return words.substr(0, words.find(' ')); }

std::string segment_path(const std::string& directory, std::uint64_t number) {
  return directory + "/" + std::to_string(number) + ".segment";
}

void append_posting(std::string& out, const Posting& posting) {
  put_fixed(out, posting.number);
  put_fixed(out, posting.keyword.group);
  out.push_back(static_cast<char>(posting.keyword.kind));
  out += posting.keyword.gid.view();
  put_fixed(out, static_cast<std::uint32_t>(posting.keyword.words.size()));
  out += posting.keyword.words;
}

void append_document(std::string& out, const StoredDocument& document) {
  out += document.gid.view();
  out.push_back(static_cast<char>(document.role));
  put_varint(out, document.group);
  put_string(out, document.payload);
}

bool for_each_document(std::string_view run, const std::function<bool(const StoredDocument&)>& sink) {
  ByteReader in(run);
  while (in.remaining() != 0) {
    const std::string_view gid = in.bytes(kGidBytes);
    const auto role = in.fixed<std::uint8_t>();
    const std::uint64_t group = in.varint();
    const std::string_view payload = in.string();
    if (!in.ok()) return false;
    const StoredDocument document{
        .gid = GlobalId::from_bytes(gid), .role = static_cast<IndexRole>(role), .group = group, .payload = payload};
    if (!sink(document)) return true;
  }
  return in.ok();
}

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::create(Env& env, const std::string& directory,
                                                             std::uint64_t number,
                                                             std::array<std::uint64_t, 2> documents) {
  FJORD_TRY_ASSIGN(auto file, PageFileWriter::create(env, segment_path(directory, number), number));
  std::string header;
  put_fixed(header, kSegmentMagic);
  put_fixed(header, kIndexFormatVersion);
  put_fixed(header, number);
  FJORD_TRY(file->append(header));
  std::unique_ptr<SegmentWriter> writer(new SegmentWriter(std::move(file), number));
  for (std::size_t i = 0; i < documents.size(); ++i) {
    writer->directory_.documents[i].filter.resize(documents[i] * kFilterBitsPerKey / 8 + 1);
  }
  return writer;
}

Result<std::uint32_t> SegmentWriter::add(DocumentList list, const StoredDocument& document) {
  SegmentDirectory::Documents& documents = directory_.of(list);
  if (documents.runs.empty() || size() - documents.runs.back().offset >= kRunBytes) {
    documents.runs.push_back({document_key(document.gid), size(), documents.count});
  }
  documents.add_to_filter(document.gid);
  std::string bytes;
  append_document(bytes, document);
  FJORD_TRY(file_->append(bytes));
  documents.end = size();
  return documents.count++;
}

Status SegmentWriter::add_word(std::string_view word, std::string_view list) {
  directory_.words.push_back({std::string(word), size(), static_cast<std::uint32_t>(list.size())});
  return file_->append(list);
}

Result<SegmentPlace> SegmentWriter::finish() {
  std::uint64_t end = kSegmentHeaderBytes;
  for (SegmentDirectory::Documents& documents : directory_.documents) {
    end = documents.end = std::max(documents.end, end);
  }
  SegmentPlace place{.number = number_, .directory_offset = size()};
  const std::string directory = directory_.encode();
  place.directory_bytes = directory.size();
  FJORD_TRY(file_->append(directory));
  FJORD_TRY(file_->finish());
  return place;
}

Segment::Segment(PageFile file, const SegmentPlace& place, SegmentDirectory directory, ListCache& cache,
                 IndexCounts& counts)
    : file_(std::move(file)),
      place_(place),
      directory_(std::move(directory)),
      dead_{DeadNumbers(directory_.documents[0].count), DeadNumbers(directory_.documents[1].count)},
      cache_(cache),
      counts_(counts) {}

Result<std::unique_ptr<Segment>> Segment::open(Env& env, const std::string& directory, const SegmentPlace& place,
                                               ListCache& cache, IndexCounts& counts) {
  FJORD_TRY_ASSIGN(auto opened, env.open_random_access(segment_path(directory, place.number)));
  FJORD_TRY_ASSIGN(const std::uint64_t file_bytes, opened->size());
  if (place.directory_offset > file_bytes || place.directory_bytes > file_bytes)
    return malformed_part(place, "its place");
  PageFile file(std::move(opened), place.number);
  FJORD_TRY_ASSIGN(const std::string header, file.read(0, kSegmentHeaderBytes));
  ByteReader in(header);
  const bool is_segment = in.fixed<std::uint32_t>() == kSegmentMagic;
  if (!is_segment || in.fixed<std::uint16_t>() != kIndexFormatVersion || in.fixed<std::uint64_t>() != place.number) {
    return malformed_part(place, "its header");
  }
  FJORD_TRY_ASSIGN(const std::string bytes,
                   file.read(place.directory_offset, static_cast<std::size_t>(place.directory_bytes)));
  FJORD_TRY_ASSIGN(SegmentDirectory decoded, SegmentDirectory::decode(bytes, place.directory_offset));
  return std::unique_ptr<Segment>(new Segment(std::move(file), place, std::move(decoded), cache, counts));
}

std::uint64_t Segment::documents() const {
  return std::uint64_t{directory_.documents[0].count} + directory_.documents[1].count;
}

std::uint64_t Segment::dead_documents() const { return std::uint64_t{dead_[0].count()} + dead_[1].count(); }

Result<ListCache::Bytes> Segment::read(std::uint64_t offset, std::size_t bytes, affinity::WordId word) const {
  const ListCache::Key key{place_.number, offset};
  const std::uint64_t pages = PageFile::pages(offset, bytes);
  counts_.list_pages += word != 0 ? pages : 0;
  if (ListCache::Bytes cached = cache_.find(key)) {
    counts_.list_hits += word != 0 ? 1 : 0;
    return cached;
  }
  counts_.list_misses += word != 0 ? 1 : 0;
  counts_.list_pages_read += word != 0 ? pages : 0;
  counts_.pages_read += pages;
  FJORD_TRY_ASSIGN(std::string content, file_.read(offset, bytes));
  auto shared = std::make_shared<const std::string>(std::move(content));
  cache_.add(key, shared, word);
  return ListCache::Bytes(std::move(shared));
}

const SegmentDirectory::Word* Segment::find_word(std::string_view word) const {
  const auto at = std::lower_bound(directory_.words.begin(), directory_.words.end(), word,
                                   [](const SegmentDirectory::Word& a, std::string_view b) { return a.word < b; });
  return at == directory_.words.end() || at->word != word ? nullptr : &*at;
}

std::uint64_t Segment::pages_of(std::string_view word) const {
  const SegmentDirectory::Word* at = find_word(word);
  return at == nullptr ? 0 : PageFile::pages(at->offset, at->bytes);
}

Status Segment::for_each_keyword(std::string_view word, const std::function<void(const KeywordEntry&)>& sink) const {
  const SegmentDirectory::Word* at = find_word(word);
  if (at == nullptr) return Status::ok();
  FJORD_TRY_ASSIGN(const ListCache::Bytes list, read(at->offset, at->bytes, ListCache::word_id(word)));
  const DeadNumbers& gone = dead(DocumentList::Keywords);
  const std::uint32_t count = directory_.of(DocumentList::Keywords).count;
  bool in_range = true;
  const bool is_whole = for_each_posting(*list, [&](const Posting& posting) {
    in_range = in_range && posting.number < count;
    if (in_range && !gone.contains(posting.number)) sink(posting.keyword);
  });
  return is_whole && in_range ? Status::ok() : malformed_part(place_, "a posting list");
}

Result<std::string_view> Segment::read_list(PageStream& stream, std::size_t word) const {
  const SegmentDirectory::Word& one = directory_.words[word];
  return stream.read(one.offset, one.bytes);
}

std::pair<std::uint64_t, std::size_t> Segment::place_of_run(DocumentList list, std::size_t run) const {
  const SegmentDirectory::Documents& documents = directory_.of(list);
  const std::uint64_t offset = documents.runs[run].offset;
  const std::uint64_t end = run + 1 < documents.runs.size() ? documents.runs[run + 1].offset : documents.end;
  return {offset, static_cast<std::size_t>(end - offset)};
}

Result<std::string_view> Segment::read_run(PageStream& stream, DocumentList list, std::size_t run) const {
  const auto [offset, bytes] = place_of_run(list, run);
  return stream.read(offset, bytes);
}

Result<ListCache::Bytes> Segment::run(DocumentList list, std::size_t run) const {
  const auto [offset, bytes] = place_of_run(list, run);
  return read(offset, bytes, 0);
}

std::size_t Segment::run_of(DocumentList list, const DocumentKey& key) const {
  const auto& runs = directory_.of(list).runs;
  const auto behind = std::upper_bound(
      runs.begin(), runs.end(), key, [](const DocumentKey& a, const SegmentDirectory::Run& b) { return a < b.first; });
  return behind == runs.begin() ? 0 : static_cast<std::size_t>(behind - runs.begin()) - 1;
}

Result<std::optional<Segment::Found>> Segment::find(DocumentList list, const GlobalId& gid) const {
  const SegmentDirectory::Documents& documents = directory_.of(list);
  if (documents.count == 0 || !documents.may_contain(gid)) return std::optional<Found>();
  const std::size_t at = run_of(list, document_key(gid));
  FJORD_TRY_ASSIGN(const ListCache::Bytes bytes, run(list, at));
  std::optional<Found> found;
  std::uint32_t number = documents.runs[at].number;
  const bool is_whole = for_each_document(*bytes, [&](const StoredDocument& document) {
    if (document.gid == gid) found = Found{number, document, bytes};
    ++number;
    return !found;
  });
  if (!is_whole || number > documents.count) return malformed_part(place_, "a run of documents");
  if (found && dead(list).contains(found->number)) found.reset();
  return found;
}

Status Segment::for_each_in(DocumentList list, const DocumentKey& from, std::uint64_t end_position,
                            const std::function<void(const Found&)>& sink) const {
  const SegmentDirectory::Documents& documents = directory_.of(list);
  bool at_end = documents.count == 0;
  for (std::size_t i = at_end ? 0 : run_of(list, from); !at_end && i < documents.runs.size(); ++i) {
    if (documents.runs[i].first.first >= end_position) break;
    FJORD_TRY_ASSIGN(const ListCache::Bytes bytes, run(list, i));
    std::uint32_t number = documents.runs[i].number;
    const bool is_whole = for_each_document(*bytes, [&](const StoredDocument& document) {
      const DocumentKey key = document_key(document.gid);
      at_end = key.first >= end_position || number >= documents.count;
      if (!at_end && key >= from) sink({number, document, bytes});
      ++number;
      return !at_end;
    });
    if (!is_whole) return malformed_part(place_, "a run of documents");
  }
  return Status::ok();
}

Result<std::uint32_t> Segment::count_before(DocumentList list, const DocumentKey& key) const {
  const SegmentDirectory::Documents& documents = directory_.of(list);
  if (documents.count == 0) return std::uint32_t{0};
  const std::size_t at = run_of(list, key);
  FJORD_TRY_ASSIGN(const ListCache::Bytes bytes, run(list, at));
  std::uint32_t number = documents.runs[at].number;
  const bool is_whole = for_each_document(*bytes, [&](const StoredDocument& document) {
    const bool is_before = document_key(document.gid) < key;
    number += is_before ? 1 : 0;
    return is_before;
  });
  if (!is_whole || number > documents.count) return malformed_part(place_, "a run of documents");
  return number;
}

Status Segment::kill_positions(std::uint64_t begin, std::uint64_t end) {
  for (const DocumentList list : kDocumentLists) {
    FJORD_TRY_ASSIGN(const std::uint32_t first, count_before(list, {begin, GlobalId{}}));
    FJORD_TRY_ASSIGN(const std::uint32_t behind, count_before(list, {end, GlobalId{}}));
    for (std::uint32_t number = first; number < behind; ++number) dead(list).add(number);
  }
  return Status::ok();
}

}  // namespace fjord::search
