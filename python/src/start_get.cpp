#include "start_get.h"

#include <fmt/format.h>

#include "errors.h"
#include "fjord/client/client.h"
#include "fjord/client/operations.h"
#include "fjord/library/detail/client_core.h"

namespace fjord::python {

namespace {

/// Sets the answer of a get. Fetches the schemas before, if the client does not know the document's type. An answer
/// that never comes, because the client is destroyed, is Cancelled.
class AnswerWriter {
 public:
  AnswerWriter(AsyncClient& client, Duration timeout, std::shared_ptr<detail::PendingState<GetAnswer>> state)
      : client_(client), timeout_(timeout), state_(std::move(state)) {}
  AnswerWriter(AnswerWriter&&) noexcept = default;
  AnswerWriter& operator=(AnswerWriter&&) = delete;
  ~AnswerWriter() {
    if (state_ != nullptr) state_->set({Status(StatusCode::Cancelled, "the client was closed"), {}, {}});
  }

  void operator()(OperationOutcome outcome) {
    if (!outcome.is_ok()) return finish({outcome.status, {}, {}});
    auto types = client_.snapshot()->types();
    const auto view = DocumentView::open(*types, outcome.header, outcome.body);
    if (!view) return finish({view.error(), {}, {}});
    if (view->type() != nullptr) return finish({Status::ok(), std::move(outcome), std::move(types)});
    AsyncClient& client = client_;
    const Duration timeout = timeout_;
    client.refresh_schemas(timeout,
                           [self = std::move(*this), outcome = std::move(outcome)](const Status& status) mutable {
                             auto newer = status ? self.client_.snapshot()->types() : nullptr;
                             self.finish({status, std::move(outcome), std::move(newer)});
                           });
  }

 private:
  void finish(GetAnswer answer) { std::exchange(state_, nullptr)->set(std::move(answer)); }

  AsyncClient& client_;
  Duration timeout_;
  std::shared_ptr<detail::PendingState<GetAnswer>> state_;
};

/// Returns a field set for `fields`; prepends the id's type to plain field names.
std::string field_set_of(const std::string& id, const std::string& fields) {
  if (fields.empty() || fields.starts_with('[') || fields.find(':') != std::string::npos) return fields;
  const auto parsed = DocumentId::parse(id);
  return parsed ? fmt::format("{}:{}", parsed->type(), fields) : fields;
}

}  // namespace

Pending<GetAnswer> start_get(Client& client, std::string id, const ReadOptions& options) {
  std::string fields = field_set_of(id, options.fields);
  rpc::Operation operation = get_operation(std::move(id), std::move(fields));
  if (options.consistency == ReadConsistency::Linearizable) operation.consistency = rpc::Consistency::Session;
  operation.priority = static_cast<rpc::Priority>(options.priority);
  ClientCore& core = client.core();
  auto state = std::make_shared<detail::PendingState<GetAnswer>>(&core.executor());
  core.client().execute(std::move(operation), options.timeout,
                        AnswerWriter(core.client(), core.timeout(options.timeout), state));
  return Pending<GetAnswer>(std::move(state));
}

nb::object to_python(const GetAnswer& answer) {
  check(answer.status);
  const auto view = value_of(DocumentView::open(*answer.types, answer.outcome.header, answer.outcome.body));
  if (view.type() == nullptr)
    raise(Status(StatusCode::UnknownType, fmt::format("the type of {} is not known", view.id())));
  return to_python(view, Timestamp{answer.outcome.timestamp_us});
}

}  // namespace fjord::python
