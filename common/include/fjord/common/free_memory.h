#pragma once

namespace fjord {

/// Returns freed memory to the system at once. The allocator does so only after a delay; this is for work that frees
/// much memory and then needs as much for another purpose. It costs about 100 us for each MiB, which is worthwhile for
/// many MiB.
/// Threading: any thread.
void return_free_memory();

/// Returns memory that was freed so long ago that the allocator would return it the next time that it is called. For
/// processes that may be idle. Threading: any thread.
void return_old_free_memory();

}  // namespace fjord
