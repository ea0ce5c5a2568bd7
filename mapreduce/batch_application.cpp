#include <utility>

#include "fjord/common/coding.h"
#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {

Status BatchApplication::map(const DocumentView& document, Emitter& emitter) {
  FJORD_TRY_ASSIGN(const MappedDocuments mapped, map({&document, 1}, [&emitter] { return emitter.cancelled(); }));
  if (!mapped.failed.empty()) return mapped.failed.front().why;
  ByteReader in(mapped.emitted);
  while (in.remaining() > 0) {
    const std::string_view key = in.string();
    emitter.emit(key, in.string());
  }
  return Status::ok();
}

Status BatchApplication::reduce(std::string_view key, std::span<const std::string_view> values, ResultEmitter& result) {
  const KeyedValues one{key, values};
  FJORD_TRY_ASSIGN(auto results, reduce({&one, 1}));
  if (results.front()) result.emit(std::move(*results.front()));
  return Status::ok();
}

}  // namespace fjord::mapreduce
