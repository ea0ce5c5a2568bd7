#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fjord/library/client.h"
#include "fjord/library/visit.h"
#include "http/document_path.h"
#include "http/message.h"

namespace fjord::gateway {

/// The parameters of a GET on a path without an id.
struct VisitWish {
  VisitOptions options;
  std::string selection;                   ///< As it was sent.
  std::int64_t documents = 1;              ///< The parameter wantedDocumentCount.
  std::optional<std::int64_t> timeout_ms;  ///< Absent: it was not sent.
  std::string continuation;                ///< Decoded; empty: from the beginning.
  bool is_stream = false;
  bool is_empty_space = false;  ///< The request names the bucket space without documents.
};

/// Errors: InvalidArgument.
Result<VisitWish> read_visit_wish(const DocumentPath& path, const HttpQuery& query);

/// The parameters of PUT, DELETE and POST on a path without an id.
struct SelectionWish {
  std::string selection;  ///< As it was sent.
  std::string condition;  ///< The selection with the namespace, number or group of the path.
  std::optional<VisitSlice> slice;
  std::int64_t chunk_ms = 0;
  std::int64_t timeout_ms = 0;
  std::string continuation;     ///< Decoded; empty: from the beginning.
  bool is_empty_space = false;  ///< The request names the bucket space without documents.
  /// DELETE: the most documents that may match before the removal; kConfirmsAll: any number. Absent: it was not sent.
  std::optional<std::int64_t> confirmed;
};
inline constexpr std::int64_t kConfirmsAll = INT64_MAX;

/// Errors: InvalidArgument.
Result<SelectionWish> read_selection_wish(const HttpRequest& request, const DocumentPath& path, const HttpQuery& query);

/// Fetches the schemas and parses a selection by itself, so that a parenthesis too many cannot change the meaning of
/// conditions that are added to it. Waits for a distributor for `timeout_ms`, but not longer than five seconds. Errors:
/// InvalidSelection; those of AsyncClient::refresh_schemas().
Status check_selection(Client& client, const std::string& selection, std::int64_t timeout_ms);

}  // namespace fjord::gateway
