#include "controller.h"

#include <array>
#include <charconv>

#include "fjord/cluster/distribution.h"
#include "fjord/common/log.h"
#include "live_config.h"

namespace fjord::fleetcontroller {
namespace {

Result<std::uint64_t> time_limit_in(const StoredRecord& record) {
  std::uint64_t limit_us = 0;
  const char* const end = record.content.data() + record.content.size();
  const std::from_chars_result read = std::from_chars(record.content.data(), end, limit_us);
  if (record.revision != 0 && (read.ptr != end || read.ec != std::errc())) {
    return Status(StatusCode::Corruption, "the record of times is no number: " + record.content);
  }
  return limit_us;
}

}  // namespace

Controller::Controller(const FleetControllerOptions& options, Runtime& runtime, rpc::Transport& transport,
                       ClusterStateStore& store)
    : options_(options),
      clock_(runtime.clock),
      transport_(transport),
      store_(store),
      versions_(runtime.metrics.counter("fjord_fleetcontroller_states_total", "Cluster states published")),
      nodes_up_(runtime.metrics.gauge("fjord_fleetcontroller_nodes_up", "Nodes up in the cluster state")),
      leads_(runtime.metrics.gauge("fjord_fleetcontroller_leads", "1 while this fleet controller leads")),
      slow_nodes_(runtime.metrics.gauge("fjord_fleetcontroller_slow_nodes", "Storage nodes that are marked as slow")),
      executor_(runtime.scheduler.make_executor("controller")) {}

Controller::~Controller() {
  store_.leave();
  end_executor(executor_);
}

void Controller::start() {
  executor_->post([this] {
    store_.campaign(options_.name, *executor_, [this](const Leadership& now) { on_leadership(now); });
    tick();
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Election

void Controller::on_leadership(const Leadership& leadership) {
  leadership_ = leadership;
  if (leadership.mine && leadership.term != term_) {
    if (phase_ != Phase::Standby) step_down("it leads in a newer term");
    begin_term(leadership.term);
  } else if (!leadership.mine && phase_ != Phase::Standby) {
    step_down(leadership.leader.empty() ? "its session is over" : leadership.leader + " leads");
  }
}

void Controller::enter(Phase phase, std::string trouble) {
  static constexpr std::array kNames = {"standby", "loading", "leading", "stranded"};
  phase_ = phase;
  trouble_ = std::move(trouble);
  const std::lock_guard lock(health_mutex_);
  health_ = {kNames[static_cast<std::size_t>(phase)], trouble_};
}

FleetControllerHealth Controller::health() const {
  const std::lock_guard lock(health_mutex_);
  return health_;
}

void Controller::begin_term(std::uint64_t term) {
  log::info("controller", "{} was elected, term {}", options_.name, term);
  ++reign_;
  term_ = term;
  enter(Phase::Loading, "reads the record of the cluster");
  has_confirmed_ = false;
  saving_ = false;
  storing_time_ = false;
  confirmed_at_ = clock_.now();
  confirm();
  load();
}

void Controller::step_down(const std::string& why) {
  log::info("controller", "{} no longer leads in term {}: {}", options_.name, term_, why);
  ++reign_;
  enter(Phase::Standby);
  term_ = 0;
  saving_ = false;
  nodes_.clear();
  leads_.set(0);
  std::deque<Change> waiting = std::move(changes_);
  changes_.clear();
  for (Change& change : waiting) change.respond(rpc::error_reply(change.request, not_leader()));
}

void Controller::confirm() {
  if (phase_ == Phase::Standby) return;
  const MonotonicTime asked_at = clock_.now();
  asked_at_ = asked_at;
  store_.confirm(term_, [this, reign = reign_, asked_at](Status confirmed) {
    if (reign != reign_) return;
    if (confirmed) {
      confirmed_at_ = std::max(confirmed_at_, asked_at);
      has_confirmed_ = true;
    } else if (confirmed.code() == StatusCode::WrongDistribution) {
      step_down(confirmed.message());
    }
  });
}

bool Controller::is_sure() const {
  // The last third of the timeout is a margin for clocks with different rates and for messages in flight.
  return has_confirmed_ && clock_.now() - confirmed_at_ <= store_.session_timeout() * 2 / 3;
}

bool Controller::still_leads() {
  if (phase_ != Phase::Standby && clock_.now() - confirmed_at_ > store_.session_timeout()) {
    step_down("the store was not reached for so long that somebody else may lead");
  }
  return phase_ != Phase::Standby;
}

// ---------------------------------------------------------------------------------------------------------------------
// Store

void Controller::load() {
  store_.read(kTimeRecord, [this, reign = reign_](Result<StoredRecord> stored) {
    if (reign == reign_) on_time_read(std::move(stored));
  });
}

void Controller::on_time_read(Result<StoredRecord> stored) {
  if (!stored) return load_again(stored.error());
  const Result<std::uint64_t> limit_us = time_limit_in(*stored);
  if (!limit_us) return load_again(limit_us.error());
  time_revision_ = stored->revision;
  grants_.begin(*limit_us);
  store_.read(kSchemaRecord, [this, reign = reign_](Result<StoredRecord> schemas) {
    if (reign == reign_) on_schemas_read(std::move(schemas));
  });
}

void Controller::store_time_limit() {
  const std::optional<std::uint64_t> limit_us = grants_.limit_to_store(clock_.wall_now());
  if (!limit_us || storing_time_) return;
  storing_time_ = true;
  store_.write(term_, kTimeRecord, time_revision_, std::to_string(*limit_us),
               [this, reign = reign_, limit_us = *limit_us](Result<std::uint64_t> written) {
                 if (reign != reign_) return;
                 storing_time_ = false;
                 if (written) {
                   time_revision_ = *written;
                   grants_.stored(limit_us);
                 } else if (written.error().code() == StatusCode::WrongDistribution) {
                   step_down(written.error().message());
                 } else {
                   look_for_time_limit();
                 }
               });
}

void Controller::look_for_time_limit() {
  storing_time_ = true;
  store_.read(kTimeRecord, [this, reign = reign_](Result<StoredRecord> stored) {
    if (reign != reign_) return;
    const Result<std::uint64_t> limit_us = stored ? time_limit_in(*stored) : stored.error();
    if (limit_us) {
      time_revision_ = stored->revision;
      grants_.stored(*limit_us);
      storing_time_ = false;
      return;
    }
    executor_->post_after(options_.poll_interval, [this, reign] {
      if (reign == reign_) look_for_time_limit();
    });
  });
}

void Controller::on_schemas_read(Result<StoredRecord> stored) {
  if (!stored) return load_again(stored.error());
  if (stored->revision != 0) {
    Result<SchemaRecord> parsed = parse_schema_record(stored->content);
    if (!parsed) return load_again(parsed.error());
    schemas_ = std::move(*parsed);
  } else {
    schemas_ = {};
  }
  schema_revision_ = stored->revision;
  store_.read(kClusterRecord, [this, reign = reign_](Result<StoredRecord> cluster) {
    if (reign == reign_) on_cluster_read(std::move(cluster));
  });
}

void Controller::on_cluster_read(Result<StoredRecord> stored) {
  if (!stored) return load_again(stored.error());
  ClusterRecord record = first_record();
  if (stored->revision != 0) {
    Result<ClusterRecord> parsed = parse_cluster_record(stored->content);
    if (!parsed) return load_again(parsed.error());
    const bool is_taken_over =
        parsed->nodes.distribution.empty();  // The record comes from a state file, which has no nodes.
    if (is_taken_over) parsed->nodes = record.nodes;
    if (is_taken_over) {
      parsed->active.distribution = record.nodes.distribution;
      parsed->active.distributors = record.nodes.distributors;
      parsed->active.storage = record.nodes.storage;
    } else if (parsed->nodes != record.nodes) {
      log::info("controller", "the store's list of nodes counts, not the configuration file's");
    }
    record = std::move(*parsed);
  }
  revision_ = stored->revision;
  // This write makes further writes of an older term fail, because it changes the revision.
  save(std::move(record), [this](const Status& saved) {
    if (saved) begin_to_lead();
  });
}

void Controller::load_again(const Status& why) {
  log::error("controller", "the record of the cluster: {}", why.to_string());
  enter(Phase::Loading, why.to_string());
  executor_->post_after(options_.poll_interval, [this, reign = reign_] {
    if (reign == reign_) load();
  });
}

ClusterRecord Controller::first_record() const {
  ClusterRecord record;
  record.nodes.distribution = options_.distribution;
  record.nodes.distributors = options_.distributors;
  record.nodes.storage = options_.storage;
  record.nodes.distribution_bits = options_.distribution_bits;
  return record;
}

void Controller::begin_to_lead() {
  if (phase_ == Phase::Leading) return;
  enter(Phase::Leading);
  leads_.set(1);
  if (nodes_.empty()) {
    elected_at_ = clock_.now();
    pending_since_ = elected_at_;
  }
  update_nodes();
  for (std::size_t i = 0; i < nodes_.size(); ++i) poll(i);
}

void Controller::save(ClusterRecord next, std::function<void(const Status&)> done) {
  FJORD_CHECK(!saving_);
  saving_ = true;
  next.term = term_ + next.term_base;
  std::string bytes = encode(next);
  store_.write(
      term_, kClusterRecord, revision_, std::move(bytes),
      [this, reign = reign_, next = std::move(next), done = std::move(done)](Result<std::uint64_t> written) mutable {
        if (reign != reign_) {
          done(Status(StatusCode::Timeout, "the leadership was lost while it was being stored"));
          return;
        }
        saving_ = false;
        if (written) {
          revision_ = *written;
          take_record(std::move(next));
          done(Status::ok());
          return after_save();
        }
        const Status error = written.error();
        log::error("controller", "cannot store the record of the cluster: {}", error.to_string());
        done(error);
        if (error.code() == StatusCode::WrongDistribution) return step_down(error.message());
        // The write was possibly applied, so read the record again.
        load_again(error);
      });
}

void Controller::take_record(ClusterRecord record) {
  record_ = std::move(record);
  const Result<ClusterState> active = ClusterState::parse(record_.active.state);
  FJORD_CHECK_MSG(active.has_value(), "the stored cluster state does not parse: " + record_.active.state);
  active_ = *active;
  pending_.reset();
  if (record_.pending) {
    const Result<ClusterState> pending = ClusterState::parse(record_.pending->state);
    FJORD_CHECK_MSG(pending.has_value(), "the stored pending state does not parse: " + record_.pending->state);
    pending_ = *pending;
  }
  grants_.follow(active_.time_floor_us(),
                 pending_ ? std::optional<std::uint64_t>(pending_->time_floor_us()) : std::nullopt);
}

void Controller::after_save() {
  if (phase_ != Phase::Leading || saving_) return;
  if (!changes_.empty()) {
    Change change = std::move(changes_.front());
    changes_.pop_front();
    change.run(std::move(change.request), std::move(change.respond));
    if (!saving_)
      executor_->post([this, reign = reign_] {
        if (reign == reign_) after_save();
      });
    return;
  }
  update_state();
}

// ---------------------------------------------------------------------------------------------------------------------
// Settings

Duration Controller::setting(std::string_view name, Duration otherwise) const {
  return milliseconds(value_or(record_.config(), name, std::chrono::duration_cast<milliseconds>(otherwise).count()));
}

Duration Controller::lease() const {
  return std::min(setting("controller.lease", options_.lease), down_after() * 5 / 6);
}

Duration Controller::maintenance_max() const {
  return milliseconds(value_or_default(record_.config(), "controller.maintenance_max"));
}

MonitorOptions Controller::monitor_options() const {
  MonitorOptions options;
  options.down_after = down_after();
  options.crash_period = setting("controller.crash_period", options_.crash_period);
  options.stable_period = setting("controller.stable_period", options_.stable_period);
  options.refused_after = setting("controller.refused_after", options_.refused_after);
  options.crashes_max =
      static_cast<unsigned>(value_or(record_.config(), "controller.crashes_max", options_.crashes_max));
  return options;
}

GeneratorOptions Controller::generator_options() const {
  const SettingValues& config = record_.config();
  const auto ratio = [&](std::string_view name) { return static_cast<double>(value_or(config, name, 0)) / 100; };
  GeneratorOptions options;
  options.distribution_bits = static_cast<unsigned>(
      value_or(config, "cluster.distribution_bits", static_cast<std::int64_t>(record_.nodes.distribution_bits)));
  options.down_after = down_after();
  options.grace_until = elected_at_ + std::max(options_.start_grace, down_after());
  options.transition_time = setting("controller.transition_time", options_.transition_time);
  options.maintenance_max = maintenance_max();
  options.wall_now_us = clock_.wall_now().us;
  options.crashes_max = monitor_options().crashes_max;
  options.storage_up_ratio_min = ratio("controller.storage_up_ratio_min");
  options.distributors_up_ratio_min = ratio("controller.distributors_up_ratio_min");
  options.group_up_ratio_min = ratio("controller.group_up_ratio_min");
  options.exceptions = record_.nodes.exceptions;
  options.exceptions_bits = static_cast<unsigned>(record_.nodes.exceptions_bits);
  return options;
}

Result<DistributionConfig> Controller::distribution() const {
  FJORD_TRY_ASSIGN(DistributionConfig distribution, DistributionConfig::parse(record_.nodes.distribution));
  const std::int64_t redundancy = value_or(record_.config(), "cluster.redundancy", distribution.redundancy());
  return distribution.with_redundancy(static_cast<unsigned>(redundancy));
}

}  // namespace fjord::fleetcontroller
