// Offers a visitor whose name is already taken.

#include "fjord/plugins/plugin.h"

namespace {

class Nothing final : public fjord::visitors::Visitor {
  fjord::Status visit(fjord::BucketId, std::string) override { return fjord::Status::ok(); }
};

}  // namespace

FJORD_PLUGIN(registry) { registry.add<Nothing>("dump", "Nothing"); }
