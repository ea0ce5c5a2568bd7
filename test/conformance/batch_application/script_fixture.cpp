#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "batch_application_fixture.h"
#include "fjord/common/coding.h"
#include "fjord/scripting/script_application.h"

namespace fjord::mapreduce::test {
namespace {

std::string at_document(Wrong wrong) {
  switch (wrong) {
    case Wrong::MapFails:
      return "error('a bad day')";
    case Wrong::MapLoops:
      return "while true do end";
    case Wrong::MapGrows:
      return "local t = {} while true do t[#t + 1] = {} end";
    case Wrong::Nothing:
    case Wrong::CombineFails:
    case Wrong::ReduceFails:
      break;
  }
  return "";
}

class ScriptFixture final : public BatchApplicationFixture {
 public:
  std::unique_ptr<Application> make_sums(const SumsOptions& options, const DocumentTypeRepo& types) override {
    scripting::add_script_application(applications_, {.host = FJORD_SCRIPT_HOST});
    const bool combine_fails = options.wrong == Wrong::CombineFails;
    const bool reduce_fails = options.wrong == Wrong::ReduceFails;
    std::string program = fmt::format(
        "function map(doc, emit)\n local n = doc.fields.count\n"
        " if n == {} then emit('half a document', 1) {} end\n emit((n % 10) .. '', n)\nend\n",
        options.at, at_document(options.wrong));
    if (options.combines) {
      program += fmt::format("function combine(key, a, b) {} return a + b end\n", combine_fails ? "error('no')" : "");
    }
    program += fmt::format(
        "function reduce(key, values) {} local n = 0 for _, v in ipairs(values) do n = n + v end return n end\n",
        reduce_fails ? "if key == '5' then error('a bad key') end" : "");
    const bool loops = options.wrong == Wrong::MapLoops;
    auto made = applications_.create(
        "script", {{"script", program}, {"timeout_ms", loops ? "300" : "60000"}, {"memory_mb", "16"}},
        *types.find("item"), &types);
    if (!made) FAIL(made.error().to_string());
    return std::move(*made);
  }
  std::string value_of(std::int64_t number) const override {
    std::string value;
    put_string(value, std::to_string(number));
    return value;
  }

 private:
  ApplicationRegistry applications_;
};

}  // namespace

std::unique_ptr<BatchApplicationFixture> make_script_fixture() { return std::make_unique<ScriptFixture>(); }

}  // namespace fjord::mapreduce::test
