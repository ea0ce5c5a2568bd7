#include "search_checker.h"

#include <fmt/format.h>
#include <map>

#include "fjord/search/slice_set.h"

namespace fjord::sim {

NetworkObserver::SeeReply SearchChecker::see_request(const std::string& /*from*/, const std::string& to,
                                                     const rpc::Request& request) {
  const auto* question = std::get_if<rpc::SearchSlices>(&request);
  if (question == nullptr) return {};
  return [this, to, asked = *question](const Result<rpc::Reply>& reply) {
    const auto* answer = reply ? std::get_if<rpc::SearchSlicesReply>(&*reply) : nullptr;
    if (answer != nullptr && answer->status) see_answer(to, asked, *answer);
  };
}

void SearchChecker::see_answer(const std::string& node, const rpc::SearchSlices& question,
                               const rpc::SearchSlicesReply& answer) {
  ++answers_;
  if (!failure_.empty()) return;
  if (answer.state_version != question.state_version) {
    failure_ = fmt::format("I18: {} searched in state {} for a question of state {}", node, answer.state_version,
                           question.state_version);
  }
  const search::SliceSet asked(question.bits, question.slices);
  const search::SliceSet searched(question.bits, answer.searched);
  const auto index = static_cast<std::uint16_t>(std::stoi(node.substr(node.find('.') + 1)));
  // The checker sees the answer when it is sent. The sets are still those of the search, unless they changed meanwhile:
  // the set of a node that is being filled has no epoch, and the node joins no set during a search.
  std::map<std::size_t, bool> is_filling;
  for (const auto& [bucket, set] : cluster_->sets_of(node)) {
    if (bucket.used_bits() < question.bits) continue;
    if (set.epoch == 0 && !set.contains(index)) is_filling[bucket.with_used_bits(question.bits).bits()] = true;
  }
  searched.for_each([&](std::size_t slice) {
    if (!asked.contains(slice)) failure_ = fmt::format("I18: {} searched slice {} without a question", node, slice);
    if (is_filling[slice])
      failure_ = fmt::format("I18: {} searched slice {}, which is being filled there", node, slice);
  });
}

}  // namespace fjord::sim
