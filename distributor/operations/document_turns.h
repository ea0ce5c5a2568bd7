#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fjord/document/document_id.h"

namespace fjord::distributor {

/// What an operation does with a document while it has its turn.
enum class Turn : std::uint8_t {
  Write,  ///< A plain write: together with others, since timestamps order them.
  Read,   ///< A read that may see nothing of a write under way: together with others.
  Alone,  ///< An operation that reads before it writes.
};

/// Who may work on a document at the same time. In the order of arrival. Confined to the distributor's executor.
template <typename Waiter>
class DocumentTurns {
 public:
  /// True: it has its turn and gives it back with leave(). False: `waiter` is kept for the time of its turn.
  bool enter(const GlobalId& document, Turn turn, const Waiter& waiter) {
    Line& line = lines_[document];
    if (line.waiting.empty() && may_go(line, turn)) {
      take(line, turn);
      return true;
    }
    line.waiting.emplace_back(waiter, turn);
    return false;
  }

  /// Gives a turn back. Returns who has got one by that; `wants` tells who still waits.
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

  /// Those of the waiting for whom `drops` is true will come again by themselves.
  template <typename Predicate>
  void drop_waiting(Predicate drops) {
    for (auto& [document, line] : lines_) {
      std::erase_if(line.waiting, [&](const auto& waiting) { return drops(waiting.first); });
    }
    std::erase_if(lines_, [](const auto& entry) { return entry.second.is_idle(); });
  }

  /// While somebody writes the document: the storage node that answers reads of it, none before the first one. Else
  /// null. Of a write under way one replica may have taken what another one has not, so reads that went to either could
  /// see the new version and then the old one. Valid until the next call.
  std::optional<std::uint16_t>* reader(const GlobalId& document) {
    const auto at = lines_.find(document);
    return at == lines_.end() || at->second.turn == Turn::Read ? nullptr : &at->second.reader;
  }

  std::size_t documents() const { return lines_.size(); }

 private:
  struct Line {
    Turn turn = Turn::Write;  ///< Of those that work.
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
