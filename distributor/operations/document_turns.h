#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fjord/document/document_id.h"

namespace fjord::distributor {

/// Who may work on a document: plain writes together, since timestamps order them; an operation that reads before it
/// writes, alone. In the order of arrival. Confined to the distributor's executor.
template <typename Waiter>
class DocumentTurns {
 public:
  /// True: it has its turn and gives it back with leave(). False: `waiter` is kept for the time of its turn.
  bool enter(const GlobalId& document, bool alone, const Waiter& waiter) {
    Line& line = lines_[document];
    if (line.waiting.empty() && may_go(line, alone)) {
      take(line, alone);
      return true;
    }
    line.waiting.emplace_back(waiter, alone);
    return false;
  }

  /// Gives a turn back. Returns who has got one by that; `wants` tells who still waits.
  template <typename Predicate>
  std::vector<Waiter> leave(const GlobalId& document, bool alone, Predicate wants) {
    std::vector<Waiter> next;
    auto at = lines_.find(document);
    Line& line = at->second;
    if (alone) {
      line.taken_alone = false;
    } else {
      --line.together;
    }
    while (!line.waiting.empty()) {
      auto& [waiter, waiter_alone] = line.waiting.front();
      if (wants(waiter)) {
        if (!may_go(line, waiter_alone)) break;
        take(line, waiter_alone);
        next.push_back(std::move(waiter));
      }
      line.waiting.pop_front();
    }
    if (line.waiting.empty() && may_go(line, true)) lines_.erase(at);
    return next;
  }

  /// Those of the waiting for whom `drops` is true will come again by themselves.
  template <typename Predicate>
  void drop_waiting(Predicate drops) {
    for (auto& [document, line] : lines_) {
      std::erase_if(line.waiting, [&](const auto& waiting) { return drops(waiting.first); });
    }
    std::erase_if(lines_, [](const auto& entry) { return entry.second.waiting.empty() && may_go(entry.second, true); });
  }

  /// While somebody works on the document: the storage node that answers reads of it, none before the first read. Else
  /// null. Of a write under way one replica may have taken what another one has not, so reads that went to either could
  /// see the new version and then the old one. Valid until the next call.
  std::optional<std::uint16_t>* reader(const GlobalId& document) {
    const auto at = lines_.find(document);
    return at == lines_.end() ? nullptr : &at->second.reader;
  }

  std::size_t documents() const { return lines_.size(); }

 private:
  struct Line {
    std::uint32_t together = 0;
    bool taken_alone = false;
    std::optional<std::uint16_t> reader;
    std::deque<std::pair<Waiter, bool>> waiting;
  };
  static bool may_go(const Line& line, bool alone) { return !line.taken_alone && (!alone || line.together == 0); }
  static void take(Line& line, bool alone) {
    if (alone) {
      line.taken_alone = true;
    } else {
      ++line.together;
    }
  }

  std::unordered_map<GlobalId, Line> lines_;
};

}  // namespace fjord::distributor
