#include "fjord/storage/spi/entry_window.h"

#include <algorithm>
#include <tuple>

#include "fjord/document/document_id.h"

namespace fjord::spi {
namespace {

struct Keyed {
  std::uint64_t group = 0;
  EntryMeta entry;

  bool operator<(const Keyed& other) const {
    return std::tie(group, entry.gid) < std::tie(other.group, other.entry.gid);
  }
};

/// Keeps the first entries of the range, in the order of (group, gid), from all that are added.
class Selector {
 public:
  Selector(const GroupRange& range, std::size_t max_entries) : range_(range), max_(max_entries), prune_at_(2 * max_) {}

  void add(const EntryMeta& entry) {
    const std::uint64_t group = group_of(entry.gid);
    if (!range_.contains(group)) return;
    if (group > last_) {
      more_ = true;
      return;
    }
    kept_.push_back({group, entry});
    if (kept_.size() > prune_at_) prune();
  }

  EntryWindow take() {
    std::sort(kept_.begin(), kept_.end());
    std::size_t end = std::min(max_, kept_.size());
    if (end < kept_.size()) {  // The window must end behind the last entry of a group.
      while (end > 0 && kept_[end - 1].group == kept_[end].group) --end;
      if (end == 0) end = end_of_first_group();
    }
    EntryWindow window;
    window.more = more_ || end < kept_.size();
    window.entries.reserve(end);
    for (std::size_t i = 0; i < end; ++i) window.entries.push_back(kept_[i].entry);
    return window;
  }

 private:
  /// Drops the entries of all groups behind the last group that can be in the window.
  void prune() {
    const auto middle = kept_.begin() + static_cast<std::ptrdiff_t>(max_);
    std::nth_element(kept_.begin(), middle, kept_.end());
    last_ = middle->group;
    const std::size_t erased = std::erase_if(kept_, [&](const Keyed& keyed) { return keyed.group > last_; });
    more_ = more_ || erased > 0;
    prune_at_ = 2 * std::max(max_, kept_.size());
  }

  std::size_t end_of_first_group() const {
    std::size_t end = 0;
    while (end < kept_.size() && kept_[end].group == kept_[0].group) ++end;
    return end;
  }

  const GroupRange range_;
  const std::size_t max_;
  std::size_t prune_at_;
  std::uint64_t last_ = kLastGroup;  ///< The last group of the window at most.
  std::vector<Keyed> kept_;
  bool more_ = false;
};

}  // namespace

std::uint64_t group_of(const GlobalId& gid) { return bucket_of(gid, BucketId::kUsedBitsMax).sort_key(); }

Result<EntryWindow> list_window(PersistenceProvider& provider, BucketId bucket, const GroupRange& range,
                                std::size_t max_entries) {
  Selector selector(range, std::max<std::size_t>(max_entries, 1));
  FJORD_TRY(provider.for_each_entry(bucket, [&](const EntryMeta& entry) { selector.add(entry); }));
  return selector.take();
}

Status PersistenceProvider::for_each_entry(BucketId bucket, const std::function<void(const EntryMeta&)>& sink) {
  FJORD_TRY_ASSIGN(const std::vector<EntryMeta> entries, list_entries(bucket));
  for (const EntryMeta& entry : entries) sink(entry);
  return Status::ok();
}

Status PersistenceProvider::for_each_newer(BucketId bucket, Timestamp after,
                                           const std::function<void(const EntryMeta&)>& sink) {
  return for_each_entry(bucket, [&](const EntryMeta& entry) {
    if (entry.timestamp > after) sink(entry);
  });
}

}  // namespace fjord::spi
