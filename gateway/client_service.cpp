#include "fjord/gateway/client_service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <utility>

#include "call.h"
#include "context.h"
#include "documents.h"
#include "fjord/common/metrics.h"
#include "fjord/library/client.h"
#include "inbox.h"
#include "jobs.h"
#include "streams.h"
#include "subscriptions.h"
#include "visits.h"
#include "workers.h"

namespace fjord::gateway {
namespace {

constexpr Duration kIdleCheckInterval = milliseconds(100);
/// Longest wait for the schemas when a stream is opened.
constexpr Duration kLibraryTimeout = seconds(10);

}  // namespace

class ClientService::Impl {
 public:
  Impl(ClientServiceOptions options, Runtime& runtime)
      : options_(std::move(options)),
        metrics_(runtime.metrics),
        calls_max_(runtime.tunables.declare("gateway.calls_max")),
        buffer_bytes_(runtime.tunables.declare("gateway.buffer_bytes")),
        random_(runtime.random.fork()),
        executor_(runtime.scheduler.make_executor("gateway")),
        inbox_(std::make_shared<Inbox>(*executor_)),
        workers_(std::make_unique<Workers>(runtime.scheduler, inbox_)),
        context_{inbox_,
                 *workers_,
                 runtime.clock,
                 random_,
                 options_.node,
                 [this]() -> Client& { return client(); },
                 runtime.tunables.declare("gateway.idle_timeout"),
                 runtime.tunables.declare("gateway.chunk_bytes_max")},
        visits_(context_, runtime.metrics, "visit", runtime.tunables.declare("gateway.visits_max")),
        subscriptions_(context_, runtime.metrics, "subscription",
                       runtime.tunables.declare("gateway.subscriptions_max")),
        jobs_(context_, runtime.tunables.declare("gateway.results_bytes_max")) {
    add_documents();
    add_visits();
    add_subscriptions();
    add_jobs();
  }

  ~Impl() {
    inbox_->close();
    workers_.reset();
    end_executor(executor_);
    // The members are destroyed in reverse order: the streams before the client that they use.
  }

  bool handle(std::string_view frame, Answer& answer) {
    Result<CallHeader> header = read_header(frame);
    if (!header) return false;
    const auto method = methods_.find(header->method);
    if (method == methods_.end()) return false;
    method->second(frame,
                   std::make_shared<CallState>(std::move(*header), std::move(answer), options_.node, in_progress_));
    return true;
  }

  void stop() {
    inbox_->post([this] {
      is_stopping_ = true;
      visits_.end_all(stopping());
      subscriptions_.end_all(stopping());
      jobs_.end_waits(stopping());
    });
  }

 private:
  /// Registers a call: `run` gets the request on the executor.
  template <typename Request, typename Reply>
  void add(const std::string& name, std::function<void(Request, Call<Reply>)> run) {
    Counter& counted =
        metrics_.counter("fjord_gateway_calls_total", "Calls of Thrift clients (api/client.thrift).", {{"call", name}});
    methods_[name] = [this, run = std::move(run), &counted](std::string_view frame, std::shared_ptr<CallState> state) {
      counted.add();
      const Call<Reply> call(std::move(state));
      if (in_progress_->load() > calls_max_.value()) {
        return call.end(over_limit(StatusCode::Busy, fmt::format("{} calls are in progress", in_progress_->load() - 1),
                                   calls_max_));
      }
      const auto request = std::make_shared<Request>();
      if (const Status status = read_argument(frame, *request); !status) return call.end(status);
      inbox_->post([this, run, request, call] {
        if (is_stopping_) return call.end(stopping());
        run(std::move(*request), call);
      });
    };
  }

  void add_documents() {
    add<api::ReadDocument, api::ReadDocumentReply>("readDocument", [this](api::ReadDocument request, auto call) {
      read_document(client(), std::move(request), std::move(call));
    });
    add<api::WriteDocument, api::WriteDocumentReply>("writeDocument", [this](api::WriteDocument request, auto call) {
      write_document(client(), std::move(request), std::move(call));
    });
  }

  void add_visits() {
    add<api::OpenVisit, api::OpenVisitReply>("openVisit", [this](api::OpenVisit request, auto call) {
      const Duration timeout = timeout_of(request.timeout_ms);
      visits_.open(std::move(call), timeout,
                   [client = &client(), request = std::move(request), bytes = buffer_bytes()] {
                     return VisitSource::open(*client, request, bytes);
                   });
    });
    add<api::NextVisit, api::NextVisitReply>("nextVisit", [this](const api::NextVisit& request, auto call) {
      visits_.next(request.visit, request.documents_max, request.bytes_max, timeout_of(request.timeout_ms),
                   std::move(call));
    });
    add<api::CloseVisit, api::CloseVisitReply>(
        "closeVisit", [this](const api::CloseVisit& request, auto call) { call.end(visits_.close(request.visit)); });
  }

  void add_subscriptions() {
    add<api::OpenSubscription, api::OpenSubscriptionReply>(
        "openSubscription", [this](api::OpenSubscription request, auto call) {
          const Duration timeout = timeout_of(request.timeout_ms);
          subscriptions_.open(std::move(call), timeout,
                              [client = &client(), request = std::move(request), bytes = buffer_bytes()] {
                                return SubscriptionSource::open(*client, request, bytes);
                              });
        });
    add<api::NextChanges, api::NextChangesReply>("nextChanges", [this](const api::NextChanges& request, auto call) {
      subscriptions_.next(request.subscription, request.changes_max, request.bytes_max, timeout_of(request.timeout_ms),
                          std::move(call));
    });
    add<api::CloseSubscription, api::CloseSubscriptionReply>("closeSubscription",
                                                             [this](const api::CloseSubscription& request, auto call) {
                                                               call.end(subscriptions_.close(request.subscription));
                                                             });
  }

  void add_jobs() {
    add<api::Aggregate, api::AggregateReply>("aggregate", [this](api::Aggregate request, auto call) {
      jobs_.aggregate(std::move(request), std::move(call));
    });
    add<api::StartJob, api::StartJobReply>(
        "startJob", [this](api::StartJob request, auto call) { jobs_.start(std::move(request), std::move(call)); });
    add<api::GetJobs, api::GetJobsReply>(
        "getJobs", [this](const api::GetJobs& request, auto call) { jobs_.list(request, std::move(call)); });
    add<api::AwaitJob, api::AwaitJobReply>(
        "awaitJob", [this](const api::AwaitJob& request, auto call) { jobs_.await(request, std::move(call)); });
    add<api::ChangeJob, api::ChangeJobReply>(
        "changeJob", [this](const api::ChangeJob& request, auto call) { jobs_.change(request, std::move(call)); });
    add<api::GetJobResults, api::GetJobResultsReply>(
        "getJobResults",
        [this](const api::GetJobResults& request, auto call) { jobs_.results(request, std::move(call)); });
  }

  /// Makes the client when it is first used.
  Client& client() {
    if (!client_) {
      client_.emplace(connect(fmt::format("{}", fmt::join(options_.distributors, ",")), {.timeout = kLibraryTimeout}));
      check_idle_later();
    }
    return *client_;
  }

  void check_idle_later() {
    inbox_->post_after(kIdleCheckInterval, [this] {
      visits_.end_idle();
      subscriptions_.end_idle();
      jobs_.end_idle();
      check_idle_later();
    });
  }

  std::size_t buffer_bytes() const { return static_cast<std::size_t>(buffer_bytes_.value()); }

  Status stopping() const {
    return {StatusCode::NotReady,
            options_.node + " ends: ask another distributor, with the last cursor if there is one"};
  }

  using Method = std::function<void(std::string_view, std::shared_ptr<CallState>)>;

  const ClientServiceOptions options_;
  MetricRegistry& metrics_;
  const Tunable& calls_max_;
  const Tunable& buffer_bytes_;
  const std::shared_ptr<CallCount> in_progress_ = std::make_shared<CallCount>(0);
  std::map<std::string, Method, std::less<>> methods_;  ///< Constant after the constructor.
  // Used on the executor of the inbox only.
  Random random_;
  std::optional<Client> client_;
  bool is_stopping_ = false;
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<Inbox> inbox_;
  std::unique_ptr<Workers> workers_;
  Context context_;
  Streams<VisitSource> visits_;
  Streams<SubscriptionSource> subscriptions_;
  Jobs jobs_;
};

ClientService::ClientService(ClientServiceOptions options, Runtime& runtime)
    : impl_(std::make_unique<Impl>(std::move(options), runtime)) {}
ClientService::~ClientService() = default;
bool ClientService::handle(std::string_view frame, Answer& answer) { return impl_->handle(frame, answer); }
void ClientService::stop() { impl_->stop(); }

}  // namespace fjord::gateway
