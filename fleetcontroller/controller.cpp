#include "controller.h"

#include <utility>

#include "fjord/common/log.h"

namespace fjord::fleetcontroller {

using Phase = Candidate::Phase;

Controller::Controller(const FleetControllerOptions& options, Runtime& runtime, rpc::Transport& transport,
                       ClusterStateStore& store)
    : options_(options),
      store_(store),
      leads_(runtime.metrics.gauge("fjord_fleetcontroller_leads", "1 while this fleet controller leads")),
      executor_(runtime.scheduler.make_executor("controller")),
      candidate_(options.name, runtime.clock, store, *executor_,
                 {.elected = [this] { records_.begin_term(); }, .ended = [this] { on_term_ended(); }}),
      records_(options_, runtime.clock, store, candidate_, *executor_,
               {.loaded = [this] { on_records_loaded(); }, .written = [this] { administration_.run_next(); }}),
      settings_(options_, records_),
      poller_(options_, runtime.clock, transport, *executor_, candidate_, records_, settings_,
              {.answered = [this] { publisher_.update_state(); },
               .records_behind = [this](const std::string& why) { strand(why); }}),
      publisher_(options.name, runtime, candidate_, records_, settings_, poller_),
      reports_(options_, runtime.clock, records_, settings_, poller_, publisher_),
      administration_(options_, runtime.clock, transport, *executor_, candidate_, records_, settings_, poller_,
                      publisher_),
      balance_(options_, runtime.clock, runtime.metrics, transport, *executor_, candidate_, records_, poller_,
               publisher_, administration_),
      recovery_(options_, runtime.clock, transport, *executor_, candidate_, records_,
                [this](const std::string& why) { strand(why); }) {}

Controller::~Controller() {
  store_.leave();
  end_executor(executor_);
}

void Controller::start() {
  executor_->post([this] {
    candidate_.campaign();
    tick();
  });
}

void Controller::tick() {
  poller_.excuse_silence();
  candidate_.tick();
  if (candidate_.phase() == Phase::Leading) {
    poller_.tick();
    records_.store_time_limit();
    publisher_.update_slow_nodes();
    publisher_.update_state();
    publisher_.count_nodes();
    balance_.tick();
  }
  executor_->post_after(candidate_.tick_pause(options_.poll_interval), [this] { tick(); });
}

void Controller::on_term_ended() {
  records_.end_term();
  poller_.clear();
  publisher_.end_term();
  balance_.end_term();
  leads_.set(0);
  administration_.refuse_all();
}

void Controller::on_records_loaded() {
  if (candidate_.phase() == Phase::Leading) return;
  candidate_.enter(Phase::Leading);
  leads_.set(1);
  if (poller_.nodes().empty()) publisher_.begin();
  poller_.update_nodes();
  poller_.poll_all();
}

void Controller::strand(const std::string& why) {
  const std::string trouble = why +
                              ", of which the store knows nothing. Nothing is published, and nodes go on as they are. "
                              "`fjord state recover --from-nodes` takes over what they know; --dry-run shows it";
  candidate_.enter(Phase::Stranded, trouble);
  log::error("controller", "{} has no records: {}", options_.name, trouble);
  leads_.set(0);
  poller_.clear();
  publisher_.end_term();
  balance_.end_term();
  administration_.refuse_all();
}

void Controller::handle(rpc::Request request, rpc::Responder respond) {
  if (auto* lost = std::get_if<rpc::RecoverState>(&request); lost != nullptr && candidate_.still_leads()) {
    return recovery_.recover(*lost, std::move(respond));
  }
  if (!candidate_.may_publish()) return respond(rpc::error_reply(request, candidate_.why_not_leading()));
  if (auto* get = std::get_if<rpc::GetClusterInfo>(&request)) {
    respond(reports_.cluster_info(*get));
  } else if (std::holds_alternative<rpc::GetStatus>(request)) {
    respond(reports_.status());
  } else if (std::holds_alternative<rpc::GetConfig>(request)) {
    respond(reports_.config());
  } else if (auto* asked = std::get_if<rpc::GetHistory>(&request)) {
    respond(reports_.history(*asked));
  } else if (auto* balance = std::get_if<rpc::Balance>(&request)) {
    balance_.handle(std::move(*balance), std::move(respond));
  } else if (auto* schemas = std::get_if<rpc::DeploySchemas>(&request)) {
    administration_.deploy_schemas(std::move(*schemas), std::move(respond));
  } else if (auto* nodes = std::get_if<rpc::ChangeNodes>(&request)) {
    administration_.change_nodes(std::move(*nodes), std::move(respond));
  } else if (auto* config = std::get_if<rpc::ChangeConfig>(&request)) {
    administration_.change_config(std::move(*config), std::move(respond));
  }
}

}  // namespace fjord::fleetcontroller
