#include "partial_reader.h"

#include <utility>

namespace fjord::mapreduce {
namespace {

using visitors::BucketOnNode;
using visitors::PositionRange;

}  // namespace

PartialReader::PartialReader(std::shared_ptr<const BucketPartial> known) : known_(std::move(known)) {}

Result<bool> PartialReader::next(const BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) {
  if (step_ == Step::Begin) FJORD_TRY(begin(bucket));
  if (step_ == Step::Changes) {
    // Refuses a bucket that was damaged meanwhile: it may lack documents that are to be read.
    FJORD_TRY_ASSIGN(const bool damaged, is_damaged(bucket));
    if (damaged) return Status(StatusCode::Corruption, "the bucket has lost entries");
    filter_->begin_turn();
    for (; at_ < to_read_.size(); ++at_) {
      if (block.size() >= bytes_max || filter_->is_turn_over()) return true;
      FJORD_TRY(read_change(bucket, changes_.at(to_read_[at_]), block));
    }
  } else if (step_ == Step::Everything) {
    FJORD_TRY_ASSIGN(const bool more, everything_.read(bucket, block, bytes_max));
    if (more) return true;
    FJORD_TRY(finish_everything(bucket));
  }
  step_ = Step::Over;
  return false;
}

void PartialReader::close() {
  everything_.close();
  known_.reset();
}

Status PartialReader::begin(const BucketOnNode& bucket) {
  filter_.emplace(bucket.options);
  FJORD_TRY_ASSIGN(const BucketContent content, content_of(bucket));
  before_ = content.version;
  FJORD_TRY_ASSIGN(const bool damaged, is_damaged(bucket));
  step_ = Step::Everything;
  if (known_ == nullptr || damaged) return Status::ok();
  if (known_->version() == before_) {
    found_ = Found::Same;
    step_ = Step::Over;
    return Status::ok();
  }
  if (!known_->has_documents()) return Status::ok();
  FJORD_TRY_ASSIGN(bool is_found, find_newer(bucket, before_));
  if (!is_found && !are_too_many(changes_.size(), before_.entries)) {
    FJORD_TRY_ASSIGN(is_found, find_changes(bucket, before_));
  }
  if (!is_found) {
    changes_.clear();
    return Status::ok();
  }
  found_ = Found::Changed;
  step_ = Step::Changes;
  for (const auto& [gid, change] : changes_) {
    if (!change.gone && !change.meta.removed) to_read_.push_back(gid);
  }
  return Status::ok();
}

/// Takes the entries that are newer than all known ones as the changes. Returns false if these do not account for the
/// whole difference, for example because another replica has brought an older entry.
Result<bool> PartialReader::find_newer(const BucketOnNode& bucket, const ContentVersion& now) {
  ContentVersion expected = known_->version();
  FJORD_TRY(for_each_newer(bucket, known_->newest(), [&](const spi::EntryMeta& entry) {
    const std::uint32_t number = known_->find(entry.gid);
    changes_[entry.gid] = {.meta = entry, .number = number};
    expected.add(entry.gid, entry.timestamp, entry.removed);
    if (number == DocumentChange::kNew) return;
    const PartialDocument& before = known_->documents()[number];
    expected.subtract(before.gid, before.timestamp, before.removed);
  }));
  return !are_too_many(changes_.size(), now.entries) && expected == now;
}

/// Finds the changes by comparing all entries. Returns false if too much changed, or if a document is older than before
/// or gone without a remove.
Result<bool> PartialReader::find_changes(const BucketOnNode& bucket, const ContentVersion& now) {
  changes_.clear();
  const std::vector<PartialDocument>& before = known_->documents();
  std::vector<bool> is_here(before.size());
  bool is_plausible = true;
  FJORD_TRY(for_each_entry(bucket, [&](const spi::EntryMeta& entry) {
    const std::uint32_t number = known_->find(entry.gid);
    if (number != DocumentChange::kNew) {
      is_here[number] = true;
      if (before[number].meta() == entry) return;
      is_plausible = is_plausible && before[number].timestamp < entry.timestamp;
    }
    changes_[entry.gid] = {.meta = entry, .number = number};
  }));
  for (std::uint32_t number = 0; number < before.size(); ++number) {
    if (is_here[number]) continue;
    is_plausible = is_plausible && before[number].removed;
    changes_[before[number].gid] = {.meta = before[number].meta(), .number = number, .gone = true};
  }
  return is_plausible && !are_too_many(changes_.size(), now.entries);
}

Status PartialReader::read_change(const BucketOnNode& bucket, DocumentChange& change, DocBlockBuilder& block) {
  const GlobalId gid = change.meta.gid;
  const std::uint64_t position = visitors::position_of(gid);
  for (const BucketId part : bucket.parts) {
    if (!PositionRange::of(part).contains(position)) continue;
    const bool needs_body = filter_->wants_body() || filter_->selects_on_body();
    FJORD_TRY_ASSIGN(const spi::StoredDocument document,
                     bucket.provider.get(part, gid, needs_body ? spi::Parts::All : spi::Parts::HeaderOnly));
    change.meta.timestamp = document.timestamp;
    change.meta.removed = document.removed;
    if (document.removed || !filter_->wants(document.timestamp, false)) return Status::ok();
    FJORD_TRY_ASSIGN(const bool is_match, filter_->matches(document.header, document.body));
    if (!is_match) return Status::ok();
    block.add({.gid = gid,
               .timestamp = document.timestamp,
               .removed = false,
               .id = {},
               .header = document.header,
               .body = filter_->wants_body() ? document.body : std::string_view()});
    return Status::ok();
  }
  return {StatusCode::NotFound, gid.to_string() + " is in no part of its bucket"};
}

Status PartialReader::finish_everything(const BucketOnNode& bucket) {
  FJORD_TRY_ASSIGN(const BucketContent content, content_of(bucket));
  const ContentVersion& now = content.version;
  if (now != before_) return Status::ok();
  entries_.emplace();
  if (everything_.given() == now.entries) return Status::ok();
  entries_->reserve(static_cast<std::size_t>(now.entries));
  return for_each_entry(bucket, [this](const spi::EntryMeta& entry) { entries_->push_back(entry); });
}

}  // namespace fjord::mapreduce
