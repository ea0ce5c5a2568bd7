#include "http/route_table.h"

#include <catch2/catch.hpp>

namespace fjord::gateway {
namespace {

using Catch::Matchers::Contains;

/// Keeps the whole answer.
class Kept final : public AnswerSink {
 public:
  void answer(HttpAnswer answer) override {
    given = std::move(answer);
    ++answers;
  }
  void begin(HttpAnswer) override {}
  void write(std::string, std::function<void(bool)>) override {}
  void end() override {}
  void cut() override {}
  bool is_open() const override { return true; }
  void on_stop(std::function<void()>) override {}

  HttpAnswer given;
  int answers = 0;
};

struct Table {
  Table() {
    const auto say = [](const char* what) {
      return [what](const ApiCall& call, JsonText& json) -> Status {
        FJORD_TRY_ASSIGN(const std::uint64_t max, call.count("max", 5, 1, 10));
        json.begin_object().member("route", what).member("path", call.path).member("max", max).end_object();
        return Status::ok();
      };
    };
    routes.add_waiting("GET", "/a/{one}", {"max"}, say("one"));
    routes.add_waiting("DELETE", "/a/{one}", {}, say("delete"));
    routes.add_waiting("GET", "/a/fixed", {"max"}, say("fixed"));
    routes.add_waiting("POST", "/a/{one}/go", {}, say("go"));
    routes.add_waiting("GET", "/fails", {}, [](const ApiCall&, JsonText&) {
      return Status(StatusCode::NotFound, "\xff none", {.node = "storage.1", .limit = "3", .setting = "s"});
    });
  }

  HttpAnswer ask(const std::string& method, const std::string& target, std::string body = {}) {
    HttpRequest request;
    request.method = method;
    request.target = target;
    request.body = std::move(body);
    const auto kept = std::make_shared<Kept>();
    routes.handle(request, *split_path(request.raw_path()), HttpReply(kept));
    CHECK(kept->answers == 1);
    return kept->given;
  }

  int tasks_left = 100;
  bool run(const std::function<void()>& task) {
    if (tasks_left == 0) return false;
    --tasks_left;
    task();
    return true;
  }
  RouteTable routes{[this](const auto& task) { return run(task); }, [this](const auto& task) { return run(task); }};
};

TEST_CASE("a path of words comes before one with braces", "[gateway]") {
  Table table;
  CHECK(table.ask("GET", "/a/x%20y").body == R"({"route":"one","path":{"one":"x y"},"max":5})");
  CHECK(table.ask("GET", "/a/fixed?max=7").body == R"({"route":"fixed","path":{},"max":7})");
  CHECK(table.ask("DELETE", "/a/x").body == R"({"route":"delete","path":{"one":"x"},"max":5})");
  CHECK(table.ask("POST", "/a/fixed/go").body == R"({"route":"go","path":{"one":"fixed"},"max":5})");
}

TEST_CASE("other methods and paths are refused", "[gateway]") {
  Table table;
  CHECK(table.ask("DELETE", "/a/fixed").status == 405);
  CHECK(table.ask("DELETE", "/a/fixed").allow == "GET,HEAD");
  CHECK(table.ask("PUT", "/a/x").allow == "DELETE,GET,HEAD");
  CHECK(table.ask("HEAD", "/a/fixed").status == 200);
  CHECK(table.ask("OPTIONS", "/a/x").status == 204);
  CHECK(table.ask("OPTIONS", "/a/x").allow == "DELETE,GET,HEAD");
  for (const char* target : {"/", "/a", "/a/", "/a/x/", "/a/x/other", "/A/fixed"}) {
    CHECK(table.ask("GET", target).status == 404);
  }
}

TEST_CASE("parameters are checked", "[gateway]") {
  Table table;
  CHECK_THAT(table.ask("GET", "/a/x?other=1").body, Contains("no request property 'other' here, only max"));
  CHECK_THAT(table.ask("DELETE", "/a/x?max=1").body, Contains("no request property 'max' here"));
  for (const char* query :
       {"max=", "max", "max=x", "max=0", "max=11", "max=-1", "max=99999999999999999999", "max=1&max=1"}) {
    INFO(query);
    CHECK(table.ask("GET", std::string("/a/x?") + query).status == 400);
  }
  CHECK_THAT(table.ask("GET", "/a/x?max=11").body, Contains(R"("limit":"1 to 10")"));
}

TEST_CASE("an error says what is known of it", "[gateway]") {
  Table table;
  const HttpAnswer answer = table.ask("GET", "/fails");
  CHECK(answer.status == 404);
  CHECK(answer.body ==
        "{\"pathId\":\"/fails\",\"message\":\"\xef\xbf\xbd none\",\"code\":\"NOT_FOUND\","
        "\"node\":\"storage.1\",\"limit\":\"3\",\"setting\":\"s\"}");
  CHECK(table.ask("GET", "/a/x", std::string((4 << 20) + 1, 'x')).status == 413);
  table.tasks_left = 0;
  CHECK(table.ask("GET", "/a/x").status == 429);
  CHECK(table.ask("GET", "/a/x").retry_after_seconds == 1);
}

TEST_CASE("JSON holds any text and number", "[gateway]") {
  JsonText json;
  json.begin_object().member("a\"", "\xc3\xa9\n").member("nan", 0.0 / 0.0).member("big", UINT64_MAX);
  json.member("texts", std::vector<std::string>{"x"}).known_seconds("never", Duration(-1));
  json.seconds("half", milliseconds(500)).end_object();
  CHECK(json.str() ==
        "{\"a\\\"\":\"\xc3\xa9\\u000a\",\"nan\":null,\"big\":18446744073709551615,\"texts\":[\"x\"],"
        "\"never\":null,\"half\":0.5}");
}

}  // namespace
}  // namespace fjord::gateway
