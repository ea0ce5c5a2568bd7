#include "leader_records.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fjord/common/log.h"
#include "live_config.h"

namespace fjord::fleetcontroller {
namespace {

Result<std::uint64_t> time_limit_in(const StoredRecord& record) {
  std::uint64_t limit_us = 0;
  const char* const end = record.content.data() + record.content.size();
  const std::from_chars_result read = std::from_chars(record.content.data(), end, limit_us);
  if (record.revision != 0 && (read.ptr != end || read.ec != std::errc())) {
    return Status(StatusCode::Corruption, "the record of times is not a number: " + record.content);
  }
  return limit_us;
}

}  // namespace

LeaderRecords::LeaderRecords(const FleetControllerOptions& options, const Clock& clock, ClusterStateStore& store,
                             Candidate& candidate, Executor& executor, Events events)
    : options_(options),
      clock_(clock),
      store_(store),
      candidate_(candidate),
      executor_(executor),
      events_(std::move(events)) {}

void LeaderRecords::begin_term() {
  is_writing_ = false;
  is_storing_time_ = false;
  load();
}

// ---------------------------------------------------------------------------------------------------------------------
// Reading

void LeaderRecords::load() {
  store_.read(kTimeRecord, candidate_.in_this_term([this](const Result<StoredRecord>& stored) {
    if (!stored) return load_again(stored.error());
    on_time_read(*stored);
  }));
}

void LeaderRecords::on_time_read(const StoredRecord& stored) {
  const Result<std::uint64_t> limit_us = time_limit_in(stored);
  if (!limit_us) return load_again(limit_us.error());
  time_revision_ = stored.revision;
  grants_.begin(*limit_us);
  store_.read(kSchemaRecord, candidate_.in_this_term([this](const Result<StoredRecord>& schemas) {
    if (!schemas) return load_again(schemas.error());
    on_schemas_read(*schemas);
  }));
}

void LeaderRecords::on_schemas_read(const StoredRecord& stored) {
  if (stored.revision != 0) {
    Result<SchemaRecord> parsed = parse_schema_record(stored.content);
    if (!parsed) return load_again(parsed.error());
    schemas_ = std::move(*parsed);
  } else {
    schemas_ = {};
  }
  schema_revision_ = stored.revision;
  store_.read(kIdentityRecord, candidate_.in_this_term([this](const Result<StoredRecord>& identity) {
    if (!identity) return load_again(identity.error());
    on_identity_read(*identity);
  }));
}

void LeaderRecords::on_identity_read(const StoredRecord& stored) {
  if (stored.revision != 0) {
    Result<IdentityRecord> parsed = parse_identity_record(stored.content);
    if (!parsed) return load_again(parsed.error());
    identity_ = std::move(*parsed);
  } else {
    identity_ = {};
  }
  identity_revision_ = stored.revision;
  store_.read(kClusterRecord, candidate_.in_this_term([this](const Result<StoredRecord>& cluster) {
    if (!cluster) return load_again(cluster.error());
    on_cluster_read(*cluster);
  }));
}

void LeaderRecords::on_cluster_read(const StoredRecord& stored) {
  ClusterRecord record = first_record();
  if (stored.revision != 0) {
    Result<ClusterRecord> parsed = parse_cluster_record(stored.content);
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
  revision_ = stored.revision;
  // This write makes further writes of an older term fail, because it changes the revision.
  save(std::move(record), [this](const Status& saved) {
    if (saved) events_.loaded();
  });
}

void LeaderRecords::load_again(const Status& why) {
  log::error("controller", "the record of the cluster: {}", why.to_string());
  candidate_.enter(Candidate::Phase::Loading, why.to_string());
  executor_.post_after(options_.poll_interval, candidate_.in_this_term([this] { load(); }));
}

ClusterRecord LeaderRecords::first_record() const {
  ClusterRecord record;
  record.nodes.distribution = options_.distribution;
  record.nodes.distributors = options_.distributors;
  record.nodes.storage = options_.storage;
  record.nodes.distribution_bits = options_.distribution_bits;
  return record;
}

void LeaderRecords::take(ClusterRecord record) {
  cluster_ = std::move(record);
  const Result<ClusterState> active = ClusterState::parse(cluster_.active.state);
  FJORD_CHECK_MSG(active.has_value(), "the stored cluster state does not parse: " + cluster_.active.state);
  active_ = *active;
  pending_.reset();
  if (cluster_.pending) {
    const Result<ClusterState> pending = ClusterState::parse(cluster_.pending->state);
    FJORD_CHECK_MSG(pending.has_value(), "the stored pending state does not parse: " + cluster_.pending->state);
    pending_ = *pending;
  }
  grants_.follow(active_.time_floor_us(),
                 pending_ ? std::optional<std::uint64_t>(pending_->time_floor_us()) : std::nullopt);
}

// ---------------------------------------------------------------------------------------------------------------------
// Writing

void LeaderRecords::save(ClusterRecord next, Done done) {
  FJORD_CHECK(!is_writing_);
  is_writing_ = true;
  next.term = candidate_.term() + next.term_base;
  std::string bytes = encode(next);
  store_.write(candidate_.term(), kClusterRecord, revision_, std::move(bytes),
               [this, term = candidate_.term_changes(), next = std::move(next),
                done = std::move(done)](Result<std::uint64_t> written) mutable {
                 if (term != candidate_.term_changes()) {
                   return done(Status(StatusCode::Timeout, "the leadership was lost while it was being stored"));
                 }
                 is_writing_ = false;
                 if (written) {
                   revision_ = *written;
                   take(std::move(next));
                   done(Status::ok());
                   return events_.written();
                 }
                 const Status error = written.error();
                 log::error("controller", "cannot store the record of the cluster: {}", error.to_string());
                 done(error);
                 if (error.code() == StatusCode::WrongDistribution) return candidate_.step_down(error.message());
                 // The write was possibly applied, so read the record again.
                 load_again(error);
               });
}

void LeaderRecords::store_beside(std::string_view record, std::uint64_t revision, std::string bytes, Taken taken,
                                 Done done) {
  FJORD_CHECK(!is_writing_);
  is_writing_ = true;
  store_.write(candidate_.term(), record, revision, std::move(bytes),
               [this, term = candidate_.term_changes(), taken = std::move(taken),
                done = std::move(done)](Result<std::uint64_t> written) {
                 if (term != candidate_.term_changes()) {
                   return done(written ? Status(StatusCode::Timeout, "the leadership was lost") : written.error());
                 }
                 is_writing_ = false;
                 if (!written) {
                   done(written.error());
                   return load_again(written.error());
                 }
                 taken(*written);
                 done(Status::ok());
                 events_.written();
               });
}

void LeaderRecords::save_schemas(SchemaRecord next, Done done) {
  std::string bytes = encode(next);
  const auto taken = [this, next = std::move(next)](std::uint64_t revision) {
    schema_revision_ = revision;
    schemas_ = next;
    log::info("controller", "schemas version {}", schemas_.version);
  };
  store_beside(kSchemaRecord, schema_revision_, std::move(bytes), taken, std::move(done));
}

void LeaderRecords::save_identity(IdentityRecord next, Done done) {
  std::string bytes = encode(next);
  const auto taken = [this, next = std::move(next)](std::uint64_t revision) {
    identity_revision_ = revision;
    identity_ = next;
  };
  store_beside(kIdentityRecord, identity_revision_, std::move(bytes), taken, std::move(done));
}

/// Writes the cluster's record last: until it is written nothing counts as recovered, and the recovery can be
/// repeated.
void LeaderRecords::replace(RecoveredRecords recovered, Done done) {
  is_writing_ = true;
  struct Work {
    RecoveredRecords records;
    Done done;
  };
  auto work = std::make_shared<Work>(Work{std::move(recovered), std::move(done)});
  const auto end = [this, work](const Status& status) {
    is_writing_ = false;
    work->done(status);
    candidate_.enter(Candidate::Phase::Loading, "reads the records that were recovered");
    load();
  };
  // Returns a callback that runs `next` if the write succeeded and this controller still leads.
  const auto then = [this, work, end](auto next) {
    return [this, work, end, term = candidate_.term_changes(), next](const Result<std::uint64_t>& written) {
      if (term != candidate_.term_changes()) {
        return work->done({StatusCode::Timeout, "the leadership was lost while records were being written"});
      }
      if (!written) return end(written.error());
      next();
    };
  };
  const auto write_cluster = [this, work, end, then] {
    work->records.cluster.term = candidate_.term() + work->records.cluster.term_base;
    store_.write(candidate_.term(), kClusterRecord, revision_, encode(work->records.cluster), then([work, end] {
                   log::info("controller", "records recovered: cluster state {}, the next one is {}",
                             work->records.reply.state_version, work->records.reply.next_version);
                   end(Status::ok());
                 }));
  };
  const auto write_time = [this, work, then, write_cluster] {
    store_.write(candidate_.term(), kTimeRecord, time_revision_, std::to_string(work->records.time_limit_us),
                 then(write_cluster));
  };
  const auto write_identity = [this, work, then, write_time] {
    store_.write(candidate_.term(), kIdentityRecord, identity_revision_, encode(work->records.identity),
                 then(write_time));
  };
  store_.write(candidate_.term(), kSchemaRecord, schema_revision_, encode(work->records.schemas), then(write_identity));
}

void LeaderRecords::store_time_limit() {
  const std::optional<std::uint64_t> limit_us = grants_.limit_to_store(clock_.wall_now());
  if (!limit_us || is_storing_time_) return;
  is_storing_time_ = true;
  store_.write(candidate_.term(), kTimeRecord, time_revision_, std::to_string(*limit_us),
               candidate_.in_this_term([this, limit_us = *limit_us](const Result<std::uint64_t>& written) {
                 is_storing_time_ = false;
                 if (written) {
                   time_revision_ = *written;
                   grants_.stored(limit_us);
                 } else if (written.error().code() == StatusCode::WrongDistribution) {
                   candidate_.step_down(written.error().message());
                 } else {
                   look_for_time_limit();
                 }
               }));
}

void LeaderRecords::look_for_time_limit() {
  is_storing_time_ = true;
  store_.read(kTimeRecord, candidate_.in_this_term([this](const Result<StoredRecord>& stored) {
    const Result<std::uint64_t> limit_us = stored ? time_limit_in(*stored) : stored.error();
    if (limit_us) {
      time_revision_ = stored->revision;
      grants_.stored(*limit_us);
      is_storing_time_ = false;
      return;
    }
    executor_.post_after(options_.poll_interval, candidate_.in_this_term([this] { look_for_time_limit(); }));
  }));
}

// ---------------------------------------------------------------------------------------------------------------------
// News for other processes

rpc::ClusterInfo LeaderRecords::news_for(const rpc::PollReply& known, Duration lease) const {
  rpc::ClusterInfo info;
  info.term = published_term();
  info.lease_us = lease.count();
  info.state_version = active_.version();
  info.schema_version = schemas_.version;
  info.cluster_id = identity_.cluster_id;
  if (active_.version() > known.state_version) {
    info.state = cluster_.active.state;
    info.distribution = cluster_.active.distribution;
    info.distributor_addresses = cluster_.active.distributors;
    info.storage_addresses = cluster_.active.storage;
  }
  if (pending_ && std::max(known.pending_version, known.state_version) < pending_->version()) {
    info.pending_state = cluster_.pending->state;
    info.pending_distribution = cluster_.pending->distribution;
    info.pending_distributor_addresses = cluster_.pending->distributors;
    info.pending_storage_addresses = cluster_.pending->storage;
  }
  if (schemas_.version > known.schema_version) info.schemas = schemas_.schemas;
  if (cluster_.config_version() > known.config_version) {
    info.config_version = cluster_.config_version();
    info.config = as_list(cluster_.config());
  }
  return info;
}

bool LeaderRecords::has_news_for(const rpc::PollReply& known) const {
  if (active_.version() == 0) return false;
  return known.state_version < active_.version() || known.schema_version < schemas_.version ||
         known.config_version < cluster_.config_version() ||
         (pending_ && std::max(known.pending_version, known.state_version) < pending_->version());
}

bool LeaderRecords::are_behind(const rpc::PollReply& reply) const {
  const std::uint64_t known = std::max(active_.version(), pending_ ? pending_->version() : 0);
  // Every term and version is stored before a node receives it. A node with a higher version proves that records were
  // lost. A higher term proves it only if these records were never published: otherwise another controller may lead.
  const bool is_fresh = active_.version() == 0;
  if (reply.term > published_term()) return is_fresh;
  return reply.state_version > known;
}

}  // namespace fjord::fleetcontroller
