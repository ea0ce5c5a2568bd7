#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fjord/document/document_type.h"
#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce::test {

/// What an application does wrong.
enum class Wrong {
  Nothing,
  MapFails,  ///< map() fails with "a bad day" at one document.
  MapLoops,  ///< map() does not return at one document.
  MapGrows,  ///< map() takes more memory than it may have, at one document.
  CombineFails,
  ReduceFails,  ///< reduce() fails with "a bad key" at the key 5.
};

struct SumsOptions {
  Wrong wrong = Wrong::Nothing;
  int at = -1;  ///< `count` of the document at which map() goes wrong.
  bool combines = true;
};

/// A way to run an application in another process. The application sums `count` of the documents by its last digit; at
/// a document where map() goes wrong, it has emitted a tuple before.
class BatchApplicationFixture {
 public:
  virtual ~BatchApplicationFixture() = default;
  /// Makes the application. `types` has a type "item" with the integer `count`, and outlives it. It is called once.
  virtual std::unique_ptr<Application> make_sums(const SumsOptions& options, const DocumentTypeRepo& types) = 0;
  /// Returns `number` as the application emits it.
  virtual std::string value_of(std::int64_t number) const = 0;
};

std::unique_ptr<BatchApplicationFixture> make_plugin_fixture();
std::unique_ptr<BatchApplicationFixture> make_script_fixture();

}  // namespace fjord::mapreduce::test
