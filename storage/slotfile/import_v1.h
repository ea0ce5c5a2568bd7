#pragma once

#include "fjord/common/status.h"

namespace fjord::slotfile {

class Engine;

/// Takes over the buckets of the engine's stripe that are still in format version 1: writes what is in them as anybody
/// else's writes, makes it durable, and removes the old folders. After a crash the next call begins again with the
/// folders that are still there, and comes to the same end. What cannot be read is counted in stats(), the bucket is
/// marked as damaged, and its old folder is kept as `<name>.damaged`. Errors: NoSpace, IoError, NotImplemented.
Status import_version_1(Engine& engine);

}  // namespace fjord::slotfile
