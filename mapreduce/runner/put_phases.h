#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/document/document_id.h"
#include "phase.h"
#include "row_collector.h"
#include "task/task.h"

namespace fjord::mapreduce {

/// Writes the rows in the runner's process as pages, before the first row becomes a document, so that a new owner puts
/// the same rows. With the store shuffle it first reads the pages that reduce tasks wrote, and selects rows.
class PagesPhase final : public Phase {
 public:
  explicit PagesPhase(JobParts parts);

  void start() override;
  bool is_pausable() const override { return reads_; }

 private:
  void write();

  JobParts parts_;
  RowCollector collector_;
  bool reads_;  ///< The rows are not in this process yet.
};

/// Makes lasting documents of rows. Then checks that every row has its document, and removes documents of earlier jobs
/// with the same target that are not rows of this job. It compares document ids; each round compares as many as fit
/// into memory.
class PutPhase final : public Phase {
 public:
  explicit PutPhase(JobParts parts);

  void start() override;
  bool is_pausable() const override { return part_ != Part::Remove; }

 private:
  enum class Part {
    Collect,      ///< Reads the rows that this process has to return and does not have.
    Put,          ///< Tasks put documents.
    ReadPages,    ///< Reads which documents must exist.
    ReadTargets,  ///< Reads which documents exist.
    Remove,       ///< Removes obsolete documents.
  };

  /// The ids that a round compares: those whose hash has the remainder `round` modulo `rounds`.
  struct Round {
    std::uint64_t round = 0;
    std::uint64_t rounds = 1;
    std::vector<GlobalId> wanted;  ///< Ids of documents that must exist, rising.
    std::vector<bool> found;
    std::vector<std::string> obsolete;
    std::size_t obsolete_bytes = 0;
    bool again = false;  ///< More obsolete documents exist than `obsolete` holds.

    bool covers(const GlobalId& id) const { return id.hash_bits() % rounds == round; }
  };

  Part first_part() const;
  void go_to(Part part);
  void put();
  Status on_put(const TaskReport& report);
  void read_pages();
  void read_targets();
  Status take_targets(const std::string& docblock);
  Status check_targets() const;
  void remove_obsolete();
  void on_removed();

  JobParts parts_;
  RowCollector collector_;
  Part part_;
  Round round_;
};

}  // namespace fjord::mapreduce
