#include "folder_watch.h"

#include <fmt/format.h>

namespace fjord::fleetcontroller {

FolderVerdict judge_folder(const FolderRecord* known, bool has_served, std::uint64_t folder, bool adopted,
                           std::int64_t unix_us) {
  FolderVerdict verdict;
  if (known != nullptr) verdict.next = *known;
  if (folder != 0 && (known == nullptr || known->folder != folder)) {
    const bool is_taken = known == nullptr ? !has_served || adopted : known->folder == 0;
    const bool is_back = known != nullptr && known->lost == folder;
    verdict.next.folder = folder;
    if (is_back || (!is_taken && verdict.next.lost == 0)) {
      verdict.next.lost = known == nullptr ? kUnknownFolder : known->folder;
      verdict.next.lost_unix_us = unix_us;
    }
  }
  verdict.is_lost = verdict.next.lost != 0;
  return verdict;
}

std::string lost_text(const FolderRecord& record) {
  const std::string before =
      record.lost == kUnknownFolder ? std::string("its earlier data") : "that of folder " + identity_text(record.lost);
  return fmt::format(
      "came back without its data: it has folder {} instead of {}; it is filled from other nodes, and "
      "what no other node has is unavailable until the folder is back or `fjord node accept-loss`",
      identity_text(record.folder), before);
}

std::uint64_t choose_cluster_id(const std::vector<rpc::PollReply>& storage, std::uint64_t drawn) {
  std::uint64_t named = 0;
  for (const rpc::PollReply& reply : storage) {
    if (reply.folder_cluster == 0 || (named != 0 && named != reply.folder_cluster)) return drawn;
    named = reply.folder_cluster;
  }
  return named == 0 ? drawn : named;
}

std::string identity_text(std::uint64_t id) { return fmt::format("{:016x}", id); }

}  // namespace fjord::fleetcontroller
