#pragma once

#include <memory>
#include <string>

#include "fjord/client/operation_outcome.h"
#include "fjord/document/document_type.h"
#include "fjord/library/client.h"
#include "values.h"

namespace fjord::python {

/// The answer of a get, with the bytes of the document.
struct GetAnswer {
  Status status;
  OperationOutcome outcome;
  std::shared_ptr<const DocumentTypeRepo> types;  ///< Have the document's type if the status is OK.
};

/// Starts a get. Unlike Client::get() it leaves the document in bytes, from which values of Python are made directly.
Pending<GetAnswer> start_get(Client& client, std::string id, const ReadOptions& options);

/// Returns the fjord.Document, or raises the error. Needs the interpreter lock.
nb::object to_python(const GetAnswer& answer);

}  // namespace fjord::python
