#pragma once

#include "fjord/common/status.h"

namespace fjord::slotfile {

class Engine;

/// Imports the buckets of the engine's stripe that are still in format version 1: writes their content like any other
/// writes, makes it durable, and removes the old folders. After a crash the next call continues with the remaining
/// folders and reaches the same result. Entries that cannot be read are counted in stats(); their bucket is marked as
/// damaged, and its old folder is kept as `<name>.damaged`. Errors: NoSpace, IoError, NotImplemented.
Status import_version_1(Engine& engine);

}  // namespace fjord::slotfile
