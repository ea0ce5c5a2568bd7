#include "record_recovery.h"

#include <fmt/format.h>
#include <utility>

namespace fjord::fleetcontroller {
namespace {

/// Timeout of the question to a node; nodes answer from memory.
constexpr Duration kQuestionTimeout = seconds(5);

}  // namespace

RecordRecovery::RecordRecovery(const FleetControllerOptions& options, const Clock& clock, rpc::Transport& transport,
                               Executor& executor, Candidate& candidate, LeaderRecords& records,
                               std::function<void(const std::string&)> strand)
    : options_(options),
      clock_(clock),
      transport_(transport),
      executor_(executor),
      candidate_(candidate),
      records_(records),
      strand_(std::move(strand)) {}

bool RecordRecovery::has_no_records() const {
  const Candidate::Phase phase = candidate_.phase();
  return phase == Candidate::Phase::Stranded ||
         (phase == Candidate::Phase::Leading && records_.active().version() == 0);
}

std::map<std::string, rpc::Address> RecordRecovery::nodes_to_ask() const {
  std::map<std::string, rpc::Address> nodes;
  const auto add = [&](NodeType type, const std::vector<rpc::Address>& addresses) {
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (!addresses[i].empty()) nodes[NodeId{type, static_cast<std::uint16_t>(i)}.to_string()] = addresses[i];
    }
  };
  add(NodeType::Distributor, options_.distributors);
  add(NodeType::Storage, options_.storage);
  add(NodeType::Distributor, records_.cluster().nodes.distributors);
  add(NodeType::Storage, records_.cluster().nodes.storage);
  return nodes;
}

void RecordRecovery::recover(const rpc::RecoverState& request, rpc::Responder respond) {
  rpc::RecoverStateReply refused;
  if (!has_no_records()) {
    refused.status = candidate_.phase() == Candidate::Phase::Leading
                         ? Status(StatusCode::InvalidArgument,
                                  fmt::format("{} has its records, with cluster state {}: there is nothing to recover",
                                              options_.name, records_.active().version()))
                         : candidate_.why_not_leading();
    return respond(std::move(refused));
  }
  if (records_.is_writing()) {
    refused.status = {StatusCode::Busy, "a record is being written: ask again"};
    return respond(std::move(refused));
  }
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  ask_what_nodes_know(
      nodes_to_ask(), transport_, executor_, kQuestionTimeout,
      [this, term = candidate_.term_changes(), request, answer](const KnownByNodes& known) {
        if (term != candidate_.term_changes() || !candidate_.still_leads()) {
          return (*answer)(rpc::error_reply(request, candidate_.why_not_leading()));
        }
        RecoveredRecords recovered = recover_records(known, request, candidate_.term(), clock_.wall_now().us);
        const bool is_refused = !recovered.reply.status || !recovered.reply.refusals.empty();
        if (is_refused || request.dry_run) return (*answer)(std::move(recovered.reply));
        const bool is_stranded = candidate_.phase() == Candidate::Phase::Stranded;
        if (records_.is_writing() || (!is_stranded && records_.active().version() != 0)) {
          recovered.reply.status = {StatusCode::TestAndSetFailed, "the records were written meanwhile: ask again"};
          return (*answer)(std::move(recovered.reply));
        }
        if (!is_stranded) strand_("its records are being recovered");
        write(std::move(recovered), std::move(*answer));
      });
}

void RecordRecovery::write(RecoveredRecords recovered, rpc::Responder respond) {
  auto answer = std::make_shared<rpc::Responder>(std::move(respond));
  rpc::RecoverStateReply reply = recovered.reply;
  records_.replace(std::move(recovered), [answer, reply = std::move(reply)](const Status& written) {
    rpc::RecoverStateReply said = reply;
    said.status = written;
    (*answer)(std::move(said));
  });
}

}  // namespace fjord::fleetcontroller
