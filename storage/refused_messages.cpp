#include "refused_messages.h"

namespace fjord::storage {

void RefusedMessages::note(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number) {
  if (number == 0 || state_version < state_version_) return;
  if (state_version > state_version_) by_distributor_.clear();
  state_version_ = state_version;
  Numbers& numbers = by_distributor_[distributor];
  if (number <= numbers.all_up_to) return;
  numbers.above.insert(number);
  if (numbers.above.size() <= remembered_) return;
  numbers.all_up_to = *numbers.above.begin();
  numbers.above.erase(numbers.above.begin());
}

bool RefusedMessages::contains(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number) const {
  if (number == 0 || state_version != state_version_) return false;
  const auto found = by_distributor_.find(distributor);
  return found != by_distributor_.end() && (number <= found->second.all_up_to || found->second.above.contains(number));
}

}  // namespace fjord::storage
