#include "cache_report.h"

#include <algorithm>

namespace fjord::search {

rpc::CacheReport cache_report(std::uint32_t stripe, std::uint64_t incarnation, const affinity::CacheChanges& changes,
                              const std::vector<rpc::CacheHeard>& heard) {
  rpc::CacheReport report;
  report.stripe = stripe;
  report.incarnation = incarnation;
  report.up_to = changes.next();
  const auto known = std::find_if(heard.begin(), heard.end(), [&](const rpc::CacheHeard& one) {
    return one.stripe == stripe && one.incarnation == incarnation;
  });
  const bool can_follow = known != heard.end() && known->up_to >= changes.first() && known->up_to <= changes.next();
  report.forget = !can_follow;
  changes.for_each_from(can_follow ? known->up_to : changes.first(), [&](const affinity::CacheChange& change) {
    report.changes.push_back(std::uint64_t{change.word} * 2 + (change.entered ? 1 : 0));
  });
  return report;
}

void CacheShadow::apply(const rpc::CacheReport& report) {
  Stripe& stripe = stripes_[report.stripe];
  const std::uint64_t first = report.up_to - std::min<std::uint64_t>(report.up_to, report.changes.size());
  const bool is_other = stripe.incarnation != report.incarnation;
  // Drops a report that does not follow the known changes: it answers a question that had known more.
  if (!report.forget && (is_other || first > stripe.next)) return;
  if (!is_other && report.up_to <= stripe.next) return;
  if (is_other || first > stripe.next) stripe = {report.incarnation, first, {}};
  for (std::uint64_t number = stripe.next; number < report.up_to; ++number) {
    const std::uint64_t change = report.changes[number - first];
    const auto word = static_cast<affinity::WordId>(change / 2);
    if (change % 2 == 1) {
      stripe.words.insert(word);
    } else {
      stripe.words.erase(word);
    }
  }
  stripe.next = report.up_to;
}

std::vector<rpc::CacheHeard> CacheShadow::heard() const {
  std::vector<rpc::CacheHeard> heard;
  for (const auto& [number, stripe] : stripes_) heard.push_back({number, stripe.incarnation, stripe.next});
  return heard;
}

std::uint32_t CacheShadow::stripes_with(affinity::WordId word) const {
  std::uint32_t count = 0;
  for (const auto& [number, stripe] : stripes_) count += stripe.words.contains(word) ? 1 : 0;
  return count;
}

std::size_t CacheShadow::words() const {
  std::size_t count = 0;
  for (const auto& [number, stripe] : stripes_) count += stripe.words.size();
  return count;
}

}  // namespace fjord::search
