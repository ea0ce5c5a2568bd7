#include "refused_messages.h"

namespace fjord::storage {

void RefusedMessages::note(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number) {
  if (number == 0) return;
  Numbers& numbers = by_sender_[{state_version, distributor}];
  if (number <= numbers.all_up_to) return;
  numbers.above.insert(number);
  if (numbers.above.size() <= remembered_) return;
  numbers.all_up_to = *numbers.above.begin();
  numbers.above.erase(numbers.above.begin());
}

bool RefusedMessages::contains(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number) const {
  if (number == 0 || by_sender_.empty()) return false;
  const auto found = by_sender_.find({state_version, distributor});
  return found != by_sender_.end() && (number <= found->second.all_up_to || found->second.above.contains(number));
}

void RefusedMessages::forget_before(std::uint64_t state_version) {
  by_sender_.erase(by_sender_.begin(), by_sender_.lower_bound({state_version, 0}));
}

}  // namespace fjord::storage
