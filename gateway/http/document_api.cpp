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
    if (const std::string* condition = query.find("condition")) options_.condition = *condition;
    FJORD_TRY_ASSIGN(options_.create, query.flag("create", false));
    if (method_ == "DELETE") {
      options_.create = false;
      return Status::ok();
    }
    FJORD_TRY_ASSIGN(DocumentBody body, read_document_body(json));
    fields_ = std::move(body.fields);
    if (body.condition) options_.condition = *body.condition;
    if (body.create) options_.create = *body.create;
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

}  // namespace

void DocumentApi::read(const HttpRequest& request, const DocumentPath& path, const HttpQuery& query, HttpDone done) {
  const std::string id = path.id();
  ReadOptions options;
  const auto timeout = query.duration_ms("timeout");
  if (!timeout) return done(error_answer(request, timeout.error(), id));
  if (*timeout) options.timeout = milliseconds(**timeout);
  if (query.find("dryRun") != nullptr) {
    return done(message_answer(request, 400, "GET does not support the request property 'dryRun'", id));
  }
  if (const std::string* fields = query.find("fieldSet")) options.fields = *fields;
  struct Read {
    HttpRequest asked;
    DocumentPath path;
    std::string id;
    HttpDone done;
  };
  const auto read = std::make_shared<Read>(
      Read{{.method = request.method, .target = request.target, .body = {}}, path, id, std::move(done)});
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

void DocumentApi::visit(const HttpRequest& request, const DocumentPath& path, const HttpQuery& query,
                        const HttpReply& reply) {
  auto wish = read_visit_wish(request, path, query);
  if (!wish) return reply(error_answer(request, wish.error()));
  bool is_taken = false;
  if (wish->is_stream) {
    const StreamForm form = stream_form_of(request.header("accept"));
    is_taken = threads_.run_stream(
        [this, request, wish = std::move(*wish), form, reply] { stream_visit(client_, request, wish, form, reply); });
  } else {
    is_taken = threads_.run([this, request, wish = std::move(*wish), reply] {
      reply(visit_chunk(client_, request, wish, stop_of(reply)));
    });
  }
  if (!is_taken) reply(message_answer(request, 429, kTooManyVisits));
}

void DocumentApi::write_selected(const HttpRequest& request, const DocumentPath& path, const HttpQuery& query,
                                 const HttpReply& reply) {
  if (const std::string* destination = query.find("destinationCluster")) {
    if (const Status status = check_cluster(*destination); !status) return reply(error_answer(request, status));
  }
  auto wish = read_selection_wish(request, path, query);
  if (!wish) return reply(error_answer(request, wish.error()));
  const bool is_taken = threads_.run([this, request, path, wish = std::move(*wish), reply] {
    reply(write_by_selection(client_, request, path, wish, stop_of(reply)));
  });
  if (!is_taken) reply(message_answer(request, 429, kTooManyVisits));
}

void DocumentApi::handle(const HttpRequest& request, const std::vector<std::string>& path, HttpReply reply) {
  const HttpDone done = reply;
  const auto query = HttpQuery::parse(request.target);
  if (!query) return done(error_answer(request, query.error()));
  const auto parsed = parse_document_path(request, path);
  if (!parsed) return done(error_answer(request, parsed.error()));
  if (request.method == "OPTIONS") return done({.status = 204, .body = {}, .allow = "GET,POST,PUT,DELETE"});
  const bool is_write = request.method == "POST" || request.method == "PUT" || request.method == "DELETE";
  if (!is_write && request.method != "GET") {
    HttpAnswer answer = message_answer(request, 405,
                                       fmt::format("'{}' not allowed at '{}'. Allowed methods are: DELETE, "
                                                   "GET, POST, PUT",
                                                   request.method, request.raw_path()));
    answer.allow = "GET,POST,PUT,DELETE";
    return done(std::move(answer));
  }
  if (const Status status = check_common(*query); !status) return done(error_answer(request, status));
  if (parsed->user.empty()) {
    return is_write ? write_selected(request, *parsed, *query, reply) : visit(request, *parsed, *query, reply);
  }
  const std::string id = parsed->id();
  if (!is_write) return read(request, *parsed, *query, done);
  const auto dry_run = query->flag("dryRun", false);
  if (!dry_run) return done(error_answer(request, dry_run.error(), id));
  if (*dry_run) return done(plain_answer(request, 200, id));
  std::make_shared<Write>(request, id, done)->start(client_, *query, request.body);
}

}  // namespace fjord::gateway
