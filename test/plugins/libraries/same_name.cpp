// Offers a visitor that there is already.

#include "fjord/plugins/plugin.h"

namespace {

class Nothing final : public fjord::visitors::Visitor {
  fjord::Status visit(fjord::BucketId, std::string) override { return fjord::Status::ok(); }
};

}  // namespace

FJORD_PLUGIN(registry) { registry.add<Nothing>("dump", "Nothing"); }
