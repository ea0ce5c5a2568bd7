#pragma once

// Annotations that clang's -Wthread-safety checks; they are empty for other compilers.
#if defined(__clang__)
#define FJORD_GUARDED_BY(mutex) __attribute__((guarded_by(mutex)))
#define FJORD_REQUIRES(mutex) __attribute__((requires_capability(mutex)))
#else
#define FJORD_GUARDED_BY(mutex)
#define FJORD_REQUIRES(mutex)
#endif
