// A library with an application that has no version.

#include "fjord/plugins/plugin.h"

namespace {

class Nothing final : public fjord::mapreduce::JobFunctions {
  fjord::Status map(const fjord::DocumentView&, fjord::mapreduce::Emitter&) override { return fjord::Status::ok(); }
  fjord::Status reduce(std::string_view, std::span<const std::string_view>, fjord::mapreduce::ResultEmitter&) override {
    return fjord::Status::ok();
  }
};

}  // namespace

FJORD_PLUGIN(registry) { registry.add_application<Nothing>("nothing", "", "Nothing"); }
