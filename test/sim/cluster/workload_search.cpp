#include "workload_search.h"

#include <algorithm>
#include <fmt/format.h>

#include "fjord/client/operations.h"
#include "fjord/common/setting.h"

namespace fjord::sim {
namespace {

constexpr const char* kWords[] = {"red", "car", "new", "mask", "boots"};
constexpr const char* kKinds[] = {"broad", "phrase", "exact"};
constexpr std::size_t kWriters = 2;
/// Every search shows the writes that were acknowledged this long before: it is the age limit of the delta.
constexpr Duration kShownAfter = milliseconds(50);

std::string word(Random& random) { return kWords[random.below(std::size(kWords))]; }

}  // namespace

SearchWorkload::SearchWorkload(SimCluster& cluster, unsigned groups)
    : cluster_(cluster),
      groups_(groups),
      writer_(cluster.add_client()),
      searcher_(cluster.add_client()),
      busy_(kWriters) {
  const std::vector<std::string> schemas = {kSearchSchema};
  types_ = DocumentTypeRepo::build(schemas).value();
}

void SearchWorkload::start() {
  for (std::size_t lane = 0; lane < kWriters; ++lane) write(lane);
  for (int lane = 0; lane < 2; ++lane) search();
}

std::optional<search::SearchDocument> SearchWorkload::searched_form(const Document& document) const {
  const EncodedDocument encoded = encode(document);
  return search::search_document_of(*DocumentView::open(*types_, encoded.header, encoded.body));
}

Document SearchWorkload::draw_document() {
  Random& random = cluster_.random();
  const std::uint64_t group = random.below(groups_);
  const std::uint64_t dice = random.below(10);
  const char* type = dice < 2 ? "ad_group" : dice < 5 ? "ad" : "keyword";
  const std::uint64_t number = dice < 2 ? 0 : random.below(3);
  Document document(*types_->find(type), *DocumentId::parse(fmt::format("id:sim:{}:n={}:{}", type, group, number)));
  const auto set = [&](const char* field, FieldValue value) {
    FJORD_CHECK(document.set(field, std::move(value)).is_ok());
  };
  if (dice < 2) {
    set("name", std::string("group"));
    set("advertiser", static_cast<std::int32_t>(random.below(5)));
    set("trust", static_cast<double>(random.below(5)) / 4);
  } else if (dice < 5) {
    set("title", word(random) + " " + word(random));
    set("ctr", static_cast<double>(random.below(10)) / 100);
  } else {
    set("text", random.chance(0.5) ? word(random) : word(random) + " " + word(random));
    set("match", std::string(kKinds[random.below(std::size(kKinds))]));
    set("bid_micros", static_cast<std::int64_t>(random.below(20)) * 5'000);
  }
  return document;
}

void SearchWorkload::write(std::size_t lane) {
  if (stopped_) return;
  Random& random = cluster_.random();
  Document document = draw_document();
  const std::string id = document.id().str();
  const auto again = [this, lane] {
    cluster_.scheduler().outside().post_after(Duration(cluster_.random().below(150'000)),
                                              [this, lane] { write(lane); });
  };
  if (std::find(busy_.begin(), busy_.end(), id) != busy_.end()) return again();
  const bool is_remove = random.chance(0.2);
  if (std::find(written_.begin(), written_.end(), id) == written_.end()) written_.push_back(id);
  const std::size_t number =
      model_.begin(id, is_remove ? std::nullopt : searched_form(document), cluster_.scheduler().clock().now());
  busy_[lane] = id;
  ++under_way_;
  auto done = [this, lane, number, again](const OperationOutcome& outcome) {
    model_.end(number, outcome.outcome, cluster_.scheduler().clock().now());
    busy_[lane].clear();
    --under_way_;
    again();
  };
  rpc::Operation operation =
      is_remove ? operation_on(rpc::OperationKind::Remove, id) : put_operation(id, encode(document));
  writer_.execute(std::move(operation), seconds(5 + static_cast<std::int64_t>(random.below(20))), done);
}

rpc::Search SearchWorkload::draw_search() {
  Random& random = cluster_.random();
  rpc::Search request;
  request.query = word(random);
  for (std::uint64_t more = random.below(3); more > 0; --more) request.query += " " + word(random);
  if (random.chance(0.5)) request.context.push_back({"device", "phone"});
  request.limit = 1 + static_cast<std::uint32_t>(random.below(4));
  request.session = random.chance(0.5);
  request.explain = true;
  return request;
}

void SearchWorkload::search() {
  if (stopped_) return;
  ++under_way_;
  send(draw_search(), [this](bool) {
    --under_way_;
    cluster_.scheduler().outside().post_after(Duration(cluster_.random().below(100'000)), [this] { search(); });
  });
}

void SearchWorkload::send(rpc::Search request, std::function<void(bool complete)> done) {
  const MonotonicTime began = cluster_.scheduler().clock().now();
  searcher_.call_any(request, seconds(5), [this, request, began, done](Result<rpc::SearchReply> reply) {
    if (!reply || !reply->status) {
      ++failed_;
      return done(false);
    }
    judge(request, *reply, began);
    done(reply->slices_searched == reply->slices);
  });
}

void SearchWorkload::judge(const rpc::Search& request, const rpc::SearchReply& reply, MonotonicTime began) {
  std::string problem;
  std::uint64_t by_nodes = 0;
  for (const rpc::SearchNode& node : reply.nodes) by_nodes += node.searched;
  if (by_nodes > reply.slices_searched) {
    problem = fmt::format("I18: nodes searched {} slices, the answer counts {}", by_nodes, reply.slices_searched);
  } else if (reply.slices_searched > reply.slices || (reply.slices_searched < reply.slices) != !reply.missing) {
    problem = fmt::format("I18: {} of {} slices, missing: {}", reply.slices_searched, reply.slices,
                          reply.missing.to_string());
  } else if (reply.slices_searched < reply.slices) {
    ++partial_;
  } else {
    ++complete_;
    hits_ += reply.hits.size();
    problem = model_.check(request, reply, began, cluster_.scheduler().clock().now(), kShownAfter,
                           setting_default("search.reserve_micros"));
  }
  if (failure_.empty()) failure_ = problem;
}

bool SearchWorkload::read_all() {
  std::size_t left = written_.size();
  bool all = true;
  for (const std::string& id : written_) {
    writer_.get(id, seconds(30), [&, id](const OperationOutcome& got) {
      --left;
      const bool is_absent = got.status.code() == StatusCode::NotFound;
      if (!got.is_ok() && !is_absent) all = false;
      std::optional<search::SearchDocument> document;
      if (got.is_ok()) document = search::search_document_of(*DocumentView::open(*types_, got.header, got.body));
      if (got.is_ok() || is_absent) model_.settle(id, std::move(document));
    });
  }
  return cluster_.run_until([&] { return left == 0; }, seconds(60)) && all;
}

std::string SearchWorkload::check_at_rest() {
  if (!read_all()) return "I16: a document could not be read when all faults were over";
  cluster_.scheduler().run_for(milliseconds(100));
  for (const char* word : kWords) {
    rpc::Search request = draw_search();
    request.query = word;
    request.session = false;
    bool is_complete = false;
    for (int i = 0; i < 20 && !is_complete; ++i) {
      bool is_answered = false;
      send(request, [&](bool complete) { is_answered = true, is_complete = complete; });
      if (!cluster_.run_until([&] { return is_answered; }, seconds(30))) return "I16: a search never ended";
    }
    if (!is_complete) return fmt::format("I16: a search for {} was not complete when all faults were over", word);
  }
  return failure_;
}

}  // namespace fjord::sim
