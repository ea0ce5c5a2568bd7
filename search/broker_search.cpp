#include "broker_search.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/rpc/deadline.h"
#include "wire.h"

namespace fjord::search {
namespace {

/// Time for which a broker believes that a slice has no bucket. A new write may stay invisible for longer.
constexpr Duration kAbsentFor = milliseconds(25);
/// Shortest time limit of a call. The limit of a call leaves time to ask another node if this one does not answer.
constexpr Duration kCallLeast = milliseconds(20);
/// Longest time limit of a search, that of the setting search.timeout.
constexpr Duration kTimeMost = seconds(60);
/// More answers of nodes that are asked again and again are told in the last one of the node.
constexpr std::size_t kReportsMax = 1000;

}  // namespace

void BrokerMemory::follow(std::uint64_t version) {
  if (version == state_version) return;
  state_version = version;
  homes.clear();
  absent.clear();
}

BrokerSearch::BrokerSearch(BrokerContext& context, rpc::Search request, std::function<void(rpc::SearchReply)> done)
    : context_(context),
      reserve_micros_(context.reserve_micros.value()),
      request_(std::move(request)),
      done_(std::move(done)),
      began_(context.clock.now()) {
  const Duration wanted = milliseconds(request_.timeout_ms == 0 ? context.timeout_ms.value() : request_.timeout_ms);
  deadline_ = began_ + std::min(wanted, kTimeMost);
}

void BrokerSearch::start() {
  if (Status status = prepare(); !status) return finish(std::move(status));
  context_.executor.post_after(deadline_ - began_, while_alive(weak_from_this(), [](BrokerSearch& self) {
                                 self.note_missing({StatusCode::Timeout, "the time limit was over"});
                                 self.finish(std::nullopt);
                               }));
  ask();
}

Status BrokerSearch::prepare() {
  FJORD_TRY_ASSIGN(variants_, parse_query(request_.query));
  FJORD_TRY(context_of(request_.context).status());
  if (request_.limit == 0 || request_.limit > context_.options.places_max) {
    return {StatusCode::InvalidArgument,
            fmt::format("the limit is {}; it has to be 1 to {}", request_.limit, context_.options.places_max)};
  }
  FJORD_TRY(take_state());
  FJORD_TRY(context_.synonyms.add_forms(variants_));
  FJORD_TRY_ASSIGN(votes_, context_.replicas.begin(variants_, hash64(variants_.front().text()), *state_));
  context_.recorder.record(variants_.front().text());
  return Status::ok();
}

Status BrokerSearch::take_state() {
  std::shared_ptr<const rpc::ClusterSnapshot> newest = context_.snapshots.get();
  if (newest == nullptr || newest->state_version() == 0) {
    return {StatusCode::NotReady, "the distributor has no cluster state yet"};
  }
  FJORD_TRY(context_.state_in_force());
  if (newest->distribution_bits() > SliceSet::kBitsMax) {
    return {StatusCode::NotImplemented,
            fmt::format("a cluster with {} distribution bits cannot be searched, more than {}",
                        newest->distribution_bits(), SliceSet::kBitsMax)};
  }
  if (state_ != nullptr && state_->state_version() == newest->state_version()) return Status::ok();
  const bool same_slices = state_ != nullptr && state_->distribution_bits() == newest->distribution_bits();
  state_ = std::move(newest);
  tried_.clear();
  context_.memory.follow(state_->state_version());
  if (same_slices) return Status::ok();
  ++generation_;
  searched_ = SliceSet(state_->distribution_bits());
  under_way_ = SliceSet(state_->distribution_bits());
  hits_.clear();
  candidates_ = 0;
  return Status::ok();
}

bool BrokerSearch::is_known_absent(std::size_t slice) const {
  if (request_.session) return false;
  const auto at = context_.memory.absent.find(slice);
  return at != context_.memory.absent.end() && context_.clock.now() - at->second < kAbsentFor;
}

bool BrokerSearch::may_ask(std::uint16_t node, std::size_t slice) const {
  if (!state_->storage_serves(node)) return false;
  // The pending state may be in force elsewhere already: replicas of nodes that are down in it may miss writes.
  if (const ClusterView* pending = state_->pending()) {
    const NodeState next = pending->node(NodeId::storage(node)).state;
    if (next != NodeState::Up && next != NodeState::Retired) return false;
  }
  const auto tried = tried_.find(slice);
  return tried == tried_.end() || !tried->second.contains(node);
}

std::optional<std::uint16_t> BrokerSearch::choose(std::size_t slice) {
  const auto home = context_.memory.homes.find(slice);
  if (home != context_.memory.homes.end() && may_ask(home->second, slice)) return home->second;
  std::vector<ReplicaChoice::Member> members =
      ReplicaChoice::members_of(votes_, state_->ideal_nodes(searched_.bucket(slice)));
  std::erase_if(members, [&](const ReplicaChoice::Member& member) { return !may_ask(member.node, slice); });
  if (members.empty()) return std::nullopt;
  const MonotonicTime now = context_.clock.now();
  std::vector<ReplicaChoice::Member> fast = members;
  std::erase_if(fast, [&](const ReplicaChoice::Member& member) {
    const auto until = context_.memory.avoided.find(member.node);
    const bool is_avoided = until != context_.memory.avoided.end() && until->second > now;
    return is_avoided || context_.replicas.is_slow(member.node, now);
  });
  for (const ReplicaChoice::Member& member : members) classes_.emplace(member.node, member.replica_class);
  return context_.replicas.choose(votes_, fast.empty() ? members : fast,
                                  state_->state().read_shares_of(searched_.bucket(slice).bits()));
}

void BrokerSearch::ask_later() {
  if (is_waiting_) return;
  is_waiting_ = true;
  context_.executor.post_after(context_.options.retry_delay, while_alive(weak_from_this(), [](BrokerSearch& self) {
                                 self.is_waiting_ = false;
                                 self.tried_.clear();
                                 self.ask();
                               }));
}

void BrokerSearch::ask() {
  if (Status status = take_state(); !status) {
    note_missing(status);
    return ask_later();
  }
  std::map<std::uint16_t, SliceSet> by_node;
  std::map<std::uint16_t, std::vector<std::size_t>> by_distributor;
  for (std::size_t slice = 0; slice < searched_.slices(); ++slice) {
    if (searched_.contains(slice) || under_way_.contains(slice)) continue;
    if (is_known_absent(slice)) {
      note_searched(slice);
    } else if (const auto node = choose(slice)) {
      by_node.try_emplace(*node, searched_.bits()).first->second.add(slice);
      under_way_.add(slice);
    } else if (const auto owner = state_->distributor_of(searched_.bucket(slice))) {
      by_distributor[*owner].push_back(slice);
      under_way_.add(slice);
    } else {
      note_missing({StatusCode::Unavailable, "no distributor is up"});
      ask_later();
    }
  }
  for (const auto& [node, slices] : by_node) ask_node(node, slices);
  for (const auto& [distributor, slices] : by_distributor) ask_distributor(distributor, slices);
  if (searched_.count() == searched_.slices()) finish(std::nullopt);
}

void BrokerSearch::ask_node(std::uint16_t node, const SliceSet& slices) {
  const MonotonicTime now = context_.clock.now();
  const Duration left = deadline_ - now;
  const Duration timeout = std::min(left, std::max<Duration>(left / 2, kCallLeast));
  rpc::SearchSlices question;
  question.state_version = state_->state_version();
  question.bits = slices.bits();
  question.slices = slices.bytes();
  for (const QueryVariant& variant : variants_) question.variants.push_back(variant.text());
  question.context = request_.context;
  question.hits_max = request_.limit + 1;
  question.reserve_micros = reserve_micros_;
  question.session = request_.session;
  question.timeout_us = rpc::time_for_callee(timeout).count();
  question.with_words = request_.explain;
  context_.replicas.prepare(node, question);
  rpc::call(context_.transport, state_->info().storage_addresses[node], std::move(question), timeout, context_.executor,
            while_alive(weak_from_this(), [node, slices, now, generation = generation_](
                                              BrokerSearch& self, Result<rpc::SearchSlicesReply> answer) {
              if (self.generation_ == generation) self.on_answer(node, slices, now, std::move(answer));
            }));
}

void BrokerSearch::on_answer(std::uint16_t node, const SliceSet& slices, MonotonicTime asked_at,
                             Result<rpc::SearchSlicesReply> answer) {
  rpc::SearchNode report;
  report.node = node;
  report.asked = static_cast<std::uint32_t>(slices.count());
  report.took_us = (context_.clock.now() - asked_at).count();
  slices.for_each([&](std::size_t slice) { under_way_.remove(slice); });
  if (!answer) {
    context_.memory.avoided[node] = context_.clock.now() + context_.options.avoid_for;
    report.status = answer.error().with_context(NodeId::storage(node).to_string());
    slices.for_each([&](std::size_t slice) { tried_[slice].insert(node); });
  } else {
    context_.memory.avoided.erase(node);
    const auto known = classes_.find(node);
    const ReplicaChoice::Member member{node, known == classes_.end() ? 0 : known->second};
    context_.replicas.on_answer(votes_, member, *answer, Duration(report.took_us), report);
    for (const rpc::WordPages& word : answer->words) pages_[word.word] = std::max(pages_[word.word], word.pages);
    take_slices(node, slices, *answer, report);
  }
  if (!report.status) note_missing(report.status);
  add_report(std::move(report));
  ask();
}

void BrokerSearch::add_report(rpc::SearchNode report) {
  const auto last =
      std::find_if(nodes_.rbegin(), nodes_.rend(), [&](const rpc::SearchNode& one) { return one.node == report.node; });
  if (nodes_.size() < kReportsMax || last == nodes_.rend()) {
    nodes_.push_back(std::move(report));
  } else {
    *last = std::move(report);
  }
}

void BrokerSearch::take_slices(std::uint16_t node, const SliceSet& slices, rpc::SearchSlicesReply& answer,
                               rpc::SearchNode& report) {
  report.search_us = answer.search_us;
  report.candidates = answer.candidates;
  report.scanned = answer.scanned;
  report.status = answer.status ? answer.refused.with_context(NodeId::storage(node).to_string())
                                : answer.status.with_context(NodeId::storage(node).to_string());
  SliceSet found(slices.bits());
  if (answer.status) found = SliceSet(slices.bits(), answer.searched);
  slices.for_each([&](std::size_t slice) {
    if (found.contains(slice)) {
      note_searched(slice);
      ++report.searched;
    } else {
      tried_[slice].insert(node);
      context_.memory.homes.erase(slice);
    }
  });
  candidates_ += answer.candidates;
  for (rpc::SearchHit& hit : answer.hits) hits_.push_back(from_message(std::move(hit)));
}

void BrokerSearch::ask_distributor(std::uint16_t distributor, const std::vector<std::size_t>& slices) {
  rpc::GetBucketNodes question;
  question.state_version = state_->state_version();
  for (const std::size_t slice : slices) {
    question.buckets.push_back(searched_.bucket(slice));
    for (const std::uint16_t node : tried_[slice]) {
      if (std::find(question.avoid.begin(), question.avoid.end(), node) == question.avoid.end()) {
        question.avoid.push_back(node);
      }
    }
  }
  const MonotonicTime now = context_.clock.now();
  const Duration left = deadline_ - now;
  rpc::call(context_.transport, state_->info().distributor_addresses[distributor], std::move(question),
            std::min(left, std::max<Duration>(left / 2, kCallLeast)), context_.executor,
            while_alive(weak_from_this(), [slices, now, generation = generation_](
                                              BrokerSearch& self, Result<rpc::GetBucketNodesReply> answer) {
              if (self.generation_ == generation) self.on_homes(slices, now, answer);
            }));
}

void BrokerSearch::on_homes(const std::vector<std::size_t>& slices, MonotonicTime asked_at,
                            const Result<rpc::GetBucketNodesReply>& answer) {
  for (const std::size_t slice : slices) under_way_.remove(slice);
  Status whole = answer ? answer->status : answer.error();
  if (!whole) note_missing(whole);
  bool is_later = !whole;
  for (const rpc::BucketNode& one : whole ? answer->buckets : std::vector<rpc::BucketNode>()) {
    const std::size_t slice = one.bucket.bits();
    if (one.status) {
      context_.memory.homes[slice] = one.node;
      // A node that has just refused, for example because it is still indexing, is asked again only later.
      is_later = is_later || tried_[slice].contains(one.node);
    } else if (one.status.code() == StatusCode::NotFound) {
      context_.memory.absent[slice] = asked_at;
      note_searched(slice);
    } else {
      note_missing(one.status);
      is_later = true;
    }
  }
  if (searched_.count() == searched_.slices()) return finish(std::nullopt);
  if (is_later) return ask_later();
  ask();
}

void BrokerSearch::note_searched(std::size_t slice) { searched_.add(slice); }

void BrokerSearch::note_missing(const Status& why) { missing_ = why; }

void BrokerSearch::finish(std::optional<Status> error) {
  if (is_over_) return;
  is_over_ = true;
  rpc::SearchReply reply;
  reply.status = error.value_or(Status::ok());
  reply.missing = Status::ok();
  reply.took_us = (context_.clock.now() - began_).count();
  if (!error) {
    reply.state_version = state_->state_version();
    reply.slices = static_cast<std::uint32_t>(searched_.slices());
    reply.slices_searched = static_cast<std::uint32_t>(searched_.count());
    if (reply.slices_searched < reply.slices) {
      reply.missing = Status(missing_.is_ok() ? StatusCode::Unavailable : missing_.code(),
                             fmt::format("{} of {} slices were not searched: {}", reply.slices - reply.slices_searched,
                                         reply.slices, missing_.message()));
    }
    reply.candidates = candidates_;
    for (Hit& hit : merge_hits(std::move(hits_), request_.limit, reserve_micros_)) {
      reply.hits.push_back(to_message(std::move(hit)));
    }
    for (const QueryVariant& variant : variants_) reply.variants.push_back(variant.text());
    if (request_.explain) {
      reply.nodes = std::move(nodes_);
      reply.choice = votes_.how;
      for (const auto& [word, pages] : pages_) reply.words.push_back({word, pages});
    }
  }
  done_(std::move(reply));
}

}  // namespace fjord::search
