#include "disk_index.h"

#include <algorithm>
#include <utility>

#include "fjord/common/log.h"
#include "manifest.h"

namespace fjord::search {
namespace {

constexpr unsigned kPauseMax = 1024;
/// While writes are refused, a file is tried again sooner.
constexpr unsigned kPauseFull = 16;

std::string manifest_path(const std::string& directory) { return directory + "/manifest"; }

struct WordPosting {
  std::string_view word;
  Posting posting;
};

/// A member of a group, and the bytes that hold its payload.
struct Member {
  GlobalId gid;
  IndexRole role = IndexRole::None;
  std::string_view payload;
};

}  // namespace

IndexMetrics::IndexMetrics(MetricRegistry& registry)
    : list_hits(registry.counter("fjord_search_index_list_hits_total", "Posting lists found in the cache")),
      list_misses(registry.counter("fjord_search_index_list_misses_total", "Posting lists read from files")),
      pages_read(registry.counter("fjord_search_index_pages_read_total", "Pages of segments read for searches")),
      segments_written(
          registry.counter("fjord_search_index_segments_written_total", "Segments written with new documents")),
      segments_merged(registry.counter("fjord_search_index_merges_total", "Merges of segments")),
      lost(registry.counter("fjord_search_index_lost_total",
                            "Indexes made again because a file was missing or damaged")) {}

DiskIndex::DiskIndex(Env& env, const DiskIndexOptions& options)
    : env_(env), options_(options), cache_({.bytes_max = options.cache_bytes}) {
  if (options_.cache_limits) cache_.set_limits(options_.cache_limits());
}

DiskIndex::~DiskIndex() = default;

Result<std::unique_ptr<DiskIndex>> DiskIndex::open(Env& env, const DiskIndexOptions& options, MetricRegistry* metrics) {
  std::unique_ptr<DiskIndex> index(new DiskIndex(env, options));
  if (metrics != nullptr) index->metrics_.emplace(*metrics);
  FJORD_TRY(env.create_directories(options.directory));
  const Status loaded = index->load();
  if (!loaded && loaded.code() != StatusCode::NotFound) {
    // Without a label the owner indexes everything anyway, so take_lost() does not report the loss.
    index->lose(loaded);
    index->label_.clear();
    index->lost_ = false;
  }
  FJORD_TRY(index->remove_strangers());
  return index;
}

Status DiskIndex::load() {
  FJORD_TRY_ASSIGN(const bool exists, env_.exists(manifest_path(options_.directory)));
  if (!exists) return {StatusCode::NotFound, "the keyword index is new"};
  FJORD_TRY_ASSIGN(const std::string bytes, read_file(env_, manifest_path(options_.directory)));
  FJORD_TRY_ASSIGN(const Manifest manifest, Manifest::decode(bytes));
  next_number_ = manifest.next_number;
  for (const Manifest::OneSegment& one : manifest.segments) {
    auto opened = Segment::open(env_, options_.directory, one.place, cache_, counts_);
    if (!opened) return {StatusCode::Corruption, opened.error().to_string()};
    for (const DocumentList list : kDocumentLists) {
      if (!(*opened)->dead(list).set_bytes(one.dead[static_cast<std::size_t>(list)])) {
        return {StatusCode::Corruption, "the manifest of the keyword index does not fit a segment"};
      }
    }
    segments_.push_back(std::move(*opened));
  }
  label_ = manifest.label;
  checksums_ = manifest.checksums;
  return kill_unknown();
}

Status DiskIndex::kill_unknown() {
  std::map<std::uint64_t, std::uint64_t> known;  // Ranges of positions: end by begin.
  for (const auto& [bucket, checksum] : checksums_) known[bucket.position()] = bucket.position() + bucket.span();
  known[BucketId().span()] = BucketId().span();
  std::uint64_t behind = 0;
  for (const auto& [begin, end] : known) {
    if (begin > behind) {
      for (const auto& segment : segments_) FJORD_TRY(segment->kill_positions(behind, begin));
    }
    behind = std::max(behind, end);
  }
  return Status::ok();
}

Status DiskIndex::remove_strangers() {
  FJORD_TRY_ASSIGN(const std::vector<std::string> names, env_.list_directory(options_.directory));
  for (const std::string& name : names) {
    const std::string path = options_.directory + "/" + name;
    const bool belongs = path == manifest_path(options_.directory) ||
                         (merge_ != nullptr && path == segment_path(options_.directory, merge_number_)) ||
                         std::any_of(segments_.begin(), segments_.end(), [&](const auto& segment) {
                           return path == segment_path(options_.directory, segment->place().number);
                         });
    if (!belongs) FJORD_TRY(env_.remove_file(path));
  }
  return Status::ok();
}

void DiskIndex::put(IndexedDocument document) {
  pinned_.clear();
  kills_.emplace_back(document.gid);
  recent_.put(std::move(document));
}

void DiskIndex::remove(const GlobalId& gid) {
  pinned_.clear();
  kills_.emplace_back(gid);
  recent_.remove(gid);
}

void DiskIndex::remove_bucket(BucketId bucket) {
  pinned_.clear();
  checksums_.erase(bucket);
  kills_.emplace_back(bucket);
  recent_.remove_bucket(bucket);
}

void DiskIndex::merge_delta() {
  pinned_.clear();
  for (const Kill& one : kills_) {
    // A failure counts as damage: otherwise searches would find a removed document, and nothing would ever remove it.
    if (const Status killed = kill(one); !killed && damage_) damage_ = killed;
  }
  kills_.clear();
  recent_.merge_delta();
}

Status DiskIndex::kill(const Kill& kill) {
  for (const auto& segment : segments_) {
    if (const auto* bucket = std::get_if<BucketId>(&kill)) {
      FJORD_TRY(segment->kill_positions(bucket->position(), bucket->position() + bucket->span()));
      continue;
    }
    for (const DocumentList list : kDocumentLists) {
      FJORD_TRY_ASSIGN(const auto found, segment->find(list, std::get<GlobalId>(kill)));
      if (found) segment->dead(list).add(found->number);
    }
  }
  return Status::ok();
}

Status DiskIndex::noted(const Status& status) const {
  if (status.code() == StatusCode::Corruption && damage_) damage_ = status;
  return status;
}

std::string_view DiskIndex::pin(const ListCache::Bytes& bytes, std::string_view view) const {
  pinned_.insert(bytes);
  return view;
}

Status DiskIndex::for_each_keyword(std::string_view word, const std::function<void(const KeywordEntry&)>& sink) const {
  FJORD_TRY(damage_);
  FJORD_TRY(recent_.for_each_keyword(word, sink));
  for (const auto& segment : segments_) FJORD_TRY(noted(segment->for_each_keyword(word, sink)));
  return Status::ok();
}

Result<std::string_view> DiskIndex::payload_of(const GlobalId& gid) const {
  FJORD_TRY(damage_);
  if (const auto recent = recent_.payload_of(gid)) return *recent;
  for (const DocumentList list : kDocumentLists) {
    for (const auto& segment : segments_) {
      const auto found = segment->find(list, gid);
      if (!found) return noted(found.error());
      if (*found) return pin((*found)->run, (*found)->document.payload);
    }
  }
  return Status(StatusCode::NotFound, gid.to_string() + " is not in the index");
}

Status DiskIndex::for_each_of_group(
    std::uint64_t group, const std::function<void(const GlobalId&, IndexRole, std::string_view)>& sink) const {
  FJORD_TRY(damage_);
  std::vector<Member> members;
  FJORD_TRY(recent_.for_each_of_group(group, [&](const GlobalId& gid, IndexRole role, std::string_view payload) {
    members.push_back({gid, role, payload});
  }));
  // The documents of a group have one location, so they lie together.
  const BucketId location(32, static_cast<std::uint32_t>(group));
  for (const auto& segment : segments_) {
    const DeadNumbers& dead = segment->dead(DocumentList::Members);
    FJORD_TRY(noted(segment->for_each_in(
        DocumentList::Members, {location.position(), GlobalId{}}, location.position() + location.span(),
        [&](const Segment::Found& found) {
          if (found.document.group != group || dead.contains(found.number)) return;
          members.push_back({found.document.gid, found.document.role, pin(found.run, found.document.payload)});
        })));
  }
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.gid < b.gid; });
  for (const Member& member : members) sink(member.gid, member.role, member.payload);
  return Status::ok();
}

void DiskIndex::set_checksum(BucketId bucket, std::uint64_t checksum) {
  // Buckets that were split or joined to make this one no longer exist.
  std::erase_if(checksums_, [&](const auto& one) { return bucket.contains(one.first) || one.first.contains(bucket); });
  checksums_[bucket] = checksum;
}

std::vector<std::pair<BucketId, std::uint64_t>> DiskIndex::checksums() const {
  return {checksums_.begin(), checksums_.end()};
}

void DiskIndex::clear(const std::string& label) {
  pinned_.clear();
  merge_.reset();
  segments_.clear();
  kills_.clear();
  recent_.clear({});
  checksums_.clear();
  label_ = label;
  damage_ = Status::ok();
  manifest_due_ = true;
}

void DiskIndex::lose(const Status& why) {
  log::warning("search", "the index of keywords in {} is made again: {}", options_.directory, why.to_string());
  clear(std::string(label_));
  ++counts_.times_lost;
  lost_ = true;
}

bool DiskIndex::take_lost() { return std::exchange(lost_, false); }

void DiskIndex::tell_metrics() {
  if (!metrics_) return;
  metrics_->list_hits.add(counts_.list_hits - told_.list_hits);
  metrics_->list_misses.add(counts_.list_misses - told_.list_misses);
  metrics_->pages_read.add(counts_.pages_read - told_.pages_read);
  metrics_->segments_written.add(counts_.segments_written - told_.segments_written);
  metrics_->segments_merged.add(counts_.segments_merged - told_.segments_merged);
  metrics_->lost.add(counts_.times_lost - told_.times_lost);
  told_ = counts_;
}

std::uint64_t DiskIndex::pages_of(std::string_view word) const {
  std::uint64_t pages = 0;
  for (const auto& segment : segments_) pages += segment->pages_of(word);
  return pages;
}

IndexStore::Backlog DiskIndex::backlog() const {
  const std::size_t bytes = recent_.document_bytes() + recent_.delta_bytes();
  if (bytes < options_.recent_bytes_max) return Backlog::Small;
  return bytes < options_.memory_bytes_max ? Backlog::Due : Backlog::Full;
}

Result<bool> DiskIndex::maintain() {
  pinned_.clear();
  if (options_.cache_limits) cache_.set_limits(options_.cache_limits());
  tell_metrics();
  if (!damage_) {
    lose(Status(damage_));
    return true;
  }
  if (backlog() == Backlog::Full) pause_ = std::min(pause_, kPauseFull);
  if (pause_ > 0) {
    --pause_;
    return false;
  }
  if (delta_bytes() != 0) return false;
  Result<bool> more = work();
  if (more) {
    next_pause_ = 1;
    return more;
  }
  if (noted(more.error()).code() == StatusCode::Corruption) return true;
  merge_.reset();
  pause_ = next_pause_;
  next_pause_ = std::min(2 * next_pause_, kPauseMax);
  return more;
}

Result<bool> DiskIndex::work() {
  if (manifest_due_ || recent_.document_bytes() >= options_.recent_bytes_max) {
    FJORD_TRY(save());
    return true;
  }
  if (merge_ != nullptr) {
    FJORD_TRY_ASSIGN(const bool more, merge_->step(options_.step_bytes));
    if (!more) FJORD_TRY(finish_merge());
    return true;
  }
  std::vector<Segment*> sources = to_merge();
  if (sources.empty()) return false;
  merge_number_ = next_number_++;
  FJORD_TRY_ASSIGN(merge_, SegmentMerge::begin(env_, options_.directory, merge_number_, std::move(sources)));
  return true;
}

Status DiskIndex::save() {
  if (!recent_.documents().empty()) {
    FJORD_TRY_ASSIGN(const SegmentPlace place, write_segment(next_number_++));
    FJORD_TRY_ASSIGN(auto segment, Segment::open(env_, options_.directory, place, cache_, counts_));
    segments_.push_back(std::move(segment));
    ++counts_.segments_written;
    recent_.clear({});
  }
  FJORD_TRY(write_manifest());
  return remove_strangers();
}

Result<SegmentPlace> DiskIndex::write_segment(std::uint64_t number) {
  const MemoryIndex::Documents& documents = recent_.documents();
  FJORD_TRY_ASSIGN(const auto writer,
                   SegmentWriter::create(env_, options_.directory, number, {documents.size(), documents.size()}));
  std::vector<WordPosting> postings;
  for (const DocumentList list : kDocumentLists) {
    for (const auto& [key, one] : documents) {
      if ((one.role == IndexRole::Keyword) != (list == DocumentList::Keywords)) continue;
      FJORD_TRY_ASSIGN(const std::uint32_t at, writer->add(list, {one.gid, one.role, one.group, one.payload}));
      if (list != DocumentList::Keywords) continue;
      postings.push_back(
          {first_word_of(one.words), {at, {.gid = one.gid, .group = one.group, .kind = one.kind, .words = one.words}}});
    }
  }
  std::stable_sort(postings.begin(), postings.end(),
                   [](const WordPosting& a, const WordPosting& b) { return a.word < b.word; });
  for (std::size_t i = 0; i < postings.size();) {
    const std::string_view word = postings[i].word;
    std::string list;
    for (; i < postings.size() && postings[i].word == word; ++i) append_posting(list, postings[i].posting);
    FJORD_TRY(writer->add_word(word, list));
  }
  return writer->finish();
}

Status DiskIndex::write_manifest() {
  Manifest manifest{.label = label_, .next_number = next_number_, .segments = {}, .checksums = checksums_};
  for (const auto& segment : segments_) {
    manifest.segments.push_back(
        {segment->place(),
         {segment->dead(DocumentList::Keywords).bytes(), segment->dead(DocumentList::Members).bytes()}});
  }
  // The files of the segments must be durable before the manifest that names them.
  manifest_due_ = true;
  FJORD_TRY(env_.sync_directory(options_.directory));
  FJORD_TRY(write_file_atomically(env_, manifest_path(options_.directory), manifest.encode(), true));
  manifest_due_ = false;
  return Status::ok();
}

std::vector<Segment*> DiskIndex::to_merge() const {
  std::map<unsigned, std::vector<Segment*>> tiers;
  for (const auto& segment : segments_) {
    if (segment->dead_documents() * 2 > segment->documents()) return {segment.get()};
    unsigned tier = 0;
    for (std::uint64_t bytes = segment->place().directory_offset; bytes > 2 * options_.recent_bytes_max; bytes /= 4) {
      ++tier;
    }
    tiers[tier].push_back(segment.get());
  }
  for (auto& [tier, segments] : tiers) {
    if (segments.size() >= options_.segments_of_tier) return std::move(segments);
  }
  return {};
}

Status DiskIndex::finish_merge() {
  const std::unique_ptr<SegmentMerge> merge = std::move(merge_);
  FJORD_TRY_ASSIGN(const SegmentPlace place, merge->finish());
  FJORD_TRY_ASSIGN(auto merged, Segment::open(env_, options_.directory, place, cache_, counts_));
  merge->carry_over_dead(*merged);
  std::erase_if(segments_, [&](const auto& segment) {
    const auto& sources = merge->sources();
    if (std::find(sources.begin(), sources.end(), segment.get()) == sources.end()) return false;
    cache_.forget_segment(segment->place().number);
    return true;
  });
  if (merged->documents() > merged->dead_documents()) segments_.push_back(std::move(merged));
  ++counts_.segments_merged;
  return save();
}

}  // namespace fjord::search
