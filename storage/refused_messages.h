#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace fjord::storage {

/// The numbers of messages of which a storage node has refused something that a later copy must not bring about either.
/// Numbers of one distributor rise (rpc::Apply::number). Memory is bounded: from `remembered` numbers of a distributor
/// and cluster state on, the lowest is forgotten, and everything up to it counts as refused; whoever sends that again
/// uses a new number.
/// Threading: not thread-safe.
class RefusedMessages {
 public:
  explicit RefusedMessages(std::size_t remembered = 1024) : remembered_(remembered) {}

  /// 0 is no number.
  void note(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number);
  bool contains(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number) const;
  /// What was sent under an older state is refused anyway.
  void forget_before(std::uint64_t state_version);

 private:
  struct Numbers {
    std::uint64_t all_up_to = 0;
    std::set<std::uint64_t> above;
  };
  struct Sender {
    std::uint64_t state_version = 0;
    std::uint16_t distributor = 0;
    auto operator<=>(const Sender&) const = default;
  };

  std::size_t remembered_;
  std::map<Sender, Numbers> by_sender_;
};

}  // namespace fjord::storage
