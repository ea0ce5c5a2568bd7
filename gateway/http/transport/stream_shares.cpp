#include "http/transport/stream_shares.h"

namespace fjord::gateway {

std::unique_ptr<StreamShares::Share> StreamShares::take(const std::string& client, std::string_view group) {
  const std::lock_guard lock(mutex_);
  Count& count = clients_[client];
  if (count.all >= limits_.client_max || count.groups[group] >= limits_.group_max) return nullptr;
  ++count.all;
  ++count.groups[group];
  return std::make_unique<Share>(*this, client, group);
}

void StreamShares::give_back(const Share& share) {
  const std::lock_guard lock(mutex_);
  Count& count = clients_[share.client_];
  --count.groups[share.group_];
  if (--count.all == 0) clients_.erase(share.client_);
}

}  // namespace fjord::gateway
