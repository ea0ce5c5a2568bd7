#include <algorithm>
#include <utility>

#include "fjord/common/coding.h"
#include "fjord/mapreduce/application.h"

namespace fjord::mapreduce {

void MappedDocuments::put_apart(std::string& out) const {
  std::size_t begin = 0;
  for (const std::size_t end : ends) put_varint(out, end - std::exchange(begin, end));
  out += emitted;
}

bool MappedDocuments::take_apart(ByteReader& in) {
  std::size_t end = 0;
  while (ends.size() < documents && in.ok()) ends.push_back(end += static_cast<std::size_t>(in.varint()));
  emitted = in.rest();
  return in.ok() && std::is_sorted(ends.begin(), ends.end()) && end == emitted.size();
}

Result<MappedDocuments> BatchFunctions::map_apart(std::span<const DocumentView> documents,
                                                  const std::function<bool()>& cancelled) {
  FJORD_TRY_ASSIGN(MappedDocuments mapped, map(documents.first(1), cancelled));
  mapped.ends = {mapped.emitted.size()};
  return mapped;
}

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
