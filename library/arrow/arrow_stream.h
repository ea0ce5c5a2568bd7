#pragma once

#include <memory>

#include "fjord/common/result.h"
#include "fjord/library/arrow_abi.h"

namespace fjord {

/// Where the batches of a stream come from.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual void schema(ArrowSchema* out) = 0;
  /// Returns false at the end.
  virtual Result<bool> next(ArrowArray* out) = 0;
};

/// Makes `out` a stream that owns the source.
void export_stream(std::unique_ptr<BatchSource> source, ArrowArrayStream* out);

}  // namespace fjord
