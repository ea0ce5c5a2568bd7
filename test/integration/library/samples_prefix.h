// Declarations that the samples of docs/clients/cpp.md and README.md use but do not show. samples_main.h defines them.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fjord/fjord.h>

void use(const fjord::Document& document);
void use(const fjord::SearchPlace& place);
void complain(const fjord::Status& status);
void save(const std::string& cursor);
std::string load();
void store(const fjord::Change& change);
void forget(const std::string& id);
void copy_everything_again();
std::string changed(const std::string& json);
