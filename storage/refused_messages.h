#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace fjord::storage {

/// The numbers of messages of which a storage node has refused something that a later copy must not bring about either.
/// Numbers of one distributor rise (rpc::Apply::number). Memory is bounded: from `remembered` numbers of a distributor
/// on, the lowest is forgotten, and everything up to it counts as refused; whoever sends that again uses a new number.
///
/// Messages of another cluster state are refused anyway: with the first number of a newer one, those of older ones are
/// forgotten.
/// Threading: not thread-safe.
class RefusedMessages {
 public:
  explicit RefusedMessages(std::size_t remembered = 1024) : remembered_(remembered) {}

  /// 0 is no number.
  void note(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number);
  bool contains(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number) const;

 private:
  struct Numbers {
    std::uint64_t all_up_to = 0;
    std::set<std::uint64_t> above;
  };

  std::size_t remembered_;
  std::uint64_t state_version_ = 0;
  std::map<std::uint16_t, Numbers> by_distributor_;
};

}  // namespace fjord::storage
