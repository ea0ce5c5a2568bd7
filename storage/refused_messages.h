#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace fjord::storage {

/// Remembers the numbers of messages of which a storage node has refused a write, so that a later duplicate of the
/// message does not apply it. The numbers of one distributor rise (rpc::Apply::number). Memory is bounded: beyond
/// `remembered` numbers of a distributor and cluster state the lowest is forgotten, and all numbers up to it count as
/// refused. A sender that retries such a message uses a new number.
/// Threading: not thread-safe.
class RefusedMessages {
 public:
  explicit RefusedMessages(std::size_t remembered = 1024) : remembered_(remembered) {}

  /// Records a refused message. Number 0 means that the message is not numbered, and is ignored.
  void note(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number);
  bool contains(std::uint64_t state_version, std::uint16_t distributor, std::uint64_t number) const;
  /// Forgets messages sent under states before `state_version`, which are refused anyway.
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
