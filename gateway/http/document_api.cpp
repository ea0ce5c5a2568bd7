#include "http/document_api.h"

#include <fmt/format.h>
#include <memory>
#include <stop_token>
#include <utility>

#include "fjord/library/detail/client_core.h"
#include "http/json_body.h"
#include "http/selection_write.h"
#include "http/streamed_visit.h"
#include "http/visit_chunk.h"
#include "http/visit_wish.h"

namespace fjord::gateway {
namespace {

constexpr const char* kTooManyVisits = "too many visits are in progress; try again later";

/// Checks the parameters that every request may have.
Status check_common(const HttpQuery& query) {
  const std::string* cluster = query.find("cluster");
  if (cluster != nullptr) FJORD_TRY(check_cluster(*cluster));
  return query.number("tracelevel").status();
}

/// Writes one document. Kept until its answer.
class Write : public std::enable_shared_from_this<Write> {
 public:
  Write(const HttpRequest& request, std::string id, HttpDone done)
      : target_(request.target), method_(request.method), id_(std::move(id)), done_(std::move(done)) {}

  void start(Client& client, const HttpQuery& query, const std::string& json) {
    if (const Status status = read(query, json); !status) return fail(status);
    auto then = [self = shared_from_this()](WriteResult result) { self->on_result(result); };
    if (method_ == "POST") {
      client.put_json(id_, std::move(fields_), std::move(options_)).then(then);
    } else if (method_ == "PUT") {
      client.update_json(id_, std::move(fields_), std::move(options_)).then(then);
    } else {
      client.remove(id_, std::move(options_)).then(then);
    }
  }

 private:
  Status read(const HttpQuery& query, const std::string& json) {
    FJORD_TRY_ASSIGN(const auto timeout, query.duration_ms("timeout"));
    if (timeout) options_.timeout = milliseconds(*timeout);
    if (method_ != "DELETE") {
      FJORD_TRY_ASSIGN(DocumentBody body, read_document_body(json));
      fields_ = std::move(body.fields);
      if (body.condition) options_.condition = std::move(*body.condition);
      if (body.create) options_.create = *body.create;
    }
    // The query comes last, because it wins over the body.
    if (const std::string* condition = query.find("condition")) options_.condition = *condition;
    FJORD_TRY_ASSIGN(options_.create, query.flag("create", options_.create));
    return Status::ok();
  }

  /// A write to a missing document without a condition succeeds; with one its status is TestAndSetFailed.
  void on_result(const WriteResult& result) {
    const bool is_missing = result.status.code() == StatusCode::NotFound;
    if (result.status || is_missing) return done_(plain_answer(request(), 200, id_));
    fail(result.status);
  }

  void fail(const Status& status) { done_(error_answer(request(), status, id_)); }
  HttpRequest request() const { return {.method = method_, .target = target_, .body = {}}; }

  const std::string target_;
  const std::string method_;
  const std::string id_;
  const HttpDone done_;
  WriteOptions options_;
  std::string fields_;
};

std::vector<std::string> joined(std::vector<std::string> names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

}  // namespace

const std::vector<DocumentApi::Operation>& DocumentApi::operations() {
  using Names = std::vector<std::string>;
  static const Names read = {"cluster", "fieldSet", "timeout", "tracelevel", "format.tensors"};
  static const Names remove = {"condition", "dryRun", "timeout", "cluster", "route", "tracelevel"};
  static const Names write = joined(remove, {"create"});
  static const Names visit = {
      "cluster", "selection",      "wantedDocumentCount", "continuation", "fieldSet",      "slices",
      "sliceId", "includeRemoves", "concurrency",         "stream",       "fromTimestamp", "toTimestamp",
      "timeout", "tracelevel",     "format.tensors"};
  static const Names select = {"cluster", "selection",  "slices",    "sliceId",
                               "timeout", "tracelevel", "timeChunk", "continuation"};
  static const Names no_select = {"wantedDocumentCount", "fieldSet", "concurrency", "route", "dryRun"};
  static const Names no_visit = {"dryRun", "destinationCluster"};
  static const Names space = {"bucketSpace"};
  static const Names copy = joined(select, {"destinationCluster"});
  static const Names remove_selected = joined(select, {"confirm"});
  using enum PathForm;
  static const std::vector<Operation> operations = {
      {"GET", Root, joined(visit, space), no_visit, &DocumentApi::visit},
      {"POST", Root, joined(copy, space), no_select, &DocumentApi::write_selected},
      {"DELETE", Root, joined(remove_selected, space), no_select, &DocumentApi::write_selected},
      {"GET", Selection, visit, joined(no_visit, space), &DocumentApi::visit},
      {"POST", Selection, copy, joined(no_select, space), &DocumentApi::write_selected},
      {"PUT", Selection, select, joined(no_select, space), &DocumentApi::write_selected},
      {"DELETE", Selection, remove_selected, joined(no_select, space), &DocumentApi::write_selected},
      {"GET", Document, read, {"dryRun"}, &DocumentApi::read},
      {"POST", Document, write, {}, &DocumentApi::write},
      {"PUT", Document, write, {}, &DocumentApi::write},
      {"DELETE", Document, remove, {}, &DocumentApi::write},
  };
  return operations;
}

std::vector<RouteTable::Name> DocumentApi::names() {
  std::vector<RouteTable::Name> names;
  for (const Operation& one : operations()) {
    for (const std::string& path : document_paths(one.form)) {
      names.push_back({std::string(one.method), path, one.parameters});
    }
  }
  return names;
}

std::vector<std::string> DocumentApi::methods_of(PathForm form) {
  std::vector<std::string> methods;
  for (const Operation& one : operations()) {
    if (one.form != form) continue;
    methods.emplace_back(one.method);
    if (methods.back() == "GET") methods.emplace_back("HEAD");
  }
  return methods;
}

void DocumentApi::read(Call& call) {
  const std::string id = call.path.id();
  ReadOptions options;
  const auto timeout = call.query.duration_ms("timeout");
  if (!timeout) return call.reply(error_answer(call.request, timeout.error(), id));
  if (*timeout) options.timeout = milliseconds(**timeout);
  if (const std::string* fields = call.query.find("fieldSet")) options.fields = *fields;
  struct Read {
    HttpRequest asked;
    DocumentPath path;
    std::string id;
    HttpDone done;
  };
  const auto read = std::make_shared<Read>(
      Read{{.method = call.request.method, .target = call.request.target, .body = {}}, call.path, id, call.reply});
  client_.get_fields_json(id, std::move(options)).then([this, read](const JsonResult& result) {
    if (result.status.code() == StatusCode::NotFound) return answer_missing(read->asked, read->path, read->done);
    if (!result.status) return read->done(error_answer(read->asked, result.status, read->id));
    HttpAnswer answer{.status = 200, .body = begin_body(read->asked, read->id)};
    constexpr std::size_t kAround = 16;
    answer.body.reserve(answer.body.size() + result.json.size() + kAround);
    answer.body.append(",\"fields\":").append(result.json).append("}");
    read->done(std::move(answer));
  });
}

void DocumentApi::answer_missing(const HttpRequest& request, const DocumentPath& path, HttpDone done) {
  bool is_known = false;
  {
    const std::lock_guard lock(mutex_);
    is_known = known_types_.contains(path.type);
  }
  if (is_known) return done(plain_answer(request, 404, path.id()));
  const bool taken = threads_.run([this, request, path, done] {
    const auto types = client_.core().types_with(path.type);
    if (!types) return done(error_answer(request, types.error(), path.id()));
    {
      const std::lock_guard lock(mutex_);
      known_types_.insert(path.type);
    }
    done(plain_answer(request, 404, path.id()));
  });
  if (!taken) done(message_answer(request, 429, "too many requests wait for schemas; try again later", path.id()));
}

void DocumentApi::write(Call& call) {
  const std::string id = call.path.id();
  const auto dry_run = call.query.flag("dryRun", false);
  if (!dry_run) return call.reply(error_answer(call.request, dry_run.error(), id));
  if (*dry_run) return call.reply(plain_answer(call.request, 200, id));
  std::make_shared<Write>(call.request, id, call.reply)->start(client_, call.query, call.request.body);
}

void DocumentApi::visit(Call& call) {
  auto wish = read_visit_wish(call.path, call.query);
  if (!wish) return call.reply(error_answer(call.request, wish.error()));
  bool is_taken = false;
  if (wish->is_stream) {
    const StreamForm form = stream_form_of(call.request.header("accept"));
    is_taken = call.reply.take_stream() &&
               threads_.run_stream([this, request = call.request, wish = std::move(*wish), form, reply = call.reply] {
                 stream_visit(client_, request, wish, form, reply);
               });
  } else {
    is_taken = threads_.run([this, request = call.request, wish = std::move(*wish), reply = call.reply] {
      reply(visit_chunk(client_, request, wish, stop_of(reply)));
    });
  }
  if (!is_taken) call.reply(message_answer(call.request, 429, kTooManyVisits));
}

void DocumentApi::write_selected(Call& call) {
  if (const std::string* destination = call.query.find("destinationCluster")) {
    if (const Status status = check_cluster(*destination); !status) {
      return call.reply(error_answer(call.request, status));
    }
  }
  auto wish = read_selection_wish(call.request, call.path, call.query);
  if (!wish) return call.reply(error_answer(call.request, wish.error()));
  const bool is_taken =
      threads_.run([this, request = call.request, path = call.path, wish = std::move(*wish), reply = call.reply] {
        reply(write_by_selection(client_, request, path, wish, confirms_removals_, stop_of(reply)));
      });
  if (!is_taken) call.reply(message_answer(call.request, 429, kTooManyVisits));
}

void DocumentApi::handle(const HttpRequest& request, const std::vector<std::string>& path, HttpReply reply) {
  auto query = HttpQuery::parse(request.target);
  if (!query) return reply(error_answer(request, query.error()));
  auto parsed = parse_document_path(request, path);
  if (!parsed) return reply(error_answer(request, parsed.error()));
  // The session leaves the body out.
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const Operation* found = nullptr;
  for (const Operation& one : operations()) {
    if (one.form == parsed->form() && one.method == method) found = &one;
  }
  if (found == nullptr) return reply(other_method_answer(request, methods_of(parsed->form())));
  for (const std::string& name : found->refused) {
    if (query->find(name) == nullptr) continue;
    const Status status(StatusCode::InvalidArgument,
                        fmt::format("May not specify '{}' at '{}'", name, request.raw_path()));
    return reply(error_answer(request, status, found->form == PathForm::Document ? parsed->id() : std::string()));
  }
  query->keep_only(found->parameters);
  if (const Status status = check_common(*query); !status) return reply(error_answer(request, status));
  Call call{.request = request, .path = std::move(*parsed), .query = std::move(*query), .reply = std::move(reply)};
  (this->*found->run)(call);
}

}  // namespace fjord::gateway
