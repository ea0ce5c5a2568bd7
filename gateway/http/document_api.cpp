#include "http/document_api.h"

#include <charconv>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "fjord/library/detail/client_core.h"
#include "http/json_body.h"

namespace fjord::gateway {
namespace {

constexpr int kRetryAfterSeconds = 1;
constexpr const char* kAvailablePaths =
    "Available paths are: /document/v1/, /document/v1/{namespace}/{documentType}/docid/{*}, "
    "/document/v1/{namespace}/{documentType}/number/{number}/{*}, "
    "/document/v1/{namespace}/{documentType}/group/{group}/{*}";

unsigned http_status_of(StatusCode code) {
  switch (code) {
    case StatusCode::Ok:
      return 200;
    case StatusCode::InvalidId:
    case StatusCode::UnknownType:
    case StatusCode::InvalidField:
    case StatusCode::InvalidSelection:
    case StatusCode::InvalidArgument:
      return 400;
    case StatusCode::Unauthorized:
      return 403;
    case StatusCode::NotFound:
      return 404;
    case StatusCode::TestAndSetFailed:
    case StatusCode::AlreadyExists:
      return 412;
    case StatusCode::TooLarge:
      return 413;
    case StatusCode::Busy:
      return 429;
    case StatusCode::NotImplemented:
      return 501;
    case StatusCode::WrongDistribution:
    case StatusCode::Unavailable:
    case StatusCode::NotReady:
    case StatusCode::Cancelled:
      return 503;
    case StatusCode::Timeout:
      return 504;
    case StatusCode::NoSpace:
      return 507;
    default:
      return 500;
  }
}

/// Returns the beginning of an answer's body, without the closing brace.
std::string begin_body(const HttpRequest& request, const std::string& id) {
  std::string body = "{\"pathId\":";
  append_json_string(body, request.raw_path());
  if (!id.empty()) {
    body += ",\"id\":";
    append_json_string(body, id);
  }
  return body;
}

HttpAnswer plain_answer(const HttpRequest& request, unsigned http_status, const std::string& id) {
  return {.status = http_status, .body = begin_body(request, id) + "}"};
}

/// Refuses a character that would end this part of the id, so that the id would name another document than the path.
Status check_part(std::string_view part, std::string_view name) {
  if (part.find(':') == std::string_view::npos) return Status::ok();
  return {StatusCode::InvalidArgument, fmt::format("the {} '{}' contains ':'", name, part)};
}

/// Errors: NotFound if there is no such path; InvalidArgument.
Result<DocumentPath> parse_document_path(const HttpRequest& request, const std::vector<std::string>& path) {
  const Status absent(StatusCode::NotFound, fmt::format("Nothing at '{}'. {}", request.raw_path(), kAvailablePaths));
  DocumentPath parsed;
  const std::size_t segments = path.back().empty() && path.size() <= 7 ? path.size() - 1 : path.size();
  if (segments == 2) {
    parsed.is_root = true;
    return parsed;
  }
  if (segments < 5) return absent;
  parsed.space = path[2];
  parsed.type = path[3];
  FJORD_TRY(check_part(parsed.space, "namespace"));
  FJORD_TRY(check_part(parsed.type, "document type"));
  std::size_t next = 5;
  if (path[4] == "number" || path[4] == "group") {
    if (segments < 6) return absent;
    parsed.location = (path[4] == "number" ? "n=" : "g=") + path[5];
    FJORD_TRY(check_part(path[5], path[4]));
    if (path[4] == "number") {
      std::uint64_t number = 0;
      const char* end = path[5].data() + path[5].size();
      const auto [stop, error] = std::from_chars(path[5].data(), end, number);
      if (error != std::errc() || stop != end) {
        return Status(StatusCode::InvalidArgument, fmt::format("'{}' is not a number of 64 bits", path[5]));
      }
    }
    next = 6;
  } else if (path[4] != "docid") {
    return absent;
  }
  for (std::size_t i = next; i < path.size(); ++i) parsed.user += (i > next ? "/" : "") + path[i];
  return parsed;
}

Status check_cluster(const HttpQuery& query) {
  const std::string* cluster = query.find("cluster");
  if (cluster == nullptr || *cluster == kContentCluster) return Status::ok();
  return {StatusCode::InvalidArgument,
          fmt::format("Your Vespa deployment has no content cluster '{}', only '{}'", *cluster, kContentCluster)};
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

HttpAnswer message_answer(const HttpRequest& request, unsigned http_status, std::string_view message,
                          const std::string& id) {
  HttpAnswer answer{.status = http_status, .body = begin_body(request, id) + ",\"message\":"};
  append_json_string(answer.body, message);
  answer.body += '}';
  if (http_status == 429 || http_status == 503) answer.retry_after_seconds = kRetryAfterSeconds;
  return answer;
}

HttpAnswer error_answer(const HttpRequest& request, const Status& status, const std::string& id) {
  return message_answer(request, http_status_of(status.code()), status.message(), id);
}

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
  HttpRequest asked{.method = request.method, .target = request.target, .body = {}};
  client_.get_json(id, std::move(options))
      .then([this, asked = std::move(asked), path, done = std::move(done)](JsonResult result) {
        if (result.status.code() == StatusCode::NotFound) return answer_missing(asked, path, done);
        if (!result.status) return done(error_answer(asked, result.status, path.id()));
        const auto fields = fields_of_document(result.json);
        if (!fields) return done(error_answer(asked, {StatusCode::Corruption, fields.error().message()}, path.id()));
        done({.status = 200, .body = begin_body(asked, path.id()) + ",\"fields\":" + *fields + "}"});
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
  if (const Status status = check_cluster(*query); !status) return done(error_answer(request, status));
  if (parsed->user.empty()) {
    if (is_write) return done(message_answer(request, 501, "writes by selection are not available"));
    const bool taken = threads_.run([this, request, path = *parsed, query = *query, done] {
      done(visit_chunk(client_, threads_, request, path, query));
    });
    if (!taken) done(message_answer(request, 429, "too many visits are in progress; try again later"));
    return;
  }
  const std::string id = parsed->id();
  if (!is_write) return read(request, *parsed, *query, done);
  const auto dry_run = query->flag("dryRun", false);
  if (!dry_run) return done(error_answer(request, dry_run.error(), id));
  if (*dry_run) return done(plain_answer(request, 200, id));
  std::make_shared<Write>(request, id, done)->start(client_, *query, request.body);
}

}  // namespace fjord::gateway
