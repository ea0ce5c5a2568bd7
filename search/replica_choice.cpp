#include "replica_choice.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "fjord/common/retry.h"
#include "index/list_cache.h"

namespace fjord::search {
namespace {

constexpr Duration kRetryTable = seconds(1);
/// A node is slow if its answers take this many times longer than those of the median node, and at least kSlowLeastUs.
constexpr double kSlowTimes = 5.0;
constexpr double kSlowLeastUs = 20'000.0;
/// A slow node that was not asked for this long is asked again.
constexpr Duration kSlowFor = seconds(1);
constexpr double kTimesSmoothed = 16.0;

/// Returns whether no retry can make the table usable; searches then say so. Corruption: its documents are malformed.
bool is_final(const Status& status) {
  return retry_class(status.code()) == RetryClass::Permanent || status.code() == StatusCode::Corruption;
}

}  // namespace

struct ReplicaChoice::Table {
  Table(std::uint64_t table_number, affinity::StoredTable table)
      : number(table_number), stored(std::move(table)), index(stored) {}
  std::uint64_t number;
  affinity::StoredTable stored;
  affinity::WordIndex index;
};

ReplicaClasses::ReplicaClasses(const DistributionConfig& distribution) : count_(distribution.redundancy()) {
  const auto& flat = distribution.flat_nodes();
  const auto& groups = distribution.root().groups;
  if (groups.empty() && flat.size() == count_) {
    for (const DistributionGroup::Node& node : flat) {
      by_node_.emplace(node.index, static_cast<unsigned>(by_node_.size()));
    }
  } else if (groups.size() == count_) {
    const auto tree = distribution.flat_groups();
    unsigned number = 0;
    // The groups below the root, each with all of its nodes.
    for (std::uint32_t at = 1; at < tree.size(); at = tree[at].group_end) {
      for (std::uint32_t i = tree[at].first_node; i < tree[at].node_end; ++i) by_node_.emplace(flat[i].index, number);
      ++number;
    }
  }
}

unsigned ReplicaClasses::of(std::uint16_t node, std::size_t rank) const {
  if (const auto at = by_node_.find(node); at != by_node_.end()) return at->second;
  return static_cast<unsigned>(rank % count_);
}

ReplicaChoice::ReplicaChoice(Clock& clock, TunableRegistry& tunables, MetricRegistry& metrics,
                             visitors::Mailbox mailbox, std::unique_ptr<VotingTableSource> tables)
    : clock_(clock),
      wanted_table_(tunables.declare("search.affinity_table")),
      with_shadow_(tunables.declare("search.affinity_shadow")),
      with_multipliers_(tunables.declare("search.affinity_multipliers")),
      table_in_force_(metrics.gauge("fjord_search_affinity_table",
                                    "Number of the voting table that a distributor chooses replicas by")),
      mailbox_(std::move(mailbox)),
      source_(std::move(tables)) {}

ReplicaChoice::~ReplicaChoice() = default;

Status ReplicaChoice::follow_table() {
  const auto wanted = static_cast<std::uint64_t>(wanted_table_.value());
  if (wanted == 0 || (table_ != nullptr && table_->number == wanted)) {
    if (wanted == 0) table_ = nullptr;
    problem_ = Status::ok();
    table_in_force_.set(static_cast<double>(wanted));
    return Status::ok();
  }
  if (problem_of_ != wanted) {
    problem_of_ = wanted;
    problem_ = Status::ok();
    next_try_ = clock_.now();
  }
  if (reading_ == 0 && clock_.now() >= next_try_) {
    reading_ = wanted;
    read_part(wanted, {}, 0);
  }
  if (!is_final(problem_)) return Status::ok();
  return problem_.with_context(fmt::format("search.affinity_table is {}", wanted));
}

void ReplicaChoice::read_part(std::uint64_t number, std::string bytes, std::uint32_t part) {
  if (source_ == nullptr) return on_part(number, {}, 0, Status(StatusCode::NotFound, "this broker reads no tables"));
  source_->read_part(number, part,
                     [this, mailbox = mailbox_, number, part, bytes = std::move(bytes)](Result<TablePart> got) mutable {
                       // A closed mailbox drops the task, so it never runs after the end of this object.
                       auto shared = std::make_shared<Result<TablePart>>(std::move(got));
                       mailbox.post([this, number, part, shared, bytes = std::move(bytes)]() mutable {
                         on_part(number, std::move(bytes), part, std::move(*shared));
                       });
                     });
}

void ReplicaChoice::on_part(std::uint64_t number, std::string bytes, std::uint32_t part, Result<TablePart> got) {
  Status status = got ? Status::ok() : got.error();
  if (status.code() == StatusCode::NotFound) {
    status = Status(StatusCode::NotFound, fmt::format("there is no voting table {}", number));
  }
  if (status) {
    bytes += got->content;
    if (part + 1 < got->parts) return read_part(number, std::move(bytes), part + 1);
    status = open_table(number, bytes);
  }
  reading_ = 0;
  next_try_ = clock_.now() + kRetryTable;
  if (problem_of_ != number) return;
  if (!status && status.message() != problem_.message()) {
    log::warning("search", "voting table {} cannot be used: {}", number, status.to_string());
  }
  problem_ = status;
}

Status ReplicaChoice::open_table(std::uint64_t number, std::string_view bytes) {
  FJORD_TRY_ASSIGN(affinity::StoredTable table, affinity::decode_table(bytes, corpus_, affinity::ForeignTable::Mark));
  // The setting may name another table by now.
  if (static_cast<std::uint64_t>(wanted_table_.value()) == number) {
    table_ = std::make_shared<const Table>(number, std::move(table));
    table_in_force_.set(static_cast<double>(number));
  }
  return Status::ok();
}

void ReplicaChoice::follow_state(const rpc::ClusterSnapshot& state) {
  if (schema_version_ != state.schema_version()) {
    schema_version_ = state.schema_version();
    corpus_ = corpus_of(*state.types());
  }
  if (classes_ != nullptr && state_version_ == state.state_version()) return;
  state_version_ = state.state_version();
  classes_ = std::make_shared<const ReplicaClasses>(state.distribution());
  std::vector<std::uint16_t> nodes;
  for (const DistributionGroup::Node& node : state.distribution().flat_nodes()) nodes.push_back(node.index);
  shares_.follow(nodes);
  std::erase_if(shadows_, [&](const auto& one) { return !state.storage_serves(one.first); });
  std::erase_if(times_, [&](const auto& one) { return !state.storage_serves(one.first); });
}

Result<ReplicaChoice::Query> ReplicaChoice::begin(std::span<const QueryVariant> variants, std::uint64_t fingerprint,
                                                  const rpc::ClusterSnapshot& state) {
  follow_state(state);
  FJORD_TRY(follow_table());
  if (with_shadow_.value() == 0) shadows_.clear();
  Query query;
  query.fingerprint = fingerprint;
  query.classes = classes_;
  query.how = how_text(classes_->count());
  if (table_ != nullptr && table_->stored.table.replicas() == classes_->count()) query.table = table_;
  if (query.table == nullptr && with_shadow_.value() == 0) return query;
  std::vector<std::string> words;
  for (const QueryVariant& variant : variants) {
    words.insert(words.end(), variant.distinct_words().begin(), variant.distinct_words().end());
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  for (const std::string& text : words) {
    Query::Word word;
    word.in_caches = ListCache::word_id(text);
    word.hash = hash64(text);
    if (query.table != nullptr) {
      const affinity::WordId id = query.table->index.find(text);
      word.weights = query.table->stored.table.weights(id);
      if (!word.weights.empty()) word.pages = query.table->stored.pages[id];
    }
    query.words.push_back(word);
  }
  return query;
}

std::string ReplicaChoice::how_text(unsigned classes) const {
  std::string how;
  if (table_ == nullptr) {
    how = "by fingerprint";
  } else if (table_->stored.table.replicas() != classes) {
    how = fmt::format("by fingerprint: voting table {} is for {} replicas, the cluster has {} classes", table_->number,
                      table_->stored.table.replicas(), classes);
  } else {
    how = fmt::format("voting table {} ({}, {} words)", table_->number, table_->stored.method,
                      table_->stored.words.size());
    if (table_->stored.is_foreign) how += fmt::format(", trained on another corpus: {}", table_->stored.corpus);
  }
  const std::int64_t wanted = wanted_table_.value();
  if (wanted != 0 && (table_ == nullptr || table_->number != static_cast<std::uint64_t>(wanted))) {
    how += fmt::format("; voting table {} is not read yet{}", wanted, problem_ ? "" : ": " + problem_.message());
  }
  if (with_shadow_.value() != 0) how += "; shadow caches";
  if (with_multipliers_.value() != 0) how += "; shares by load";
  return how;
}

std::vector<ReplicaChoice::Member> ReplicaChoice::members_of(const Query& query, const NodeList& nodes) {
  std::vector<Member> members;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    members.push_back({nodes[rank], query.classes->of(nodes[rank], rank)});
  }
  return members;
}

double ReplicaChoice::vote_against(Query& query, const Member& member) const {
  const auto [at, is_new] = query.votes.try_emplace({member.node, member.replica_class}, 0.0);
  if (is_new) at->second = count_votes(query, member);
  return at->second;
}

double ReplicaChoice::count_votes(const Query& query, const Member& member) const {
  const double floor_part = with_multipliers_.value() != 0 ? affinity::kFloorPart : 0.0;
  const bool has_shadow = with_shadow_.value() != 0;
  const auto own = shadows_.find(member.node);
  double votes = 0.0;
  for (const Query::Word& word : query.words) {
    votes += floor_part * word.pages;
    std::uint32_t most = 0;  // There are no shadow caches unless they are in use.
    for (const auto& [node, shadow] : shadows_) most = std::max(most, shadow.stripes_with(word.in_caches));
    if (most > 0) {
      const std::uint32_t here = own == shadows_.end() ? 0 : own->second.stripes_with(word.in_caches);
      votes += word.pages * (1.0 - static_cast<double>(here) / most);
    } else if (!word.weights.empty()) {
      votes += static_cast<double>(word.weights[member.replica_class]);
    } else if (has_shadow) {
      votes += word.hash % query.classes->count() == member.replica_class ? 0.0 : word.pages;
    }
  }
  return votes;
}

double ReplicaChoice::share_of(std::uint16_t node) const {
  return with_multipliers_.value() == 0 ? shares_.any_share() : shares_.share(node);
}

std::uint16_t ReplicaChoice::choose(Query& query, std::span<const Member> members,
                                    std::span<const ReadShare> shares) const {
  std::vector<double> votes;
  std::vector<double> widths;
  std::vector<std::uint16_t> nodes;
  for (const bool by_read_share : {!shares.empty(), false}) {
    for (const Member& member : members) {
      double width = share_of(member.node);
      if (by_read_share) {
        const auto row =
            std::find_if(shares.begin(), shares.end(), [&](const ReadShare& one) { return one.node == member.node; });
        if (row == shares.end() || row->permille == 0) continue;
        width *= row->permille;
      }
      nodes.push_back(member.node);
      votes.push_back(vote_against(query, member));
      widths.push_back(width);
    }
    if (!nodes.empty()) break;
  }
  return nodes[affinity::choose_replica(votes, widths, query.fingerprint)];
}

bool ReplicaChoice::is_slow(std::uint16_t node, MonotonicTime now) const {
  const auto at = times_.find(node);
  if (at == times_.end() || at->second.mean_us < kSlowLeastUs || now - at->second.last > kSlowFor) return false;
  std::vector<double> means;
  for (const auto& [other, time] : times_) means.push_back(time.mean_us);
  const auto middle = means.begin() + static_cast<std::ptrdiff_t>((means.size() - 1) / 2);
  std::nth_element(means.begin(), middle, means.end());
  return at->second.mean_us > kSlowTimes * *middle;
}

void ReplicaChoice::prepare(std::uint16_t node, rpc::SearchSlices& question) const {
  question.with_cache = with_shadow_.value() != 0;
  if (!question.with_cache) return;
  if (const auto at = shadows_.find(node); at != shadows_.end()) question.heard = at->second.heard();
}

void ReplicaChoice::on_answer(Query& query, const Member& member, const rpc::SearchSlicesReply& answer, Duration took,
                              rpc::SearchNode& report) {
  report.list_hits = answer.list_hits;
  report.list_misses = answer.list_misses;
  report.pages = answer.pages;
  report.pages_read = answer.pages_read;
  report.utilisation_permille = answer.utilisation_permille;
  report.replica_class = member.replica_class;
  report.share_permille = static_cast<std::uint32_t>(1000.0 * share_of(member.node));
  report.vote_milli = static_cast<std::uint64_t>(1000.0 * vote_against(query, member));
  NodeTime& time = times_[member.node];
  const auto us = static_cast<double>(took.count());
  time.mean_us += time.last.us == 0 ? us : (us - time.mean_us) / kTimesSmoothed;
  time.last = clock_.now();
  if (!answer.status) return;
  if (with_shadow_.value() != 0) {
    for (const rpc::CacheReport& one : answer.caches) shadows_[member.node].apply(one);
  }
  shares_.on_answer(member.node, std::min(1.0, answer.utilisation_permille / 1000.0));
}

}  // namespace fjord::search
