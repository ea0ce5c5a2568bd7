#include "fjord/search/stripe_index.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/document/docblock.h"

namespace fjord::search {
namespace {

/// Interval at which schemas are checked, and of background work of an index that has something to do.
constexpr Duration kLookInterval = milliseconds(50);
/// The interval while no type takes part in searches.
constexpr Duration kIdleInterval = seconds(1);
/// Candidates after which a search looks whether its time limit is over. Each may cost some reads of the disk.
constexpr std::size_t kCandidatesPerLook = 16;

/// Returns the types of a repo that take part in searches, as text. When it changes, indexes are made again.
std::string roles_of(const DocumentTypeRepo& types) {
  std::string text;
  for (const auto& type : types.types()) {
    if (const Field* field = type->indexed_field()) {
      text += type->name() + ":" + field->name + ":" + static_cast<char>('0' + static_cast<int>(field->index)) + "\n";
    }
  }
  return text;
}

/// A keyword that matches, before its data is read.
struct Candidate {
  std::uint64_t group = 0;
  GlobalId gid;
  MatchKind kind = MatchKind::Broad;
  std::size_t variant = 0;
  std::string words;
};

/// Collects the keywords that match and lie in the slices of the question.
Result<std::vector<Candidate>> find_candidates(const StripeIndex::Question& question, const IndexStore& index,
                                               const SliceSet& searched, SearchCosts& costs) {
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < question.variants.size(); ++i) {
    const QueryVariant& variant = question.variants[i];
    for (const std::string& word : variant.distinct_words()) {
      FJORD_TRY(index.for_each_keyword(word, [&](const KeywordEntry& keyword) {
        const std::size_t slice = searched.slice_of(keyword.gid);
        costs.add_scanned(slice);
        if (!searched.contains(slice)) return;
        if (!matches(keyword.kind, keyword.words, variant)) return;
        // A keyword counts once, with the first form of the query that it matches.
        for (std::size_t before = 0; before < i; ++before) {
          if (matches(keyword.kind, keyword.words, question.variants[before])) return;
        }
        costs.add_candidate(slice);
        found.push_back({keyword.group, keyword.gid, keyword.kind, i, std::string(keyword.words)});
      }));
    }
  }
  return found;
}

Result<GroupMembers> members_of(const IndexStore& index, std::uint64_t number) {
  GroupMembers members;
  FJORD_TRY(index.for_each_of_group(number, [&](const GlobalId& gid, IndexRole role, std::string_view payload) {
    if (role == IndexRole::Group) {
      // If a group has several documents, the one with the lowest gid counts.
      if (!members.group) members.group = GroupData::decode(payload);
    } else if (const auto ad = AdData::decode(payload)) {
      members.add_ad(gid, *ad);
    }
  }));
  return members;
}

}  // namespace

StripeIndex::StripeIndex(spi::PersistenceProvider& engine, std::unique_ptr<IndexStore> index, const NodeFacts& facts,
                         Clock& clock, const IndexOptions& options)
    : engine_(engine), index_(std::move(index)), facts_(facts), clock_(clock), options_(options) {}

void StripeIndex::follow_types() {
  const rpc::SnapshotHolder* holder = facts_.snapshots.load(std::memory_order_acquire);
  if (holder == nullptr) return;
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = holder->get();
  if (snapshot == nullptr || (types_ != nullptr && snapshot->schema_version() == schema_version_)) return;
  const bool is_first = types_ == nullptr;
  types_ = snapshot->types();
  schema_version_ = snapshot->schema_version();
  const std::string former = std::exchange(roles_, roles_of(*types_));
  if (is_first && !roles_.empty() && index_->label() == roles_) {
    // After a restart only the buckets whose content the index does not have are indexed again.
    std::map<BucketId, std::uint64_t> known;
    for (const auto& [bucket, checksum] : index_->checksums()) known.emplace(bucket, checksum);
    for (const BucketId bucket : engine_.list_buckets()) {
      const auto at = known.find(bucket);
      const Result<BucketInfo> info = engine_.bucket_info(bucket);
      if (at == known.end() || !info || info->checksum != at->second) index_again(bucket);
      if (at != known.end()) known.erase(at);
    }
    for (const auto& [bucket, checksum] : known) on_deleted(bucket);
  } else if (is_first || former != roles_) {
    index_->clear(roles_);
    unsaved_.clear();
    delta_since_.reset();
    index_all_again();
  } else {
    for (const BucketId bucket : std::exchange(unknown_, {})) index_again(bucket);
  }
}

void StripeIndex::index_all_again() {
  building_.reset();
  to_index_.clear();
  unknown_.clear();
  if (roles_.empty()) return;  // No type takes part in searches: the index is empty, and complete.
  for (const BucketId bucket : engine_.list_buckets()) to_index_.insert(bucket);
}

void StripeIndex::index_again(BucketId bucket) {
  if (building_ && building_->bucket == bucket) building_.reset();
  to_index_.insert(bucket);
}

void StripeIndex::note_change(BucketId bucket) {
  unsaved_.insert(bucket);
  if (!delta_since_) delta_since_ = clock_.now();
}

void StripeIndex::on_write(const spi::Write& write) {
  // Nothing to do: when a type takes part in searches, everything is indexed.
  if (spi::is_token_id(write.id) || types_ == nullptr || roles_.empty()) return;
  index_entry(write.bucket, {.gid = write.gid,
                             .timestamp = write.timestamp,
                             .removed = write.remove,
                             .id = write.id,
                             .header = write.header,
                             .body = write.body});
}

void StripeIndex::on_batch() {
  if (index_->delta_bytes() >= options_.delta_bytes_max) merge_delta();
}

void StripeIndex::index_entry(BucketId bucket, const EntryView& entry) {
  unsaved_.insert(bucket);
  std::optional<SearchDocument> document;
  if (!entry.removed) {
    const Result<DocumentView> view = DocumentView::open(*types_, entry.header, entry.body);
    if (view && view->type() == nullptr) unknown_.insert(bucket);
    if (view) document = search_document_of(*view);
  }
  note_change(bucket);
  if (!document) {
    index_->remove(entry.gid);
    return;
  }
  index_->put({.gid = entry.gid,
               .timestamp = entry.timestamp,
               .role = document->role,
               .group = document->group,
               .kind = document->kind,
               .words = std::move(document->words),
               .payload = std::move(document->payload)});
}

void StripeIndex::on_new_set() {
  if (delta_since_) merge_delta();
}

void StripeIndex::on_deleted(BucketId bucket) {
  if (building_ && building_->bucket == bucket) building_.reset();
  to_index_.erase(bucket);
  unknown_.erase(bucket);
  unsaved_.erase(bucket);
  if (types_ == nullptr) return;
  index_->remove_bucket(bucket);
  if (!delta_since_) delta_since_ = clock_.now();
}

void StripeIndex::on_split(BucketId parent, bool half_existed) {
  const bool was_indexed = !to_index_.contains(parent);
  const bool was_unknown = unknown_.contains(parent);
  if (building_ && parent.contains(building_->bucket)) building_.reset();
  for (const BucketId half : halves_of(parent)) {
    // Documents that the half had before can no longer be told apart from those that came by the split.
    if (!was_indexed || (half_existed && to_index_.contains(half))) to_index_.insert(half);
    if (was_unknown) unknown_.insert(half);
    unsaved_.insert(half);
  }
  to_index_.erase(parent);
  unknown_.erase(parent);
  unsaved_.erase(parent);
}

void StripeIndex::on_joined(BucketId parent, bool parent_existed) {
  bool is_indexed = !parent_existed || !to_index_.contains(parent);
  if (building_ && parent.contains(building_->bucket)) building_.reset();
  for (const BucketId half : halves_of(parent)) {
    is_indexed = is_indexed && !to_index_.contains(half);
    to_index_.erase(half);
    if (unknown_.erase(half) != 0) unknown_.insert(parent);
    unsaved_.erase(half);
  }
  if (!is_indexed) to_index_.insert(parent);
  unsaved_.insert(parent);
}

void StripeIndex::index_some() {
  if (!building_) {
    if (to_index_.empty()) return;
    const BucketId bucket = *to_index_.begin();
    auto documents = engine_.iterate(bucket, {});
    if (!documents) {
      if (documents.error().code() == StatusCode::NotFound) {
        on_deleted(bucket);
      } else {
        log::warning("search", "{} cannot be indexed: {}", bucket.to_string(), documents.error().to_string());
      }
      return;
    }
    index_->remove_bucket(bucket);
    note_change(bucket);
    building_ = Building{bucket, std::move(*documents)};
  }
  const BucketId bucket = building_->bucket;
  DocBlockBuilder block;
  const Result<bool> more = building_->documents->next(block, options_.step_bytes);
  if (!more) {
    // A damaged bucket is not searched until it is repaired. Then it is indexed from the beginning.
    building_.reset();
    return;
  }
  const std::string bytes = block.take();
  DocBlockReader reader(bytes);
  while (const std::optional<EntryView> entry = reader.next()) index_entry(bucket, *entry);
  if (*more) return;
  building_.reset();
  to_index_.erase(bucket);
  unsaved_.insert(bucket);  // A merge of the delta meanwhile has taken it out.
  // The indexed documents are new in the index alone, so searches show them at once.
  merge_delta();
}

void StripeIndex::merge_delta() {
  save_checksums();
  index_->merge_delta();
  delta_since_.reset();
}

void StripeIndex::save_checksums() {
  for (const BucketId bucket : std::exchange(unsaved_, {})) {
    const Result<BucketInfo> info = engine_.bucket_info(bucket);
    if (info && !to_index_.contains(bucket) && !unknown_.contains(bucket)) {
      index_->set_checksum(bucket, info->checksum);
    }
  }
}

std::optional<Duration> StripeIndex::maintain(MonotonicTime now) {
  follow_types();
  if (types_ == nullptr || roles_.empty()) return kIdleInterval;
  bool goes_on = false;
  if (!to_index_.empty() && !is_full()) {
    const std::size_t before = to_index_.size();
    index_some();
    goes_on = building_ || to_index_.size() != before;
    // Returns at once while the backlog is small. A larger backlog is first written to files, which bounds memory.
    if (goes_on && index_->backlog() == IndexStore::Backlog::Small) return Duration(0);
  }
  const bool is_due = index_->backlog() != IndexStore::Backlog::Small;
  if (delta_since_ && (is_due || now - *delta_since_ >= options_.delta_age_max)) merge_delta();
  const Result<bool> more = index_->maintain();
  if (!more) log::error("search", "the index of keywords: {}", more.error().to_string());
  if (index_->take_lost()) {
    delta_since_.reset();
    unsaved_.clear();
    index_all_again();
    return Duration(0);
  }
  return goes_on || (more && *more) ? Duration(0) : kLookInterval;
}

Status StripeIndex::check_replica(BucketId bucket, const rpc::ClusterSnapshot& state) const {
  const Result<ReplicaSet> set = engine_.replica_set(bucket);
  if (!set) return set.error();
  if (set->epoch == 0) return {StatusCode::NotReady, bucket.to_string() + " is being filled here"};
  if (!set->contains(facts_.node)) return {StatusCode::WrongDistribution, bucket.to_string() + " has left this node"};
  // Distributors that made sets since the node came up have sent them to it. Sets made before that may be unknown here.
  if (set->state_version() < state.state().node(NodeId::storage(facts_.node)).up_since_version) {
    return {StatusCode::NotReady, bucket.to_string() + " has no set since this node came back"};
  }
  const Result<bool> damaged = engine_.is_damaged(bucket);
  if (!damaged) return damaged.error();
  if (*damaged) return {StatusCode::Corruption, bucket.to_string() + " is damaged here"};
  if (types_ == nullptr || to_index_.contains(bucket)) {
    return {StatusCode::NotReady, bucket.to_string() + " is being indexed here"};
  }
  return Status::ok();
}

void StripeIndex::check_slices(const SliceSet& slices, const rpc::ClusterSnapshot& state, Answer& answer) const {
  // The parts of a slice that may be searched must add up to its span, or the slice is not whole here.
  std::map<std::size_t, std::uint64_t> covered;
  std::set<std::size_t> refused;
  const auto add = [&](std::size_t slice, std::uint64_t span, const Status& status) {
    covered[slice] += span;
    if (status) return;
    refused.insert(slice);
    answer.refused = status;
  };
  for (const BucketId bucket : engine_.list_buckets()) {
    const BucketId first = bucket.with_used_bits(slices.bits());
    if (bucket.used_bits() >= slices.bits()) {
      if (slices.contains(first.bits())) add(first.bits(), bucket.span(), check_replica(bucket, state));
      continue;
    }
    const Status status = check_replica(bucket, state);
    slices.for_each([&](std::size_t slice) {
      if (bucket.contains(slices.bucket(slice))) add(slice, first.span(), status);
    });
  }
  slices.for_each([&](std::size_t slice) {
    const auto at = covered.find(slice);
    if (at == covered.end() || at->second != slices.bucket(slice).span()) {
      if (answer.refused)
        answer.refused = {StatusCode::NotFound, slices.bucket(slice).to_string() + " is not whole on this node"};
    } else if (!refused.contains(slice)) {
      answer.searched.add(slice);
    }
  });
}

Result<StripeIndex::Answer> StripeIndex::search(const Question& question, const rpc::ClusterSnapshot& state) {
  follow_types();
  Answer answer(question.slices.bits());
  check_slices(question.slices, state, answer);
  if (answer.searched.empty()) return answer;
  if (delta_since_ && (question.session || clock_.now() - *delta_since_ >= options_.delta_age_max)) merge_delta();
  const MonotonicTime begun = clock_.now();
  const ListUse lists_before = index_->list_use();
  const std::uint64_t pages_before = index_->pages_read();
  costs_.begin(answer.searched.slices());
  FJORD_TRY_ASSIGN(std::vector<Candidate> found, find_candidates(question, *index_, answer.searched, costs_));
  answer.scanned = costs_.scanned();
  const MonotonicTime found_at = clock_.now();
  std::sort(found.begin(), found.end(),
            [](const Candidate& a, const Candidate& b) { return std::tie(a.group, a.gid) < std::tie(b.group, b.gid); });
  Auction auction(question.variants, question.context, question.reserve_micros);
  GroupMembers group;
  std::size_t i = 0;
  for (; i < found.size(); ++i) {
    if (i % kCandidatesPerLook == 0 && clock_.now() >= question.deadline) break;
    const Candidate& one = found[i];
    if (i == 0 || found[i - 1].group != one.group) {
      FJORD_TRY_ASSIGN(group, members_of(*index_, one.group));
    }
    FJORD_TRY_ASSIGN(const std::string_view payload, index_->payload_of(one.gid));
    const auto data = KeywordData::decode(payload);
    if (!data) return Status(StatusCode::Corruption, "the data of keyword " + one.gid.to_string() + " are malformed");
    auction.add(one.gid, one.words, one.kind, one.variant, *data, group);
  }
  answer.lists = index_->list_use() - lists_before;
  answer.loads = costs_.divide(answer.searched.bits(),
                               {found_at - begun, clock_.now() - found_at, index_->pages_read() - pages_before});
  if (i < found.size()) {
    answer.searched = SliceSet(question.slices.bits());
    answer.refused = {StatusCode::Timeout,
                      fmt::format("the time limit was over after {} of {} keywords that match", i, found.size())};
    return answer;
  }
  answer.candidates = auction.candidates();
  answer.hits = auction.best(question.hits_max);
  return answer;
}

}  // namespace fjord::search
