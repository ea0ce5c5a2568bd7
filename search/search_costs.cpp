#include "fjord/search/search_costs.h"

namespace fjord::search {
namespace {

/// Returns the part of `whole` for the range from `before` to `upto` of 0 to `of`. Adjacent parts add up exactly.
std::uint64_t part(std::uint64_t whole, std::uint64_t before, std::uint64_t upto, std::uint64_t of) {
  return of == 0 ? 0 : whole * upto / of - whole * before / of;
}

}  // namespace

void SearchCosts::begin(std::size_t slices) {
  if (counts_.size() != slices) {
    counts_.assign(slices, {});
  } else {
    for (const std::size_t slice : touched_) counts_[slice] = {};
  }
  touched_.clear();
  scanned_ = 0;
  candidates_ = 0;
}

std::vector<spi::SearchLoad> SearchCosts::divide(unsigned bits, const Total& total) const {
  const auto scan_ns = static_cast<std::uint64_t>(total.scan.count()) * 1000;
  // Without a match there is hardly any auction: its time is divided like the time of comparing.
  const auto auction_ns = static_cast<std::uint64_t>(total.auction.count()) * 1000;
  std::vector<spi::SearchLoad> loads;
  loads.reserve(touched_.size());
  std::uint64_t scanned = 0;
  std::uint64_t candidates = 0;
  for (const std::size_t slice : touched_) {
    const Count& count = counts_[slice];
    spi::SearchLoad& load = loads.emplace_back();
    load.bucket = BucketId(bits, slice);
    load.candidates = count.candidates;
    load.ns = part(scan_ns, scanned, scanned + count.scanned, scanned_);
    load.ns += candidates_ == 0 ? part(auction_ns, scanned, scanned + count.scanned, scanned_)
                                : part(auction_ns, candidates, candidates + count.candidates, candidates_);
    load.pages = part(total.pages, scanned, scanned + count.scanned, scanned_);
    scanned += count.scanned;
    candidates += count.candidates;
  }
  return loads;
}

}  // namespace fjord::search
