#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/library/visit.h"
#include "stream.h"

namespace fjord::python {

/// The class _core.Visit. Threading: Stream.
class VisitObject {
 public:
  VisitObject(ClientHandle& handle, std::shared_ptr<Client> client, std::unique_ptr<Visit> visit,
              std::vector<std::string> only);

  /// Begins a visit. Raises what Visit::status() says at once.
  static std::unique_ptr<VisitObject> open(ClientHandle& handle, const VisitOptions& options);

  /// Returns the next fjord.Document or fjord.Removed; waits for it. Raises StopIteration at the end.
  nb::object next();
  /// Returns what has arrived; None if nothing has, or at the end.
  nb::object try_next();
  Stream<Visit>& stream() { return stream_; }

 private:
  nb::object to_object(const EntryView& entry);

  Stream<Visit> stream_;
  std::vector<std::string> only_;  ///< The fields to take of each document; empty: all.
};

}  // namespace fjord::python
