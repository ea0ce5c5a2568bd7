#include "arrow/arrow_stream.h"

#include <cerrno>
#include <string>
#include <utility>

namespace fjord {
namespace {

struct OwnedStream {
  std::unique_ptr<BatchSource> source;
  std::string error;
};

OwnedStream& owned(ArrowArrayStream* stream) { return *static_cast<OwnedStream*>(stream->private_data); }

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  owned(stream).source->schema(out);
  return 0;
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  *out = {};
  const Result<bool> given = owned(stream).source->next(out);
  if (given) return 0;  // At the end, `out` stays released.
  owned(stream).error = given.error().to_string();
  return given.error().code() == StatusCode::InvalidArgument ? EINVAL : EIO;
}

const char* get_last_error(ArrowArrayStream* stream) {
  const std::string& error = owned(stream).error;
  return error.empty() ? nullptr : error.c_str();
}

void release(ArrowArrayStream* stream) {
  delete &owned(stream);
  stream->release = nullptr;
}

}  // namespace

void export_stream(std::unique_ptr<BatchSource> source, ArrowArrayStream* out) {
  *out = {get_schema, get_next, get_last_error, release, new OwnedStream{std::move(source), {}}};
}

}  // namespace fjord
