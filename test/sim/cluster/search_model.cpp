#include "search_model.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::sim {
namespace {

const std::optional<search::SearchDocument> kNone;
/// A search whose documents could be in more states is not checked.
constexpr std::size_t kStatesMax = 512;

std::string text_of(std::uint64_t advertiser, const std::string& ad, const std::string& keyword, std::int64_t price) {
  return fmt::format("[advertiser {}: {} by {} for {}]", advertiser, ad, keyword, price);
}

std::string text_of(const std::vector<search::Hit>& hits) {
  std::string text;
  for (const search::Hit& hit : hits) text += text_of(hit.advertiser, hit.ad_id, hit.keyword_id, hit.price_micros);
  return text.empty() ? "nothing" : text;
}

std::string text_of(const rpc::SearchReply& reply) {
  std::string text;
  for (const rpc::SearchHit& hit : reply.hits) {
    text += text_of(hit.advertiser, hit.ad, hit.keyword, hit.price_micros);
  }
  return text.empty() ? "nothing" : text;
}

bool equals(const std::vector<search::Hit>& hits, const rpc::SearchReply& reply) {
  return std::equal(hits.begin(), hits.end(), reply.hits.begin(), reply.hits.end(),
                    [](const search::Hit& a, const rpc::SearchHit& b) {
                      return a.advertiser == b.advertiser && a.score == b.score && a.quality_ppm == b.quality_ppm &&
                             a.keyword_id == b.keyword && a.ad_id == b.ad && a.title == b.title &&
                             a.price_micros == b.price_micros;
                    });
}

}  // namespace

std::size_t SearchModel::begin(const std::string& id, std::optional<search::SearchDocument> document,
                               MonotonicTime now) {
  writes_.push_back({.id = id, .document = std::move(document), .begin = now, .end = now});
  by_id_[id].push_back(writes_.size() - 1);
  return writes_.size() - 1;
}

void SearchModel::end(std::size_t write, Outcome outcome, MonotonicTime now) {
  writes_[write].is_over = true;
  writes_[write].outcome = outcome;
  writes_[write].end = now;
}

void SearchModel::settle(const std::string& id, std::optional<search::SearchDocument> document) {
  for (const std::size_t write : by_id_[id]) writes_[write].outcome = Outcome::NotApplied;
  by_id_[id].clear();
  const std::size_t write = begin(id, std::move(document), MonotonicTime{0});
  end(write, Outcome::Applied, MonotonicTime{0});
}

SearchModel::Versions SearchModel::versions_of(const std::vector<std::size_t>& writes, MonotonicTime from,
                                               MonotonicTime to) const {
  // The last write that was acknowledged before `from`, and all writes that may take effect after it.
  Versions versions;
  const Write* settled = nullptr;
  for (const std::size_t number : writes) {
    const Write& write = writes_[number];
    if (write.is_over && write.outcome == Outcome::Applied && write.end < from) settled = &write;
  }
  versions.push_back(settled == nullptr ? &kNone : &settled->document);
  for (const std::size_t number : writes) {
    const Write& write = writes_[number];
    if (&write == settled || write.begin > to || (write.is_over && write.outcome == Outcome::NotApplied)) continue;
    // A write in doubt may take effect at any time, also later.
    const bool is_before = write.is_over && write.outcome == Outcome::Applied && write.end < from;
    if (!is_before) versions.push_back(&write.document);
  }
  return versions;
}

std::string SearchModel::check(const rpc::Search& request, const rpc::SearchReply& reply, MonotonicTime began,
                               MonotonicTime ended, Duration age, std::int64_t reserve_micros) {
  const MonotonicTime from = began - (request.session ? Duration(0) : age);
  search::ReferenceSearch one;
  std::vector<std::pair<GlobalId, Versions>> open;
  std::size_t states = 1;
  for (const auto& [id, writes] : by_id_) {
    Versions versions = versions_of(writes, from, ended);
    const GlobalId gid = DocumentId::parse(id)->gid();
    if (versions.size() > 1) {
      states *= versions.size();
      if (states > kStatesMax) {
        ++undecided_;
        return {};
      }
      open.emplace_back(gid, std::move(versions));
    } else if (*versions.front()) {
      one.put(gid, **versions.front());
    }
  }
  ++checked_;
  const auto variants = search::parse_query(request.query);
  std::map<std::string, std::string> pairs;
  for (const rpc::Parameter& pair : request.context) pairs[pair.name] = pair.value;
  const auto context = search::SearchContext::parse(pairs);
  std::vector<search::Hit> expected;
  for (std::size_t state = 0; state < states; ++state) {
    std::size_t left = state;
    for (const auto& [gid, versions] : open) {
      const std::optional<search::SearchDocument>& version = *versions[left % versions.size()];
      left /= versions.size();
      if (version) {
        one.put(gid, *version);
      } else {
        one.remove(gid);
      }
    }
    expected = one.search(*variants, *context, request.limit, reserve_micros);
    if (equals(expected, reply)) return {};
  }
  return fmt::format(
      "I19: a search for \"{}\" [{}, {}]{} under state {} gave {}; {} states of the documents do not, for "
      "example {}",
      request.query, began.us, ended.us, request.session ? " of a session" : "", reply.state_version, text_of(reply),
      states, text_of(expected));
}

}  // namespace fjord::sim
