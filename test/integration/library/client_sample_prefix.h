// Declarations that the sample of client/README.md uses but does not show.
#include <cstdint>
#include <string>
#include <vector>

#include "fjord/client/connect.h"
#include "fjord/client/feeder.h"

void use(const std::string& json, std::uint64_t version);
void complain(const fjord::Status& status);
std::string changed(const std::string& json);
