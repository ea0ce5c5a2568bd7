#pragma once

namespace fjord {

/// Gives memory that was freed back to the system at once. The allocator does that by itself, but only after a while:
/// for work that frees much and then needs as much again of another kind. It costs some 100 us for each MiB, which is
/// worth it for many MiB.
/// Threading: any thread.
void return_free_memory();

}  // namespace fjord
