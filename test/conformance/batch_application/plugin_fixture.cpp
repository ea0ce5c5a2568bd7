#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "batch_application_fixture.h"
#include "fjord/common/log.h"
#include "fjord/plugins/plugin_directory.h"

namespace fjord::mapreduce::test {
namespace {

const char* name_of(Wrong wrong) {
  switch (wrong) {
    case Wrong::Nothing:
      return "";
    case Wrong::MapFails:
      return "throws";
    case Wrong::MapLoops:
      return "loops";
    case Wrong::MapGrows:
      return "leaks";
    case Wrong::CombineFails:
      return "combine crashes";
    case Wrong::ReduceFails:
      return "reduce throws";
  }
  return "";
}

/// The application `sums` of test/plugins/libraries/test_applications.cpp.
class PluginFixture final : public BatchApplicationFixture {
 public:
  std::unique_ptr<Application> make_sums(const SumsOptions& options, const DocumentTypeRepo& types) override {
    log::set_level(log::Level::Off);
    plugins::PluginOptions plugins;
    plugins.directory = FJORD_PLUGIN_FOLDER;
    plugins.host = FJORD_PLUGIN_HOST;
    plugins.memory_bytes = std::uint64_t{512} << 20;
    if (options.wrong == Wrong::MapLoops) plugins.call_timeout = milliseconds(500);
    REQUIRE(load_plugins(plugins, metrics_, visitors_, applications_));
    const std::vector<rpc::Parameter> parameters = {{"how", name_of(options.wrong)},
                                                    {"at", std::to_string(options.at)},
                                                    {"combines", options.combines ? "1" : "0"}};
    auto made = applications_.create("sums", parameters, *types.find("item"), &types);
    if (!made) FAIL(made.error().to_string());
    return std::move(*made);
  }
  std::string value_of(std::int64_t number) const override { return std::to_string(number); }

 private:
  MetricRegistry metrics_;
  visitors::VisitorRegistry visitors_;
  ApplicationRegistry applications_;
};

}  // namespace

std::unique_ptr<BatchApplicationFixture> make_plugin_fixture() { return std::make_unique<PluginFixture>(); }

}  // namespace fjord::mapreduce::test
