#include "fjord/search/search_service.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "busy_meter.h"
#include "cache_report.h"
#include "fjord/search/indexed_provider.h"
#include "wire.h"

namespace fjord::search {

class SearchService::Impl : public std::enable_shared_from_this<SearchService::Impl> {
 public:
  Impl(Runtime& runtime, spi::BucketAccess& access, const rpc::SnapshotHolder& snapshots, SearchServiceOptions options)
      : clock_(runtime.clock),
        access_(access),
        snapshots_(snapshots),
        options_(std::move(options)),
        incarnation_(runtime.random.fork().next()),
        busy_(runtime.clock.now()),
        searches_(runtime.metrics.counter("fjord_search_node_searches_total", "Searches of slices")),
        slices_(runtime.metrics.counter("fjord_search_node_slices_total", "Slices searched")),
        refused_(runtime.metrics.counter("fjord_search_node_refused_total",
                                         "Slices not searched: the replica is not in sync, not indexed, or not here")),
        candidates_(runtime.metrics.counter("fjord_search_node_candidates_total", "Keywords that matched a query")),
        scanned_(runtime.metrics.counter("fjord_search_node_scanned_total", "Keywords compared with a query")),
        seconds_(runtime.metrics.histogram("fjord_search_node_seconds", "Time of a search on a storage node")) {}

  void start(rpc::SearchSlices request, rpc::Responder respond);

 private:
  /// A search under way: each stripe adds its part.
  struct Search {
    rpc::SearchSlices request;
    rpc::Responder respond;
    std::vector<QueryVariant> variants;
    SearchContext context;
    MonotonicTime arrived;

    std::mutex mutex;
    std::size_t left FJORD_GUARDED_BY(mutex) = 0;  ///< Stripes that have not answered.
    rpc::SearchSlicesReply reply FJORD_GUARDED_BY(mutex);
    SliceSet searched FJORD_GUARDED_BY(mutex) = SliceSet(0);
    std::vector<Hit> hits FJORD_GUARDED_BY(mutex);
    ListUse lists FJORD_GUARDED_BY(mutex);
  };

  void search_stripe(Search& search, const SliceSet& slices, spi::PersistenceProvider& provider);
  /// Adds the changes of the stripe's cache that the broker has not heard of, and the pages of the words.
  void report_index(Search& search, const SliceSet& slices, const StripeIndex& index);
  /// Adds the answer of a stripe (null: there was nothing to ask) and sends the reply after the last one.
  void finish_part(Search& search, const Result<StripeIndex::Answer>* answer);

  Clock& clock_;
  spi::BucketAccess& access_;
  const rpc::SnapshotHolder& snapshots_;
  SearchServiceOptions options_;
  const std::uint64_t incarnation_;
  BusyMeter busy_;
  Counter& searches_;
  Counter& slices_;
  Counter& refused_;
  Counter& candidates_;
  Counter& scanned_;
  Histogram& seconds_;
};

SearchService::SearchService(Runtime& runtime, spi::BucketAccess& access, const rpc::SnapshotHolder& snapshots,
                             SearchServiceOptions options)
    : impl_(std::make_shared<Impl>(runtime, access, snapshots, std::move(options))) {}

SearchService::~SearchService() = default;

bool SearchService::handle(rpc::Request& request, rpc::Responder& respond) {
  auto* search = std::get_if<rpc::SearchSlices>(&request);
  if (search == nullptr) return false;
  impl_->start(std::move(*search), std::move(respond));
  return true;
}

void SearchService::Impl::start(rpc::SearchSlices request, rpc::Responder respond) {
  rpc::SearchSlicesReply refusal;
  const auto state = snapshots_.get();
  refusal.state_version = state == nullptr ? 0 : state->state_version();
  if (state == nullptr || state->state_version() < request.state_version) {
    refusal.status = {StatusCode::NotReady,
                      "the storage node has not got cluster state " + std::to_string(request.state_version) + " yet"};
    return respond(std::move(refusal));
  }
  if (state->state_version() > request.state_version || state->distribution_bits() != request.bits ||
      request.bits > SliceSet::kBitsMax) {
    refusal.status = {StatusCode::WrongDistribution,
                      "the storage node is in cluster state " + std::to_string(state->state_version())};
    return respond(std::move(refusal));
  }
  Result<SearchContext> context = context_of(request.context);
  if (!context) {
    refusal.status = context.error();
    return respond(std::move(refusal));
  }
  auto search = std::make_shared<Search>();
  search->context = std::move(*context);
  for (const std::string& variant : request.variants) search->variants.emplace_back(variant);
  search->request = std::move(request);
  search->respond = std::move(respond);
  search->arrived = clock_.now();
  const SliceSet asked(search->request.bits, search->request.slices);
  std::map<std::size_t, SliceSet> parts;  // By stripe: the slices to search there.
  asked.for_each([&](std::size_t slice) {
    parts.try_emplace(access_.stripe_of(asked.bucket(slice)), asked.bits()).first->second.add(slice);
  });
  search->reply.status = Status::ok();
  search->reply.refused = Status::ok();
  search->reply.state_version = state->state_version();
  search->searched = SliceSet(asked.bits());
  search->left = std::max<std::size_t>(parts.size(), 1);
  searches_.add();
  if (parts.empty()) return finish_part(*search, nullptr);
  for (auto& [stripe, slices] : parts) {
    std::size_t first = 0;
    while (!slices.contains(first)) ++first;
    access_.on_stripe(asked.bucket(first),
                      [self = shared_from_this(), search, slices = std::move(slices)](
                          spi::PersistenceProvider& provider) { self->search_stripe(*search, slices, provider); });
  }
}

void SearchService::Impl::search_stripe(Search& search, const SliceSet& slices, spi::PersistenceProvider& provider) {
  const Duration waited = clock_.now() - search.arrived;
  const Duration limit(search.request.timeout_us);
  Result<StripeIndex::Answer> answer = Status(StatusCode::Timeout, "the stripe came to the search too late");
  // Timeout: the broker no longer waits for this search, and another search may wait behind it, so this one is skipped.
  const auto state = snapshots_.get();
  if (state->state_version() != search.request.state_version) {
    answer = Status(StatusCode::WrongDistribution, "the storage node has just got another cluster state");
  } else if (limit == Duration::zero() || waited < limit) {
    auto& indexed = dynamic_cast<IndexedProvider&>(provider);
    StripeIndex::Question question{.slices = slices,
                                   .variants = search.variants,
                                   .context = search.context,
                                   .hits_max = search.request.hits_max,
                                   .reserve_micros = search.request.reserve_micros,
                                   .session = search.request.session};
    if (limit != Duration::zero()) question.deadline = search.arrived + limit;
    answer = indexed.index().search(question, *state);
    if (answer) access_.count_searches(answer->loads);
    report_index(search, slices, indexed.index());
    busy_.add(clock_.now() - search.arrived - waited, clock_.now());
  }
  refused_.add(slices.count() - (answer ? answer->searched.count() : 0));
  finish_part(search, &answer);
}

void SearchService::Impl::report_index(Search& search, const SliceSet& slices, const StripeIndex& index) {
  if (!search.request.with_cache && !search.request.with_words) return;
  rpc::CacheReport report;
  const affinity::CacheChanges* changes = search.request.with_cache ? index.cache_changes() : nullptr;
  if (changes != nullptr) {
    std::size_t first = 0;
    while (!slices.contains(first)) ++first;
    report = cache_report(static_cast<std::uint32_t>(access_.stripe_of(slices.bucket(first))), incarnation_, *changes,
                          search.request.heard);
  }
  const std::lock_guard lock(search.mutex);
  if (!report.changes.empty() || report.forget) search.reply.caches.push_back(std::move(report));
  if (!search.request.with_words) return;
  std::map<std::string, std::uint32_t> pages;
  for (const QueryVariant& variant : search.variants) {
    for (const std::string& word : variant.distinct_words()) {
      pages[word] = static_cast<std::uint32_t>(index.pages_of(word));
    }
  }
  for (const rpc::WordPages& known : search.reply.words) pages[known.word] += known.pages;
  search.reply.words.clear();
  for (const auto& [word, count] : pages) search.reply.words.push_back({word, count});
}

void SearchService::Impl::finish_part(Search& search, const Result<StripeIndex::Answer>* answer) {
  std::unique_lock lock(search.mutex);
  if (answer != nullptr && *answer) {
    (*answer)->searched.for_each([&](std::size_t slice) { search.searched.add(slice); });
    if (!(*answer)->refused) search.reply.refused = (*answer)->refused;
    search.hits.insert(search.hits.end(), (*answer)->hits.begin(), (*answer)->hits.end());
    search.reply.candidates += (*answer)->candidates;
    search.reply.scanned += (*answer)->scanned;
    search.lists += (*answer)->lists;
  } else if (answer != nullptr) {
    search.reply.refused = answer->error();
  }
  if (--search.left != 0) return;
  rpc::SearchSlicesReply reply = std::move(search.reply);
  reply.searched = search.searched.bytes();
  for (Hit& hit : best_of(std::move(search.hits), search.request.hits_max)) {
    reply.hits.push_back(to_message(std::move(hit)));
  }
  slices_.add(search.searched.count());
  reply.list_hits = static_cast<std::uint32_t>(search.lists.hits);
  reply.list_misses = static_cast<std::uint32_t>(search.lists.misses);
  reply.pages = search.lists.pages;
  reply.pages_read = search.lists.pages_read;
  lock.unlock();
  const double busy = busy_.part(clock_.now(), options_.stripes);
  const double load = options_.machine_load ? std::max(busy, options_.machine_load()) : busy;
  reply.utilisation_permille = static_cast<std::uint32_t>(std::clamp(load, 0.0, 1.0) * 1000.0);
  candidates_.add(reply.candidates);
  scanned_.add(reply.scanned);
  const Duration took = clock_.now() - search.arrived;
  reply.search_us = took.count();
  seconds_.observe(took);
  search.respond(std::move(reply));
}

}  // namespace fjord::search
