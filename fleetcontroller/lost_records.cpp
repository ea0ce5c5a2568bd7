// The part of Controller for a leader whose records are lost or older than what running nodes know.

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "controller.h"
#include "fjord/common/log.h"

namespace fjord::fleetcontroller {
namespace {

/// Timeout of the question to a node; nodes answer from memory.
constexpr Duration kQuestionTimeout = seconds(5);

}  // namespace

bool Controller::is_beyond_records(const Node& node, const rpc::PollReply& reply) const {
  if (!reply.node.empty() && reply.node != node.id().to_string())
    return false;  // Another node answers at this address.
  const std::uint64_t known = std::max(active_.version(), pending_ ? pending_->version() : 0);
  // Terms and versions are stored before any node hears of them. If the node knows a higher term, another controller
  // may lead, which the store decides; but records that were never published prove that records are lost.
  const bool is_fresh = active_.version() == 0;
  if (reply.term > published_term()) return is_fresh;
  return reply.state_version > known;
}

void Controller::strand(const std::string& why) {
  enter(Phase::Stranded, why +
                             ", of which the store knows nothing. Nothing is published, and nodes go on as they are. "
                             "`fjord state recover --from-nodes` takes over what they know; --dry-run shows it");
  log::error("controller", "{} has no records: {}", options_.name, trouble_);
  leads_.set(0);
  nodes_.clear();
  std::deque<Change> waiting = std::exchange(changes_, {});
  for (Change& change : waiting) change.respond(rpc::error_reply(change.request, not_leader()));
}

void Controller::recover(const rpc::RecoverState& request, rpc::Responder respond) {
  rpc::RecoverStateReply refused;
  const bool is_fresh = phase_ == Phase::Leading && active_.version() == 0;
  if (phase_ != Phase::Stranded && !is_fresh) {
    refused.status = phase_ == Phase::Leading
                         ? Status(StatusCode::InvalidArgument,
                                  fmt::format("{} has its records, with cluster state {}: there is nothing to recover",
                                              options_.name, active_.version()))
                         : not_leader();
    return respond(std::move(refused));
  }
  if (saving_) {
    refused.status = {StatusCode::Busy, "a record is being written: ask again"};
    return respond(std::move(refused));
  }
  std::map<std::string, rpc::Address> nodes;
  const auto add = [&](NodeType type, const std::vector<rpc::Address>& addresses) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (!addresses[i].empty()) nodes[NodeId{type, static_cast<std::uint16_t>(i)}.to_string()] = addresses[i];
    }
  };
  add(NodeType::Distributor, options_.distributors);
  add(NodeType::Storage, options_.storage);
  add(NodeType::Distributor, record_.nodes.distributors);
  add(NodeType::Storage, record_.nodes.storage);
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  ask_what_nodes_know(
      nodes, transport_, *executor_, kQuestionTimeout,
      [this, reign = reign_, request, answer](const KnownByNodes& known) {
        if (reign != reign_ || !still_leads()) {
          return (*answer)(rpc::error_reply(request, not_leader()));
        }
        RecoveredRecords records = recover_records(known, request, term_, clock_.wall_now().us);
        const bool is_refused = !records.reply.status || !records.reply.refusals.empty();
        if (is_refused || request.dry_run) return (*answer)(std::move(records.reply));
        if (saving_ || (phase_ != Phase::Stranded && active_.version() != 0)) {
          records.reply.status = {StatusCode::TestAndSetFailed, "the records were written meanwhile: ask again"};
          return (*answer)(std::move(records.reply));
        }
        write_recovered(std::move(records), std::move(*answer));
      });
}

/// Writes the recovered records. The cluster's record is the last one: until it is written nothing counts as recovered,
/// and the recovery can be repeated.
void Controller::write_recovered(RecoveredRecords records, rpc::Responder respond) {
  if (phase_ != Phase::Stranded) strand("its records are being recovered");
  struct Work {
    RecoveredRecords records;
    rpc::Responder respond;
  };
  auto work = std::make_shared<Work>(Work{std::move(records), std::move(respond)});
  saving_ = true;
  const auto end = [this, work](Status status) {
    saving_ = false;
    work->records.reply.status = std::move(status);
    work->respond(std::move(work->records.reply));
    enter(Phase::Loading, "reads the records that were recovered");
    load();
  };
  // Returns a callback that runs `next` if the write succeeded and this controller still leads.
  const auto then = [this, work, end, reign = reign_](auto next) {
    return [this, work, end, reign, next](Result<std::uint64_t> written) {
      if (reign != reign_) {
        work->records.reply.status = {StatusCode::Timeout, "the leadership was lost while records were being written"};
        return work->respond(std::move(work->records.reply));
      }
      if (!written) return end(written.error());
      next(*written);
    };
  };
  const auto write_cluster = [this, work, end, then](std::uint64_t) {
    work->records.cluster.term = term_ + work->records.cluster.term_base;
    store_.write(term_, kClusterRecord, revision_, encode(work->records.cluster),
                 then([this, work, end](std::uint64_t) {
                   log::info("controller", "records recovered: cluster state {}, the next one is {}",
                             work->records.reply.state_version, work->records.reply.next_version);
                   end(Status::ok());
                 }));
  };
  const auto write_time = [this, work, then, write_cluster](std::uint64_t) {
    store_.write(term_, kTimeRecord, time_revision_, std::to_string(work->records.time_limit_us), then(write_cluster));
  };
  store_.write(term_, kSchemaRecord, schema_revision_, encode(work->records.schemas), then(write_time));
}

}  // namespace fjord::fleetcontroller
