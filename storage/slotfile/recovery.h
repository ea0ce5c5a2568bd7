#pragma once

#include "bucket_table.h"
#include "catalog.h"
#include "checkpointer.h"
#include "journal.h"

namespace fjord::slotfile {

/// Opens a stripe: reads the catalog and replays the journal into an empty table.
class Recovery {
 public:
  Recovery(BucketTable& table, Checkpointer& checkpointer)
      : table_(table), context_(table.context()), journal_(table.journal()), checkpointer_(checkpointer) {}

  /// Runs the recovery. Errors: InvalidArgument for a store with another number of stripes; Corruption; IoError. A
  /// store on a full disk can be opened.
  Status run();

 private:
  Status replay_edits(LoadedCatalog& loaded);
  Status build(const Catalog& catalog);
  Status replay_writes(std::uint64_t first_segment);
  Status replay_write_record(const Journal::Record& record);
  Status remove_leftovers();

  BucketTable& table_;
  EngineContext& context_;
  Journal& journal_;
  Checkpointer& checkpointer_;
};

}  // namespace fjord::slotfile
