#include "fjord/common/free_memory.h"

#include <cstddef>
#include <malloc.h>

/// jemalloc defines this function in programs that link it (fjord_use_jemalloc); otherwise its address is null.
extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_bytes, void* new_value,
                       std::size_t new_bytes) __attribute__((weak));

namespace fjord {

void return_free_memory() {
  if (&mallctl != nullptr) {
    mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // "4096" is the value of jemalloc's MALLCTL_ARENAS_ALL.
  } else {
    ::malloc_trim(0);
  }
}

void return_old_free_memory() {
  if (&mallctl != nullptr) mallctl("arena.4096.decay", nullptr, nullptr, nullptr, 0);
}

}  // namespace fjord
