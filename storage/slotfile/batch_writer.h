#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bucket_table.h"
#include "checkpointer.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "structure_editor.h"

namespace fjord::slotfile {

/// Applies batches of writes: a batch is staged in the slots and written to the journal, or undone.
///
/// Threading: confined to the engine's executor.
class BatchWriter {
 public:
  BatchWriter(BucketTable& table, StructureEditor& structure, Checkpointer& checkpointer)
      : table_(table),
        context_(table.context()),
        journal_(table.journal()),
        structure_(structure),
        checkpointer_(checkpointer) {}

  void apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, bool sync);
  /// Like BucketTable::load(), for an operation on one document: counts the lookup and the time that it waits.
  Status load_for_operation(Slot& slot);

 private:
  struct StagedWrite {
    Slot::Undo undo;
    std::uint64_t uid;
    std::uint32_t result;
    MetaEntry entry;
  };
  /// Times measured for the batch that is being written; only some batches are measured.
  struct Sample {
    explicit Sample(const Clock* clock) : whole(clock) {}
    struct Put {
      std::uint64_t entries;
      std::uint64_t search_us;
    };
    Stopwatch whole;
    std::vector<Put> puts;
  };

  void write_batch(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, bool sync);
  Status make_place_for_writes(std::span<const spi::Write> writes);
  void prefetch(std::span<const spi::Write> writes);
  void stage_all(std::span<const spi::Write> writes, std::span<spi::WriteResult> results);
  Status find_place(Slot& slot, const GlobalId& gid);
  Status write_journal(bool sync);
  void take_back_all(std::span<spi::WriteResult> results, const Status& why);
  void count_sample();

  BucketTable& table_;
  EngineContext& context_;
  Journal& journal_;
  StructureEditor& structure_;
  Checkpointer& checkpointer_;
  std::vector<StagedWrite> staged_;
  std::optional<Sample> sample_;
  unsigned batches_ = 0;
  std::string journal_meta_;
  std::vector<std::string_view> journal_parts_;
};

}  // namespace fjord::slotfile
