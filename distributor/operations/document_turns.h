#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fjord/document/document_id.h"

namespace fjord::distributor {

/// How an operation locks its document.
enum class Turn : std::uint8_t {
  Write,  ///< A plain write: shared with other writes, since timestamps order them.
  Read,   ///< A read that must see nothing of a write in flight: shared with other reads.
  Alone,  ///< An operation that reads before it writes: exclusive.
};

/// Document locks, granted in the order of arrival. Confined to the distributor's executor.
template <typename Waiter>
class DocumentTurns {
 public:
  /// True: the lock is held until leave(). False: `waiter` is kept until it gets the lock.
  bool enter(const GlobalId& document, Turn turn, const Waiter& waiter) {
    Line& line = lines_[document];
    if (line.waiting.empty() && may_go(line, turn)) {
      take(line, turn);
      return true;
    }
    line.waiting.emplace_back(waiter, turn);
    return false;
  }

  /// Releases a lock. Returns the waiters that get the lock by this; drops those for which `wants` is false.
  template <typename Predicate>
  std::vector<Waiter> leave(const GlobalId& document, Predicate wants) {
    std::vector<Waiter> next;
    auto at = lines_.find(document);
    Line& line = at->second;
    --line.working;
    while (!line.waiting.empty()) {
      auto& [waiter, turn] = line.waiting.front();
      if (wants(waiter)) {
        if (!may_go(line, turn)) break;
        take(line, turn);
        next.push_back(std::move(waiter));
      }
      line.waiting.pop_front();
    }
    if (line.is_idle()) lines_.erase(at);
    return next;
  }

  /// Drops the waiters for which `drops` is true; they enter again by themselves.
  template <typename Predicate>
  void drop_waiting(Predicate drops) {
    for (auto& [document, line] : lines_) {
      std::erase_if(line.waiting, [&](const auto& waiting) { return drops(waiting.first); });
    }
    std::erase_if(lines_, [](const auto& entry) { return entry.second.is_idle(); });
  }

  /// While operations write the document: the storage node that answers its reads, empty before the first read. Null
  /// while none writes it. One replica may have a write in flight that another one lacks, so reads of both could see
  /// the new version and then the old one. Valid until the next call.
  std::optional<std::uint16_t>* reader(const GlobalId& document) {
    const auto at = lines_.find(document);
    return at == lines_.end() || at->second.turn == Turn::Read ? nullptr : &at->second.reader;
  }

  std::size_t documents() const { return lines_.size(); }

 private:
  struct Line {
    Turn turn = Turn::Write;  ///< How the holders lock the document.
    std::uint32_t working = 0;
    std::optional<std::uint16_t> reader;
    std::deque<std::pair<Waiter, Turn>> waiting;

    bool is_idle() const { return working == 0 && waiting.empty(); }
  };
  static bool may_go(const Line& line, Turn turn) {
    return line.working == 0 || (line.turn == turn && turn != Turn::Alone);
  }
  static void take(Line& line, Turn turn) {
    if (line.turn != turn) line.reader.reset();
    line.turn = turn;
    ++line.working;
  }

  std::unordered_map<GlobalId, Line> lines_;
};

}  // namespace fjord::distributor
