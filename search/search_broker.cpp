#include "fjord/search/search_broker.h"

#include <map>
#include <utility>

#include "broker_search.h"
#include "fjord/common/callback_guard.h"

namespace fjord::search {

class SearchBroker::Impl {
 public:
  Impl(const SearchBrokerOptions& options, Runtime& runtime, rpc::Transport& transport,
       const rpc::SnapshotHolder& snapshots, std::function<Status()> state_in_force, BrokerDocuments documents)
      : options_(options),
        state_in_force_(std::move(state_in_force)),
        searches_max_(runtime.tunables.declare("search.searches_max")),
        searches_(runtime.metrics.counter("fjord_search_searches_total", "Searches of clients")),
        partial_(runtime.metrics.counter("fjord_search_partial_total", "Searches whose answer lacked slices")),
        refused_(runtime.metrics.counter("fjord_search_refused_total",
                                         "Searches refused: too many, a broken query or context, or no cluster state")),
        seconds_(runtime.metrics.histogram("fjord_search_seconds", "Time of a search, with all storage nodes")),
        executor_(runtime.scheduler.make_executor("search")),
        mailbox_(*executor_),
        replicas_(runtime.clock, runtime.tunables, runtime.metrics, mailbox_, std::move(documents.tables)),
        synonyms_(runtime.clock, runtime.tunables, mailbox_, std::move(documents.synonyms)),
        recorder_(runtime.tunables, runtime.metrics, runtime.random, *executor_, mailbox_,
                  std::move(documents.queries)),
        context_{options_,
                 runtime.clock,
                 *executor_,
                 transport,
                 snapshots,
                 state_in_force_,
                 runtime.tunables.declare("search.reserve_micros"),
                 runtime.tunables.declare("search.timeout"),
                 memory_,
                 replicas_,
                 synonyms_,
                 recorder_} {}

  ~Impl() {
    mailbox_.close();
    end_executor(executor_);
  }

  void post(rpc::Search request, rpc::Responder respond) {
    executor_->post([this, request = std::move(request), respond = std::move(respond)]() mutable {
      begin(std::move(request), std::move(respond));
    });
  }

 private:
  void begin(rpc::Search request, rpc::Responder respond) {
    searches_.add();
    if (under_way_.size() >= static_cast<std::size_t>(searches_max_.value())) {
      refused_.add();
      rpc::SearchReply reply;
      reply.status = {StatusCode::Busy,
                      "this distributor has " + std::to_string(under_way_.size()) + " searches under way"};
      return respond(std::move(reply));
    }
    const std::uint64_t number = ++last_number_;
    auto answer = std::make_shared<rpc::Responder>(std::move(respond));
    auto search = std::make_shared<BrokerSearch>(context_, std::move(request), [=, this](rpc::SearchReply reply) {
      under_way_.erase(number);
      if (!reply.status) refused_.add();
      if (reply.slices_searched < reply.slices) partial_.add();
      seconds_.observe(Duration(reply.took_us));
      (*answer)(std::move(reply));
    });
    under_way_.emplace(number, search);
    search->start();
  }

  SearchBrokerOptions options_;
  std::function<Status()> state_in_force_;
  Tunable& searches_max_;
  Counter& searches_;
  Counter& partial_;
  Counter& refused_;
  Histogram& seconds_;
  BrokerMemory memory_;
  std::uint64_t last_number_ = 0;
  std::unique_ptr<Executor> executor_;
  visitors::Mailbox mailbox_;
  ReplicaChoice replicas_;
  SynonymList synonyms_;
  QueryRecorder recorder_;
  BrokerContext context_;
  std::map<std::uint64_t, std::shared_ptr<BrokerSearch>> under_way_;
};

SearchBroker::SearchBroker(const SearchBrokerOptions& options, Runtime& runtime, rpc::Transport& transport,
                           const rpc::SnapshotHolder& snapshots, std::function<Status()> state_in_force,
                           BrokerDocuments documents)
    : impl_(std::make_unique<Impl>(options, runtime, transport, snapshots, std::move(state_in_force),
                                   std::move(documents))) {}

SearchBroker::~SearchBroker() = default;

bool SearchBroker::handle(rpc::Request& request, rpc::Responder& respond) {
  auto* search = std::get_if<rpc::Search>(&request);
  if (search == nullptr) return false;
  impl_->post(std::move(*search), std::move(respond));
  return true;
}

}  // namespace fjord::search
