// Stands for a library built against headers of another version.

#include <cstdint>

extern "C" {
extern const std::uint32_t fjord_plugin_interface;
const std::uint32_t fjord_plugin_interface = 999;
void fjord_plugin_register(void*);
void fjord_plugin_register(void*) {}
}
