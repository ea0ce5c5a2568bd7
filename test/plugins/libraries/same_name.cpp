// Offers a visitor that there is already.

#include <memory>

#include "fjord/plugins/plugin.h"

namespace {

class Nothing final : public fjord::visitors::Visitor {
  fjord::Status visit(fjord::BucketId, std::string) override { return fjord::Status::ok(); }
};

}  // namespace

FJORD_PLUGIN(registry) {
  registry.add("dump", "Nothing", [](auto&, const auto&) -> fjord::Result<std::unique_ptr<fjord::visitors::Visitor>> {
    return std::unique_ptr<fjord::visitors::Visitor>(new Nothing);
  });
}
