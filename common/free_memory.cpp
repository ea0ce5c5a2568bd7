#include "fjord/common/free_memory.h"

#include <cstddef>
#include <malloc.h>

/// jemalloc defines this function in programs that link it (fjord_use_jemalloc); otherwise its address is null.
extern "C" int mallctl(const char* name, void* old_value, std::size_t* old_bytes, void* new_value,
                       std::size_t new_bytes) __attribute__((weak));

namespace fjord {

namespace {

/// Calls the command of jemalloc for all arenas; returns false if there is no jemalloc. "4096" is the value of its
/// MALLCTL_ARENAS_ALL.
bool call_all_arenas(const char* command) {
  if (&mallctl == nullptr) return false;
  mallctl(command, nullptr, nullptr, nullptr, 0);
  return true;
}

}  // namespace

void return_free_memory() {
  if (!call_all_arenas("arena.4096.purge")) ::malloc_trim(0);
}

void return_old_free_memory() { call_all_arenas("arena.4096.decay"); }

}  // namespace fjord
