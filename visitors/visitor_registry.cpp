#include <utility>

#include "fjord/common/check.h"
#include "fjord/visitors/visitor.h"

namespace fjord::visitors {
namespace {

class DumpVisitor final : public Visitor {
 public:
  explicit DumpVisitor(VisitContext& context) : context_(context) {}

  Status visit(BucketId bucket, std::string docblock) override {
    context_.send(bucket, std::move(docblock));
    return Status::ok();
  }

 private:
  VisitContext& context_;
};

}  // namespace

void VisitorRegistry::add(std::string name, VisitorFactory factory) {
  const bool is_new = factories_.emplace(std::move(name), std::move(factory)).second;
  FJORD_CHECK(is_new);
}

void VisitorRegistry::add_internal(std::string name, VisitorFactory factory) {
  internal_.insert(name);
  add(std::move(name), std::move(factory));
}

const VisitorFactory* VisitorRegistry::find(std::string_view name) const {
  const auto it = factories_.find(name);
  return it == factories_.end() ? nullptr : &it->second;
}

std::vector<std::string> VisitorRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, factory] : factories_) {
    if (!internal_.contains(name)) names.push_back(name);
  }
  return names;
}

void add_builtin_visitors(VisitorRegistry& registry) {
  registry.add("dump", [](VisitContext& context, const Parameters& parameters) -> Result<std::unique_ptr<Visitor>> {
    if (!parameters.empty()) {
      return Status(StatusCode::InvalidArgument,
                    "the visitor dump takes no parameters, but got " + parameters.front().name);
    }
    return std::unique_ptr<Visitor>(new DumpVisitor(context));
  });
}

}  // namespace fjord::visitors
